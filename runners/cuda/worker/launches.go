package worker

import (
	"fmt"

	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/problem"
)

// launches runs one side a few times on every case, for a tool around this process:
// a profiler, or a sanitizer, which wants the arguments apart.
func (s *session) launches() error {
	k, err := s.load(candidate, s.request.Candidate)
	if err != nil {
		return err
	}
	for _, c := range s.request.Cases {
		p, err := problem.New(s.manifest, c.Shape, k.toggles, c.Distribution, c.Seed)
		if err != nil {
			return err
		}
		for range s.request.Launch {
			if s.request.Apart {
				err = s.apart(k, c, p.Args)
			} else {
				_, err = s.once(k, c, p.Args, problem.NewLayout(p.Args, 0))
			}
			if err != nil {
				return fmt.Errorf("%s, seed %d, %s inputs: %w", c.Shape, c.Seed, c.Distribution, err)
			}
		}
	}
	return nil
}

// gap is memory between two arrays that nobody owns while the kernel runs.
const gap = 64 << 10

// apart launches a kernel whose arrays are allocations of their own, of their exact
// size. In the one allocation of all other launches a read beyond an array lands in a
// guard that a sanitizer takes for the kernel's, and arrays side by side would hide
// a read that leaves one for the next: so there is a gap between them, allocated with
// them and freed before the launch. Arrays that the kernel only writes are left as
// they are, for a sanitizer that looks for reads of memory that nobody wrote; and
// nothing is brought back, since that would read them.
func (s *session) apart(k *kernel, c Case, args []problem.Arg) error {
	// Every array at its own address: a layout whose base is 0.
	l := problem.Layout{Offsets: make([]int, len(args))}
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
		l.Offsets[i] = int(array.Ptr)
		if a.Reads() && a.Size() > 0 {
			if err := s.stream.ToDevice(array, a.Bytes); err != nil {
				return err
			}
		}
	}
	if err := s.free(gaps); err != nil {
		return err
	}
	launch, err := s.prepare(k, c.Shape.Dims, args, l, 0)
	if err != nil {
		return err
	}
	if err := launch(); err != nil {
		return err
	}
	if err := s.wait(k.who); err != nil {
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
