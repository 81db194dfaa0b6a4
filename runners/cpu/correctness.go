package cpu

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/problem"
)

// Correctness runs every case of the gate and as many secret ones as it asks.
// A case in which the kernel dies is the last one.
func (w *Worker) Correctness(ctx context.Context, gate *policies.CorrectnessGate, p runners.Progress) (*gates.Correctness, error) {
	m := w.job.Manifest
	result := &gates.Correctness{Tolerance: gates.Tolerance{Abs: m.Tolerance.Abs, Rel: m.Tolerance.Rel}}
	cases := runners.Cases(w.job, gate, w.rng)
	desk, err := w.openDesk(ctx, cases)
	if err != nil {
		return nil, err
	}
	defer desk.close()
	for i, c := range cases {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("stopped after %d of %d cases: %w", i, len(cases), err)
		}
		p.Report(runners.Event{Gate: "correctness", Text: c.Name(), Done: i, Total: len(cases), Unit: "cases"})
		evidence, err := desk.run(c)
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", c.Name(), err)
		}
		result.Cases = append(result.Cases, evidence)
		if evidence.Failure != nil {
			break
		}
	}
	return result, nil
}

// A desk has the three processes side by side that a comparison needs: the
// reference, the baseline where there is one, and the candidate.
type desk struct {
	worker                         *Worker
	candidate, baseline, reference *child
	toggles                        map[string]int
}

func (w *Worker) openDesk(ctx context.Context, cases []runners.Case) (*desk, error) {
	ref, err := w.reference(ctx)
	if err != nil {
		return nil, err
	}
	d := &desk{worker: w, toggles: w.sides[runners.Candidate].toggles}
	slot, refSlot := 0, 0
	for _, c := range cases {
		p, err := problem.New(w.job.Manifest, c.Shape, d.toggles, "zero", 0)
		if err != nil {
			return nil, err
		}
		slot = max(slot, layoutOf(p.Args).Size)
		refSlot = max(refSlot, layoutOf(p.ReferenceArgs(false)).Size)
	}
	start := func(to **child, exe *executable, size int) {
		if err == nil && exe != nil {
			*to, err = startChild(ctx, exe.path, size, w.config.LaunchTimeout)
		}
	}
	start(&d.reference, ref, refSlot)
	start(&d.baseline, w.sides[runners.Baseline], slot)
	start(&d.candidate, w.sides[runners.Candidate], 2*slot)
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *desk) close() {
	for _, c := range []*child{d.reference, d.baseline, d.candidate} {
		if c != nil {
			c.close()
		}
	}
}

// run is one case: the candidate twice on the same input, the baseline once,
// both against the reference.
func (d *desk) run(c runners.Case) (gates.Case, error) {
	evidence := c.Evidence()
	p, err := problem.New(d.worker.job.Manifest, c.Shape, d.toggles, c.Distribution, c.Seed)
	if err != nil {
		return evidence, err
	}
	want, err := expected(d.reference, p.ReferenceArgs(false))
	if err != nil {
		return evidence, err
	}
	l := layoutOf(p.Args)
	for slot := range 2 {
		l.fill(d.candidate.memory, slot*l.Size, p.Args)
	}
	_, failure, err := d.candidate.launch(0, l.Size, 2)
	if err != nil || failure != nil {
		evidence.Failure = failure
		return evidence, err
	}
	first, second := l.outputs(d.candidate.memory, 0), l.outputs(d.candidate.memory, l.Size)
	evidence.InputsChanged, evidence.OutOfBounds = l.changed(d.candidate.memory, 0, p.Args)
	same := equal(first, second)
	evidence.Deterministic = &same
	if evidence.Errors, err = d.compare(p.Args, first, want); err != nil {
		return evidence, err
	}
	if c.EndToEnd(d.worker.job.Manifest) {
		original, err := expected(d.reference, p.ReferenceArgs(true))
		if err != nil {
			return evidence, err
		}
		if evidence.EndToEnd, err = d.compare(p.Args, first, original); err != nil {
			return evidence, err
		}
	}
	return evidence, d.beside(&evidence, p, l, first, want)
}

// beside adds what the baseline makes of the same input. A baseline that dies
// here says nothing about the candidate and is not asked again.
func (d *desk) beside(evidence *gates.Case, p *problem.Problem, l layout, candidate [][]byte, want [][]float64) error {
	if d.baseline == nil {
		return nil
	}
	l.fill(d.baseline.memory, 0, p.Args)
	_, failure, err := d.baseline.launch(0, l.Size, 1)
	if err != nil {
		return err
	}
	if failure != nil {
		d.baseline.close()
		d.baseline = nil
		return nil
	}
	out := l.outputs(d.baseline.memory, 0)
	parity := equal(out, candidate)
	evidence.BitParity = &parity
	evidence.Baseline, err = d.compare(p.Args, out, want)
	return err
}

func (d *desk) compare(args []problem.Arg, got [][]byte, want [][]float64) (*gates.Errors, error) {
	return runners.Compare(d.worker.job.Manifest, args, got, want)
}

// expected asks the reference for every output, by position among its own
// arguments' outputs.
func expected(reference *child, args []problem.Arg) ([][]float64, error) {
	l := layoutOf(args)
	l.fill(reference.memory, 0, args)
	_, failure, err := reference.launch(0, l.Size, 1)
	if err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, fmt.Errorf("the base's reference failed: %s", failure.Detail)
	}
	var want [][]float64
	for _, out := range l.outputs(reference.memory, 0) {
		if out == nil {
			continue
		}
		values := make([]float64, len(out)/8)
		for i := range values {
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(out[8*i:]))
		}
		want = append(want, values)
	}
	return want, nil
}

func equal(a, b [][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
