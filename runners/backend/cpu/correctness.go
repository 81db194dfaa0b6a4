package cpu

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// Correctness runs every case of the gate, and the number of secret cases that it asks for. A case
// in which the kernel dies is the last one, unless the baseline dies, too.
func (w *Worker) Correctness(ctx context.Context, gate *policy.CorrectnessGate, p runners.Progress) (*gates.Correctness, error) {
	m := w.job.Manifest
	result := &gates.Correctness{Tolerance: gates.Tolerance(m.Tolerance), Tolerances: runners.OwnTolerances(m), Spent: gates.Spent{}}
	cases := runners.Cases(w.job, gate, w.rng)
	desk, err := w.openDesk(ctx, cases)
	if err != nil {
		return nil, err
	}
	desk.spent = result.Spent
	defer func() { desk.close() }()
	for i, c := range cases {
		if desk.worn {
			next, err := w.openDesk(ctx, cases[i:])
			if err != nil {
				return nil, err
			}
			next.late, next.spent = desk.late, desk.spent
			desk.close()
			desk = next
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("stopped after %d of %d cases: %w", i, len(cases), err)
		}
		p.Report(runners.Event{Gate: gates.GateCorrectness, Text: c.Name(), Done: i, Total: len(cases), Unit: "cases"})
		evidence, err := desk.run(c)
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", c.Name(), err)
		}
		result.Cases = append(result.Cases, evidence)
		if !runners.GoesOn(result.Cases) {
			break
		}
	}
	return result, nil
}

// DumpCase runs one case and keeps the outputs of both sides. Both are built.
func (w *Worker) DumpCase(ctx context.Context, c runners.Case) (*runners.CaseDump, error) {
	desk, err := w.openDesk(ctx, []runners.Case{c})
	if err != nil {
		return nil, err
	}
	defer desk.close()
	desk.look = &runners.CaseDump{}
	if desk.look.Case, err = desk.run(c); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name(), err)
	}
	return desk.look, nil
}

// show keeps a side's outputs for display.
func (d *desk) show(args []tensor.Arg, outputs [][]byte, keep func(*runners.DumpedOutput, []byte)) {
	if d.look == nil || outputs == nil {
		return
	}
	for k, o := range tensor.Outputs(args) {
		keep(&d.look.Outputs[k], slices.Clone(o.Values(outputs[o.Of])))
	}
}

// A desk holds the three processes that a comparison needs: the reference, the baseline if there is
// one, and the candidate.
type desk struct {
	worker                *Worker
	candidate, baseline   *child // of the case; the baseline is nil if there is none
	reference             truth
	candidates, baselines map[string]*child
	toggles               map[string]int
	look                  *runners.CaseDump // of the case, if somebody wants to see it
	worn                  bool              // a process has died: the next case needs new ones
	late                  bool              // the baseline took too long once, and is not asked again
	spent                 gates.Spent
}

func (w *Worker) openDesk(ctx context.Context, cases []runners.Case) (*desk, error) {
	d := &desk{worker: w, toggles: w.sides[runners.Candidate].toggles}
	slot, refSlot := 0, 0
	for _, c := range cases {
		p, err := tensor.NewProblem(w.job.Of(w.job.Candidate), c.Shape, d.toggles, "zero", 0)
		if err != nil {
			return nil, err
		}
		slot = max(slot, layoutOf(p.Args).Size)
		refSlot = max(refSlot, layoutOf(p.ReferenceArgs(false)).Size)
	}
	var err error
	if d.reference, err = w.openReference(ctx, refSlot); err != nil {
		return nil, err
	}
	start := func(to **child, exe *executable, size int) {
		if err == nil && exe != nil {
			*to, err = startChild(ctx, exe.path, size, exe.threads, w.config.LaunchTimeout)
		}
	}
	d.baselines, d.candidates = map[string]*child{}, map[string]*child{}
	seat := func(to map[string]*child, side *executable, size int) {
		for _, exe := range side.programs() {
			var c *child
			if start(&c, exe, size); c != nil {
				to[exe.path] = c
			}
		}
	}
	seat(d.baselines, w.sides[runners.Baseline], slot)
	seat(d.candidates, w.sides[runners.Candidate], 2*slot)
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *desk) close() {
	if d.reference != nil {
		d.reference.close()
	}
	for _, children := range []map[string]*child{d.baselines, d.candidates} {
		for _, c := range children {
			c.close()
		}
	}
}

