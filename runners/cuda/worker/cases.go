package worker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/problem"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// onDevice is the arguments of a reference that runs on the GPU: real numbers in
// float32, no scales.
func onDevice(args []problem.Arg) []problem.Arg {
	out := make([]problem.Arg, len(args))
	for i, a := range args {
		out[i] = a
		if !a.Array() {
			continue
		}
		out[i].DType = tensor.F32
		if a.Bytes == nil {
			continue
		}
		out[i].Bytes = make([]byte, 4*a.Elements)
		for k := range a.Elements {
			v := math.Float64frombits(binary.LittleEndian.Uint64(a.Bytes[8*k:]))
			binary.LittleEndian.PutUint32(out[i].Bytes[4*k:], math.Float32bits(float32(v)))
		}
	}
	return out
}

// reference computes what every case should give and writes it down. This
// process never sees the candidate.
func (s *session) reference() error {
	k, err := s.load(reference, s.request.Reference)
	if err != nil {
		return err
	}
	for _, c := range s.request.Cases {
		p, err := problem.New(s.manifest, c.Shape, nil, c.Distribution, c.Seed)
		if err != nil {
			return err
		}
		if err := s.expect(k, c, onDevice(p.ReferenceArgs(false)), c.File+wantSuffix); err != nil {
			return err
		}
		if err := s.send(Reply{Progress: c.File}); err != nil {
			return err
		}
		if c.EndToEnd {
			if err := s.expect(k, c, onDevice(p.ReferenceArgs(true)), c.File+originalSuffix); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) expect(k *kernel, c Case, args []problem.Arg, file string) error {
	l := problem.NewLayout(args, 0)
	slot, err := s.once(k, c, args, l)
	if err != nil {
		return err
	}
	var all []byte
	for _, out := range l.Outputs(slot) {
		all = append(all, out...)
	}
	return os.WriteFile(filepath.Join(s.request.Dir, file), all, 0o644)
}

// upload makes a slot for the arguments on the GPU, with a copy on the host.
func (s *session) upload(l problem.Layout, args []problem.Arg) ([]byte, driver.Buffer, error) {
	slot := make([]byte, l.Size)
	l.Fill(slot, args)
	memory, err := s.ctx.Alloc(int64(l.Size))
	if err != nil {
		return nil, driver.Buffer{}, err
	}
	return slot, memory, s.stream.ToDevice(memory, slot)
}

// expected reads what the reference wrote, output by output.
func (s *session) expected(args []problem.Arg, file string) ([][]float64, error) {
	data, err := os.ReadFile(filepath.Join(s.request.Dir, file))
	if err != nil {
		return nil, fmt.Errorf("reading expected outputs: %w", err)
	}
	var want [][]float64
	for _, a := range args {
		if !a.Array() || !a.Writes() {
			continue
		}
		if len(data) < 4*a.Elements {
			return nil, fmt.Errorf("reading expected outputs: %s is too short", file)
		}
		values := make([]float64, a.Elements)
		tensor.Decode(tensor.F32, values, data[:4*a.Elements])
		want, data = append(want, values), data[4*a.Elements:]
	}
	return want, nil
}

// cases runs the candidate twice and the baseline once on every case. A case in
// which the candidate fails is the last one: its context is gone.
func (s *session) cases() error {
	cand, err := s.load(candidate, s.request.Candidate)
	if failure, err := candidateFailure(err); failure != nil || err != nil {
		if err != nil {
			return err
		}
		first := s.request.Cases[0].evidence()
		first.Failure = failure
		return s.send(Reply{Case: &first})
	}
	var base *kernel
	if s.request.Baseline != nil {
		if base, err = s.load(baseline, s.request.Baseline); err != nil {
			return err
		}
	}
	for _, c := range s.request.Cases {
		evidence, err := s.compare(c, cand, base)
		failure, err := candidateFailure(err)
		if err != nil {
			return fmt.Errorf("%s, seed %d, %s inputs: %w", c.Shape, c.Seed, c.Distribution, err)
		}
		evidence.Failure = failure
		if err := s.send(Reply{Case: &evidence}); err != nil {
			return err
		}
		if failure != nil {
			return nil
		}
	}
	return nil
}

func (c Case) evidence() gates.Case {
	return runners.Case{Shape: c.Shape, Seed: c.Seed, Distribution: c.Distribution, Secret: c.Secret}.Evidence()
}

func (s *session) compare(c Case, cand, base *kernel) (gates.Case, error) {
	evidence := c.evidence()
	p, err := problem.New(s.manifest, c.Shape, cand.toggles, c.Distribution, c.Seed)
	if err != nil {
		return evidence, err
	}
	want, err := s.expected(p.Args, c.File+wantSuffix)
	if err != nil {
		return evidence, err
	}
	l := problem.NewLayout(p.Args, 0)
	first, err := s.once(cand, c, p.Args, l)
	if err != nil {
		return evidence, err
	}
	second, err := s.once(cand, c, p.Args, l)
	if err != nil {
		return evidence, err
	}
	evidence.InputsChanged, evidence.OutOfBounds = l.Changed(first, p.Args)
	outputs := l.Outputs(first)
	same := equal(outputs, l.Outputs(second))
	evidence.Deterministic = &same
	if evidence.Errors, err = runners.Compare(s.manifest, p.Args, outputs, want); err != nil {
		return evidence, err
	}
	if c.EndToEnd {
		original, err := s.expected(p.Args, c.File+originalSuffix)
		if err != nil {
			return evidence, err
		}
		if evidence.EndToEnd, err = runners.Compare(s.manifest, p.Args, outputs, original); err != nil {
			return evidence, err
		}
	}
	if base == nil {
		return evidence, nil
	}
	slot, err := s.once(base, c, p.Args, l)
	if err != nil {
		return evidence, err
	}
	theirs := l.Outputs(slot)
	parity := equal(outputs, theirs)
	evidence.BitParity = &parity
	evidence.Baseline, err = runners.Compare(s.manifest, p.Args, theirs, want)
	return evidence, err
}

// once launches a kernel on fresh memory and brings all of it back. The memory
// is freed on success alone: freeing waits for the GPU, and a kernel that never
// ends would keep it waiting.
func (s *session) once(k *kernel, c Case, args []problem.Arg, l problem.Layout) ([]byte, error) {
	slot, memory, err := s.upload(l, args)
	if err != nil {
		return nil, err
	}
	launch, err := s.prepare(k, c.Shape.Dims, args, l, memory.Ptr)
	if err != nil {
		return nil, err
	}
	if err := launch(); err != nil {
		return nil, err
	}
	if err := s.wait(k.who); err != nil {
		return nil, err
	}
	if err := s.stream.ToHost(slot, memory); err != nil {
		return nil, err
	}
	return slot, s.ctx.Free(memory)
}

func equal(a, b [][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// calibrate finds the time of a launch on every planned shape, of the faster
// side.
func (s *session) calibrate() error {
	micros := map[string]float64{}
	for who, side := range map[string]*Side{baseline: s.request.Baseline, candidate: s.request.Candidate} {
		k, err := s.load(who, side)
		if err != nil {
			return err
		}
		for _, plan := range s.request.Plans {
			t, err := s.rough(k, plan.Sets[0])
			if failure, err := candidateFailure(err); err != nil {
				return err
			} else if failure != nil {
				return s.send(Reply{Micros: micros}) // the round itself will tell
			}
			if had, ok := micros[plan.Shape]; !ok || t < had {
				micros[plan.Shape] = t
			}
		}
	}
	return s.send(Reply{Micros: micros})
}

// rough is the shortest of a few launches, in microseconds, by the host's clock
// over a run of them.
func (s *session) rough(k *kernel, c Case) (float64, error) {
	p, err := problem.New(s.manifest, c.Shape, k.toggles, c.Distribution, c.Seed)
	if err != nil {
		return 0, err
	}
	l := problem.NewLayout(p.Args, 0)
	_, memory, err := s.upload(l, p.Args)
	if err != nil {
		return 0, err
	}
	launch, err := s.prepare(k, c.Shape.Dims, p.Args, l, memory.Ptr)
	if err != nil {
		return 0, err
	}
	best := math.Inf(1)
	for range 5 {
		const launches = 8
		start := time.Now()
		for range launches {
			if err := launch(); err != nil {
				return 0, err
			}
		}
		if err := s.wait(k.who); err != nil {
			return 0, err
		}
		best = min(best, float64(time.Since(start).Microseconds())/launches)
	}
	return best, s.ctx.Free(memory)
}
