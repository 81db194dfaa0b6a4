package side

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/tensor"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// A Built is a kernel in machine code.
type Built struct {
	Image    string         `json:"image"`              // the cubin's file
	Entry    string         `json:"entry"`              // the kernel's symbol in it
	Manifest string         `json:"manifest,omitempty"` // the file that its implementation stands in; "" is the base's kernel.yaml
	Variant  string         `json:"variant,omitempty"`
	Toggles  map[string]int `json:"toggles,omitempty"`
	Globals  []string       `json:"globals,omitempty"` // variables that outlive a launch

	Start *toolchain.Start `json:"start,omitempty"` // how it is launched, where its compiler says so
	// Kinds is a file with the code of a kernel that has another for other launches: a mapping from keys of kernels.Special to
	// Built. What is said of the code is said there; the rest holds for all.
	Kinds string `json:"kinds,omitempty"`
}

// Joined is the manifest that the code is launched by: the problem of the base's
// kernel.yaml with the side's own implementation.
func (b Built) Joined(problem string) (*kernels.Manifest, error) {
	if b.Manifest == "" {
		return kernels.Parse(kernels.FileName, []byte(problem))
	}
	own, err := os.ReadFile(b.Manifest)
	if err != nil {
		return nil, fmt.Errorf("reading a side's manifest: %w", err)
	}
	return kernels.Join(kernels.FileName, []byte(problem), own)
}

// A Kernel is code on the GPU, in a context of this process.
type Kernel struct {
	ctx      *driver.Context
	stream   *driver.Stream
	manifest *kernels.Manifest
	built    Built
	image    []byte
	maps     bool // tensor maps for the arguments that ask for them
	geometry func(kernels.Dims) (kernels.Geometry, error)
	modules  []*module
	kinds    map[string]*Kernel // in place of modules, see Built.Kinds
	scratch  map[int][]driver.Buffer
	timeout  time.Duration
}

// A module is one copy of the code, with the memory that its launches leave
// behind.
type module struct {
	fn    *driver.Function
	state []state
}

type state struct{ live, first driver.Buffer }

// maxState is how much memory a kernel may keep for every launch of a batch to
// have a copy of its own. With more, the launches of a batch share it, and it is
// reset between batches alone; what they could do for each other shows in the
// times of single launches.
const maxState = 16 << 20

// Load puts a side's kernel onto the GPU.
func Load(c *driver.Context, s *driver.Stream, m *kernels.Manifest, b Built, timeout time.Duration) (*Kernel, error) {
	k := &Kernel{ctx: c, stream: s, manifest: m, built: b, maps: true, timeout: timeout}
	k.geometry = func(d kernels.Dims) (kernels.Geometry, error) { return m.Geometry(b.Variant, d, b.Toggles) }
	return k, k.load()
}

// LoadReference is Load for the base's reference, which takes plain arrays.
func LoadReference(c *driver.Context, s *driver.Stream, m *kernels.Manifest, b Built, timeout time.Duration) (*Kernel, error) {
	k := &Kernel{ctx: c, stream: s, manifest: m, built: b, geometry: m.ReferenceGeometry, timeout: timeout}
	return k, k.load()
}

func (k *Kernel) load() error {
	if k.built.Kinds != "" {
		return k.loadKinds()
	}
	var err error
	if k.image, err = os.ReadFile(k.built.Image); err != nil {
		return fmt.Errorf("reading machine code: %w", err)
	}
	return k.copies(1)
}

// copies sees to it that so many launches have a module of their own, where the
// code keeps state, and one together where it keeps none. Each is loaded anew.
func (k *Kernel) copies(n int) error {
	if len(k.modules) > 0 && (len(k.built.Globals) == 0 || k.stateSize() > maxState) {
		return nil
	}
	for len(k.modules) < n {
		loaded, err := k.ctx.LoadModule(k.image)
		if err != nil {
			return blame(err)
		}
		m := &module{}
		if m.fn, err = loaded.Function(k.built.Entry); err != nil {
			return blame(err)
		}
		for _, name := range k.built.Globals {
			live, err := loaded.Global(name)
			if driver.CodeOf(err) == driver.NotFound {
				continue // a name of the file alone; the driver shows those that others may use
			}
			if err != nil {
				return err
			}
			first, err := k.ctx.Alloc(live.Size)
			if err != nil {
				return err
			}
			if err := k.stream.CopyDevice(first, live); err != nil {
				return err
			}
			m.state = append(m.state, state{live, first})
		}
		k.modules = append(k.modules, m)
		if len(k.built.Globals) == 0 || k.stateSize() > maxState {
			return nil
		}
	}
	return nil
}