// serve starts the programs that are launched for a case.
func (d *desk) serve(dims manifest.Dims) error {
	exe, err := d.worker.sides[runners.Candidate].serving(dims)
	if err != nil {
		return err
	}
	d.candidate, d.baseline = d.candidates[exe.path], nil
	if base := d.worker.sides[runners.Baseline]; base != nil {
		if exe, err = base.serving(dims); err != nil {
			return err
		}
		if !d.late {
			d.baseline = d.baselines[exe.path]
		}
	}
	return nil
}

// run runs one case: the candidate on the input in a fresh process and in one that has run on a
// different input, the baseline once, and compares both with the reference.
func (d *desk) run(c runners.Case) (gates.Case, error) {
	evidence := c.Evidence()
	if err := d.serve(c.Shape.Dims); err != nil {
		return evidence, err
	}
	in, err := newDrawer(d.worker.job.Of(d.worker.job.Candidate), c.Shape, d.toggles)
	if err != nil {
		return evidence, err
	}
	if in.recordings, err = d.worker.recordings(); err != nil {
		return evidence, err
	}
	var p *tensor.Problem
	if err := runners.Spend(d.spent, gates.WorkInputs, func() (err error) {
		p, err = in.problem(c.Distribution, c.Seed)
		return err
	}); err != nil {
		return evidence, err
	}
	want, err := d.expected(p, false)
	if err != nil {
		return evidence, err
	}
	if c.Replayable(d.worker.job.Manifest) {
		if err := d.replay(&evidence, in, c, p, want); err != nil {
			return evidence, err
		}
	}
	if d.look != nil {
		d.look.Outputs = runners.DumpedOutputs(p.Args, want)
	}
	first, failure, err := d.fresh(in, c, &evidence)
	d.show(p.Args, first, func(o *runners.DumpedOutput, bytes []byte) { o.Candidate = bytes })
	if err == nil && failure == nil {
		failure, err = d.again(in, c, &evidence, first)
	}
	if err == nil && failure != nil {
		evidence.Failure, d.worn = failure, true
		_, err := d.beside(&evidence, p, in, nil, want)
		return evidence, err
	}
	if err != nil {
		return evidence, err
	}
	if evidence.Errors, err = d.compare(p.Args, first, want); err != nil {
		return evidence, err
	}
	baseline, err := d.beside(&evidence, p, in, first, want)
	if err != nil || !c.EndToEnd(d.worker.job.Manifest) {
		return evidence, err
	}
	original, err := d.expected(p, true)
	if err != nil {
		return evidence, err
	}
	if evidence.EndToEnd, err = d.compare(p.Args, first, original); err == nil && baseline != nil {
		evidence.BaselineEndToEnd, err = d.compare(p.Args, baseline, original)
	}
	return evidence, err
}

// replay compares the right answer to the recording itself with that to the same recording with noise.
func (d *desk) replay(evidence *gates.Case, in *drawer, c runners.Case, noisy *tensor.Problem, want [][]float64) error {
	p, err := in.problem(c.Distribution, 0)
	if err != nil {
		return err
	}
	remembered, err := d.expected(p, false)
	if err != nil {
		return err
	}
	evidence.Replayed, err = d.compare(noisy.Args, runners.Encoded(noisy.Args, remembered), want)
	return err
}

// expected is what the reference computes, and its time counts.
func (d *desk) expected(p *tensor.Problem, original bool) (want [][]float64, err error) {
	err = runners.Spend(d.spent, gates.WorkReference, func() error {
		want, err = d.reference.expected(p, original)
		return err
	})
	return want, err
}

// fresh runs the candidate on a case in a fresh process.
func (d *desk) fresh(in *drawer, c runners.Case, evidence *gates.Case) ([][]byte, *gates.Failure, error) {
	return d.lastInPlace(in, c.Distribution, []uint64{c.Seed}, evidence)
}

// again runs the case after a different one in the same process. If the bits differ from the first
// launch's, the kernel is either not deterministic, or depends on what the earlier launch left
// behind.
func (d *desk) again(in *drawer, c runners.Case, evidence *gates.Case, first [][]byte) (*gates.Failure, error) {
	used, failure, err := d.lastInPlace(in, c.Distribution, []uint64{c.Seed + 1<<40, c.Seed}, evidence)
	if err != nil || failure != nil {
		return failure, err
	}
	same := slices.EqualFunc(first, used, bytes.Equal)
	evidence.Deterministic = &same
	if same {
		return nil, nil
	}
	once, failure, err := d.fresh(in, c, evidence)
	if err != nil || failure != nil || !slices.EqualFunc(first, once, bytes.Equal) {
		return failure, err
	}
	*evidence.Deterministic = true // fresh processes agree: the cause is kept state, not a race
	return &gates.Failure{Kind: gates.FailureState, Detail: "the output depends on what the kernel kept of an earlier launch: in a fresh process it has different bits than after a different input"}, nil
}

