package worker

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/cuda/nvml"
	"github.com/kernelgate/kernelgate/runners/problem"
)

// A session is one request on its way.
type session struct {
	ctx      *driver.Context
	stream   *driver.Stream
	manifest *kernels.Manifest
	request  Request
	send     func(Reply) error
	gpu      *nvml.Device // nil where NVML does not answer
	l2       int64
}

func newSession(c *driver.Context, m *kernels.Manifest, r Request, send func(Reply) error) (*session, error) {
	stream, err := c.NewStream()
	if err != nil {
		return nil, err
	}
	p, err := c.Device().Properties()
	if err != nil {
		return nil, err
	}
	s := &session{ctx: c, stream: stream, manifest: m, request: r, send: send, l2: int64(p.L2Bytes)}
	if library, err := nvml.Open(); err == nil {
		if gpu, err := library.DeviceByPCI(p.PCIBusID); err == nil {
			s.gpu = &gpu
		}
	}
	return s, nil
}

// A kernel is one loaded side.
type kernel struct {
	who      string // baseline, candidate, control or reference
	fn       *driver.Function
	geometry func(kernels.Dims) (kernels.Geometry, error)
	toggles  map[string]int
}

// A kernelError is what the code on the GPU did wrong: evidence where it is the
// candidate's, a fault of the run otherwise.
type kernelError struct {
	who     string
	failure gates.Failure
}

func (e *kernelError) Error() string { return fmt.Sprintf("the %s: %s", e.who, e.failure.Detail) }

// candidateFailure tells the candidate's failure from all other errors.
func candidateFailure(err error) (*gates.Failure, error) {
	if k, ok := errors.AsType[*kernelError](err); ok && k.who == candidate {
		return &k.failure, nil
	}
	return nil, err
}

const (
	baseline  = "baseline"
	candidate = "candidate"
	control   = "control"
	reference = "reference"
)

// load puts a cubin onto the GPU. Each call loads it anew, so that a second copy
// of the baseline is a copy indeed.
func (s *session) load(who string, side *Side) (*kernel, error) {
	image, err := os.ReadFile(side.Image)
	if err != nil {
		return nil, fmt.Errorf("reading the %s's machine code: %w", who, err)
	}
	entry := s.manifest.Entry
	geometry := func(d kernels.Dims) (kernels.Geometry, error) {
		return s.manifest.Geometry(side.Variant, d, side.Toggles)
	}
	if who == reference {
		entry, geometry = s.manifest.Reference.Entry, s.manifest.ReferenceGeometry
	}
	module, err := s.ctx.LoadModule(image)
	if err != nil {
		return nil, s.blame(who, err)
	}
	fn, err := module.Function(entry)
	if err != nil {
		return nil, s.blame(who, err)
	}
	return &kernel{who: who, fn: fn, geometry: geometry, toggles: side.Toggles}, nil
}

// prepare is a launch of the kernel on arguments that lie at base, not done yet.
func (s *session) prepare(k *kernel, dims kernels.Dims, args []problem.Arg, l problem.Layout, base driver.DevicePtr) (func() error, error) {
	g, err := k.geometry(dims)
	if err != nil {
		return nil, err
	}
	launch := driver.Launch{Grid: dim(g.Grid), Block: dim(g.Block), Shared: g.SharedMemory}
	if g.Cluster != [3]int{1, 1, 1} {
		launch.Cluster = dim(g.Cluster)
	}
	if g.SharedMemory > 48<<10 {
		if err := k.fn.SetAttribute(driver.FuncMaxDynamicShared, g.SharedMemory); err != nil {
			return nil, s.blame(k.who, err)
		}
	}
	list := &driver.Args{}
	for i, a := range args {
		at := base + driver.DevicePtr(l.Offsets[i])
		switch {
		case !a.Array():
			list.Bytes(a.Bytes, len(a.Bytes))
		case k.who != reference && s.manifest.Arguments[i].TensorMap != nil:
			m, err := s.tensorMap(k, &s.manifest.Arguments[i], dims, at)
			if err != nil {
				return nil, err
			}
			list.TensorMap(m)
		default:
			list.Pointer(at)
		}
	}
	return func() error { return s.blame(k.who, k.fn.Launch(s.stream, launch, list)) }, nil
}

func dim(d [3]int) driver.Dim { return driver.Dim{X: uint32(d[0]), Y: uint32(d[1]), Z: uint32(d[2])} }

// wait lets the stream run dry, but not for ever: an endless kernel is the
// failure of the side that was launched.
func (s *session) wait(who string) error {
	deadline := time.Now().Add(s.request.Timeout)
	for spins := 0; ; spins++ {
		done, err := s.stream.Done()
		if err != nil {
			return s.blame(who, err)
		}
		if done {
			return nil
		}
		if spins%64 == 63 && time.Now().After(deadline) {
			return &kernelError{who, gates.Failure{Kind: "timeout", Detail: fmt.Sprintf("the kernel did not return within %v and was killed", s.request.Timeout)}}
		}
	}
}

// blame turns what the driver says after a launch into the kernel's failure.
func (s *session) blame(who string, err error) error {
	failed, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return err
	}
	kind := "launch"
	switch {
	case failed.Code == driver.IllegalAddress || failed.Code == driver.MisalignedAddress:
		kind = "illegal-address"
	case failed.KernelFault():
		kind = "crash"
	case failed.Code == driver.OutOfMemory:
		return err
	}
	return &kernelError{who, gates.Failure{Kind: kind, Detail: fmt.Sprintf("the kernel failed on the GPU: %s (%s)", failed.Text, failed.Name)}}
}

// fitness is the GPU's state right now; what cannot be read is left out.
func (s *session) fitness() *gates.Fitness {
	if s.gpu == nil {
		return nil
	}
	f := &gates.Fitness{ClockMHz: map[string]int{}}
	if mhz, err := s.gpu.Clock(nvml.SMClock); err == nil {
		f.ClockMHz["sm"] = mhz
	}
	if mhz, err := s.gpu.Clock(nvml.MemoryClock); err == nil {
		f.ClockMHz["memory"] = mhz
	}
	if r, err := s.gpu.Reasons(); err == nil {
		f.Throttle = r.Throttling().Names()
	}
	f.Celsius, _ = s.gpu.Temperature()
	f.Watts, _ = s.gpu.Power()
	if n, err := s.gpu.UncorrectedErrors(); err == nil {
		f.ECCErrors = int(n)
	}
	if processes, err := s.gpu.Processes(); err == nil {
		for _, p := range processes {
			if int(p.PID) != os.Getpid() {
				f.Foreign = append(f.Foreign, fmt.Sprintf("process %d", p.PID))
			}
		}
	}
	return f
}

// throttled tells whether something holds the clocks back at this moment.
func (s *session) throttled() bool {
	if s.gpu == nil {
		return false
	}
	r, err := s.gpu.Reasons()
	return err == nil && r.Throttling() != 0
}
