package worker

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// launches runs one kernel a few times on every case, for a tool around this process: a profiler,
// or a sanitizer, which needs the arguments in separate allocations. The kernel is the candidate,
// or the reference when the caller wants to know whether the tool works at all. Everything runs in
// one process because the tools need that. Nothing judges what the kernel computes here.
func (s *session) launches() error {
	if s.request.Candidate == nil && s.reference == nil {
		return s.drawInputs()
	}
	candidate, err := s.launched(s.candidate, s.request.Candidate)
	if err != nil {
		return err
	}
	baseline := candidate
	if s.request.Both {
		if baseline, err = s.launched(s.baseline, s.request.Baseline); err != nil {
			return err
		}
	}
	for _, c := range s.request.Cases {
		if err := s.draw(c, candidate, baseline); err != nil {
			return err
		}
		order := slices.Repeat([]*launched{candidate}, s.request.Launch)
		if s.request.Both {
			order = append(slices.Repeat([]*launched{baseline, candidate}, s.request.Launch), baseline, candidate, baseline)
		}
		for _, l := range order {
			launch := s.together
			if s.request.Apart {
				launch = s.apart
			}
			if err := launch(l.kernel, c, l.args); err != nil {
				return fmt.Errorf("%s, seed %d, %s inputs: %w", c.Shape, c.Seed, c.Distribution, err)
			}
		}
	}
	return nil
}

// A launched kernel is a side's, or the reference, which was built from no side.
type launched struct {
	kernel   *side.Kernel
	manifest *manifest.Manifest
	built    *side.Built
	args     []tensor.Arg // of the current case
}

func (s *session) launched(m *manifest.Manifest, built *side.Built) (l *launched, err error) {
	l = &launched{kernel: s.reference, manifest: m, built: built}
	if built != nil {
		l.kernel, err = side.Load(s.ctx, s.stream, m, *built, s.request.Timeout)
	}
	return l, err
}

// draw draws the inputs of a case for each kernel, at the same time: on the host they take longer than the launches.
func (s *session) draw(c Case, kernels ...*launched) error {
	var drawing sync.WaitGroup
	failures := make([]error, len(kernels))
	for i, l := range kernels {
		if slices.Index(kernels, l) == i {
			drawing.Go(func() { l.args, failures[i] = s.arguments(l, c) })
		}
	}
	drawing.Wait()
	return errors.Join(failures...)
}

// drawInputs launches the judge's own kernels, where the reference is none that could be launched.
func (s *session) drawInputs() error {
	for _, c := range s.request.Cases {
		p, err := tensor.Outline(s.manifest, c.Shape, nil)
		if err != nil {
			return err
		}
		batch, err := s.oracle.NewInputBatch(p, 1)
		if err != nil {
			return err
		}
		if err := batch.Draw(c.Distribution, []uint64{c.Seed}); err != nil {
			return err
		}
		if err := s.stream.Synchronize(); err != nil {
			return err
		}
	}
	return nil
}

// arguments is a case as the kernel takes it.
func (s *session) arguments(l *launched, c Case) ([]tensor.Arg, error) {
	if l.built != nil {
		serving, err := l.built.Serving(l.manifest, c.Shape.Dims)
		if err != nil {
			return nil, err
		}
		p, err := s.recordings.Problem(l.manifest, c.Shape, serving.Toggles, c.Distribution, c.Seed)
		if err != nil {
			return nil, err
		}
		scratch, err := tensor.Scratch(l.manifest, serving.Variant, c.Shape, serving.Toggles)
		return append(p.Args, scratch...), err
	}
	p, err := tensor.Outline(s.manifest, c.Shape, nil)
	if err != nil {
		return nil, err
	}
	var args []tensor.Arg
	for _, a := range p.Reference() {
		if a.Array() {
			a.DType = manifest.F32
			a.Bytes = make([]byte, a.Size()) // zeros are enough: nobody reads the result
		}
		args = append(args, a.Arg)
	}
	return args, nil
}

// together launches on arguments that lie in one slot, as they do when the kernel is timed.
func (s *session) together(k *side.Kernel, c Case, args []tensor.Arg) error {
	l := tensor.NewLayout(args, 0)
	slot := make([]byte, l.Size)
	l.Fill(slot, args)
	for i, a := range args {
		if a.Access == manifest.Scratched {
			tensor.Litter(a.DType, l.Array(slot, i), s.litter)
		}
	}
	memory, err := s.ctx.Alloc(int64(l.Size))
	if err != nil {
		return err
	}
	if err := s.stream.ToDevice(memory, slot); err != nil {
		return err
	}
	if err := run(k, c, args, l.Offsets, memory.Ptr); err != nil {
		return err
	}
	return s.ctx.Free(memory)
}

func run(k *side.Kernel, c Case, args []tensor.Arg, offsets []int, base driver.DevicePtr) error {
	launch, err := k.Prepare(0, c.Shape.Dims, args, offsets, base)
	if err != nil {
		return err
	}
	if err := launch(); err != nil {
		return err
	}
	return k.Wait()
}

// gap is the size of the freed memory between two arrays.
const gap = 64 << 10

// apart launches a kernel whose arrays are separate allocations of their exact size. In the single
// slot of all other launches, a read beyond an array hits a guard, which a sanitizer takes for the
// kernel's memory. Adjacent arrays would hide a read that runs from one into the next. So there is
// a gap between them, which is allocated with them and freed before the launch. Arrays that the
// kernel only writes stay uninitialised, for a sanitizer that looks for reads of such memory.
// Nothing is copied back, because that would read them.
func (s *session) apart(k *side.Kernel, c Case, args []tensor.Arg) error {
	addresses := make([]int, len(args)) // offsets from a base of 0
	var arrays, gaps []driver.Buffer
	for i, a := range args {
		if !a.Array() {
			continue
		}
		array, err := s.ctx.Alloc(int64(max(a.Size(), 1)))
		if err != nil {
			return err
		}
		between, err := s.ctx.Alloc(gap)
		if err != nil {
			return err
		}
		arrays, gaps = append(arrays, array), append(gaps, between)
		addresses[i] = int(array.Ptr)
		if a.Reads() && a.Size() > 0 {
			if err := s.stream.ToDevice(array, a.Bytes); err != nil {
				return err
			}
		}
	}
	if err := s.free(gaps); err != nil {
		return err
	}
	if err := run(k, c, args, addresses, 0); err != nil {
		return err
	}
	return s.free(arrays)
}

func (s *session) free(all []driver.Buffer) error {
	for _, b := range all {
		if err := s.ctx.Free(b); err != nil {
			return err
		}
	}
	return nil
}