// lastInPlace launches the candidate on several inputs in one process, and returns the outputs of the last one. All inputs lie at
// the same addresses, so that a kernel which remembers an address gives the output of the input before.
func (d *desk) lastInPlace(in *drawer, dist distribution.Kind, seeds []uint64, evidence *gates.Case) (outputs [][]byte, failure *gates.Failure, err error) {
	if err := runners.Spend(d.spent, gates.WorkInputs, func() error { return in.draw(dist, seeds) }); err != nil {
		return nil, nil, err
	}
	images := slices.Clone(in.images[:len(seeds)])
	for i := range images[1:] { // the table of addresses comes first
		images[i+1] = slices.Concat(images[0][:8*len(in.args)], images[i+1][8*len(in.args):])
	}
	m := d.candidate.memory
	err = runners.Spend(d.spent, gates.WorkLaunches, func() (err error) {
		failure, err = d.candidate.launchInPlace(images, func(i int) {
			slot := in.slot(m, 0)
			inputs, outside := in.layout.changed(slot, images[i], in.args)
			if len(inputs) > 0 {
				evidence.InputsChanged = inputs
			}
			evidence.OutOfBounds = evidence.OutOfBounds || outside || m.beyond()
			outputs = in.layout.Outputs(slot)
		})
		return err
	})
	return outputs, failure, err
}

// beside runs the baseline on the same input, by the same rules, and returns its outputs: the
// change did not cause the mistakes of the baseline. Without an output of the candidate there is
// nothing to compare.
func (d *desk) beside(evidence *gates.Case, p *tensor.Problem, in *drawer, candidate [][]byte, want [][]float64) ([][]byte, error) {
	if d.baseline == nil {
		return nil, nil
	}
	failure, err := d.baseline.run(in.layout, p.Args)
	if err != nil {
		return nil, err
	}
	if failure != nil {
		evidence.BaselineFailure, d.worn = failure, true
		d.late = d.late || failure.Kind == gates.FailureTimeout
		return nil, nil
	}
	slot := in.slot(d.baseline.memory, 0)
	image := make([]byte, in.layout.Size)
	in.layout.image(image, 0, p.Args)
	if inputs, outside := in.layout.changed(slot, image, in.args); outside || d.baseline.memory.beyond() {
		evidence.BaselineFailure = new(gates.WrittenOutside())
	} else if len(inputs) > 0 {
		evidence.BaselineFailure = new(gates.InputsWritten(inputs))
	}
	out := in.layout.Outputs(slot)
	d.show(p.Args, out, func(o *runners.DumpedOutput, bytes []byte) { o.Baseline = bytes })
	if candidate != nil {
		parity := slices.EqualFunc(out, candidate, bytes.Equal)
		evidence.BitParity = &parity
	}
	if evidence.Baseline, err = d.compare(p.Args, out, want); err != nil {
		return nil, err
	}
	if evidence.Deterministic != nil && !*evidence.Deterministic {
		return out, d.repeat(evidence, p, in, out)
	}
	return out, nil
}

// repeat checks whether the baseline is deterministic on the case: a launch with different bits
// proves that it is not.
func (d *desk) repeat(evidence *gates.Case, p *tensor.Problem, in *drawer, first [][]byte) error {
	same := true
	for n := 0; n < runners.BaselineRepeats && same; n++ {
		failure, err := d.baseline.run(in.layout, p.Args)
		if err != nil {
			return err
		}
		if failure != nil { // which says nothing about its bits
			d.worn = true
			return nil
		}
		same = slices.EqualFunc(first, in.layout.Outputs(in.slot(d.baseline.memory, 0)), bytes.Equal)
	}
	evidence.BaselineDeterministic = &same
	return nil
}

func (d *desk) compare(args []tensor.Arg, got [][]byte, want [][]float64) (e *gates.Errors, err error) {
	err = runners.Spend(d.spent, gates.WorkReference, func() error {
		e, err = runners.Compare(d.worker.job.Manifest.ToleranceOf, args, got, want)
		return err
	})
	return e, err
}

// run is one launch on one input.
func (c *child) run(l layout, args []tensor.Arg) (*gates.Failure, error) {
	image := make([]byte, l.Size)
	l.image(image, 0, args)
	_, failure, err := c.launchOn([][]byte{image})
	return failure, err
}