func (k *Kernel) stateSize() int64 {
	size := int64(0)
	for _, s := range k.modules[0].state {
		size += s.live.Size
	}
	return size
}

// Reset queues giving every variable the value that it was loaded with.
func (k *Kernel) Reset() error {
	for _, kind := range k.kinds {
		if err := kind.Reset(); err != nil {
			return err
		}
	}
	if err := k.resetScratch(); err != nil {
		return err
	}
	for _, m := range k.modules {
		for _, s := range m.state {
			if err := k.stream.CopyDevice(s.live, s.first); err != nil {
				return err
			}
		}
	}
	return nil
}

// Prepare is the n-th launch of a batch on arguments that lie at base, not done
// yet.
func (k *Kernel) Prepare(n int, dims kernels.Dims, args []tensor.Arg, offsets []int, base driver.DevicePtr) (func() error, error) {
	if k.kinds != nil {
		kind, err := k.kind(dims)
		if err != nil {
			return nil, err
		}
		return kind.Prepare(n, dims, args, offsets, base)
	}
	if err := k.copies(n + 1); err != nil {
		return nil, err
	}
	fn := k.modules[min(n, len(k.modules)-1)].fn
	g, err := k.geometry(dims)
	if err != nil {
		return nil, err
	}
	if k.built.Start != nil {
		g = started(g, *k.built.Start)
	}
	launch := driver.Launch{Grid: dim(g.Grid), Block: dim(g.Block), Shared: g.SharedMemory}
	if g.Cluster != [3]int{1, 1, 1} {
		launch.Cluster = dim(g.Cluster)
	}
	if g.SharedMemory > 48<<10 {
		if err := fn.AllowShared(g.SharedMemory); err != nil {
			return nil, blame(err)
		}
	}
	list, err := k.parameters(dims, args, offsets, base)
	if err == nil && k.built.Start != nil {
		err = k.addScratch(list, n, g)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return blame(fn.Launch(k.stream, launch, list)) }, nil
}

// parameters are what the kernel is launched with on arguments that lie at base.
func (k *Kernel) parameters(dims kernels.Dims, args []tensor.Arg, offsets []int, base driver.DevicePtr) (*driver.Args, error) {
	list := &driver.Args{}
	address := func(arg int) uint64 { return uint64(base) + uint64(offsets[arg]) }
	if s := k.built.Start; s != nil && s.Passed != nil {
		return list, pass(list, s.Passed, args, address)
	}
	for i, a := range args {
		at := driver.DevicePtr(address(i))
		switch {
		case a.Inside:
		case !a.Array():
			list.Bytes(a.Passed(args, address), a.Alignment())
		case k.maps && k.manifest.Arguments[i].TensorMap != nil:
			m, err := k.tensorMap(&k.manifest.Arguments[i], dims, at)
			if err != nil {
				return nil, err
			}
			list.TensorMap(m)
		default:
			list.Pointer(at)
		}
	}
	return list, nil
}

func dim(d [3]int) driver.Dim { return driver.Dim{X: uint32(d[0]), Y: uint32(d[1]), Z: uint32(d[2])} }

// Wait lets the stream run dry, but not for ever: an endless kernel is the
// failure of the side that was launched.
func (k *Kernel) Wait() error {
	deadline := time.Now().Add(k.timeout)
	for spins := 0; ; spins++ {
		done, err := k.stream.Done()
		if err != nil {
			return blame(err)
		}
		if done {
			return nil
		}
		if spins%64 == 63 && time.Now().After(deadline) {
			return &Failure{gates.Failure{Kind: gates.FailureTimeout, Detail: fmt.Sprintf("the kernel did not return within %v and was killed", k.timeout)}}
		}
	}
}

// A Failure is what the code on the GPU did wrong: evidence where it is the
// candidate's, a fault of the run otherwise.
type Failure struct{ gates.Failure }

func (f *Failure) Error() string { return f.Detail }

// blame turns what the driver says after a launch into the kernel's failure.
func blame(err error) error {
	failed, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return err
	}
	kind := gates.FailureLaunch
	switch {
	case failed.Code == driver.IllegalAddress || failed.Code == driver.MisalignedAddress:
		kind = gates.FailureIllegalAddress
	case failed.KernelFault():
		kind = gates.FailureCrash
	case failed.Code == driver.OutOfMemory:
		return err
	}
	return &Failure{gates.Failure{Kind: kind, Detail: fmt.Sprintf("the kernel failed on the GPU: %s (%s)", failed.Text, failed.Name)}}
}
