package side

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// A Built is a kernel in machine code.
type Built struct {
	Image    string            `json:"image"`              // the cubin's file
	Symbols  map[string]string `json:"symbols"`            // of its kernels in it, by entry
	Manifest string            `json:"manifest,omitempty"` // the file that its implementation stands in; "" is the base's kernel.yaml
	Variant  string            `json:"variant,omitempty"`
	Toggles  map[string]int    `json:"toggles,omitempty"`
	Globals  []string          `json:"globals,omitempty"` // variables that outlive a launch

	// Parts are the variants of a choice by problem size on a device, in place of an image.
	Parts  []Built `json:"parts,omitempty"`
	Device string  `json:"device,omitempty"`

	Start *toolchain.Start `json:"start,omitempty"` // how it is launched, where its compiler says so
	// Kinds is a file with the code of a kernel that has another for other launches: a mapping from keys of kernels.Special to
	// Built. What is said of the code is said there; the rest holds for all.
	Kinds string `json:"kinds,omitempty"`
	// Exact tells that these keys have the values of scalars in them.
	Exact bool `json:"exact,omitempty"`
	// Picks are the configurations that were found fastest, see manifest.Picked.
	Picks []manifest.Pick `json:"picks,omitempty"`
}

// Joined is the manifest that the code is launched by: the problem of the base's
// kernel.yaml with the side's own implementation.
func (b Built) Joined(problem string) (*manifest.Manifest, error) {
	m, err := b.joined(problem)
	if err != nil {
		return nil, err
	}
	return m.Picked(b.Picks), nil
}

func (b Built) joined(problem string) (*manifest.Manifest, error) {
	if b.Manifest == "" {
		return manifest.Parse(manifest.FileName, []byte(problem))
	}
	own, err := os.ReadFile(b.Manifest)
	if err != nil {
		return nil, fmt.Errorf("reading a side's manifest: %w", err)
	}
	return manifest.Join(manifest.FileName, []byte(problem), own)
}

// A Kernel is code on the GPU, in a context of this process.
type Kernel struct {
	ctx      *driver.Context
	stream   *driver.Stream
	manifest *manifest.Manifest
	built    Built
	image    []byte
	maps     bool                                           // tensor maps for the arguments that ask for them
	launch   func(manifest.Dims) ([]manifest.StepAt, error) // its steps; a choice has none of its own
	modules  []*module
	kinds    map[string]*Kernel // in place of modules, see Built.Kinds
	scratch  map[int][]driver.Buffer
	timeout  time.Duration
	parts    []*Kernel // of a choice by problem size, which has no code of its own
}

// A module is one copy of the code, with the memory that its launches leave
// behind.
type module struct {
	functions map[string]*driver.Function // by entry
	shared    map[string]int              // dynamic shared memory that each is allowed
	state     []state
}

type state struct{ live, first driver.Buffer }

// maxState is how much memory a kernel may keep for every launch of a batch to
// have a copy of its own. With more, the launches of a batch share it, and it is
// reset between batches alone; what they could do for each other shows in the
// times of single launches.
const maxState = 16 << 20

// Load puts a side's kernel onto the GPU.
func Load(c *driver.Context, s *driver.Stream, m *manifest.Manifest, b Built, timeout time.Duration) (*Kernel, error) {
	k := &Kernel{ctx: c, stream: s, manifest: m, built: b, maps: true, timeout: timeout}
	if len(b.Parts) > 0 {
		return k, k.loadParts()
	}
	k.launch = func(d manifest.Dims) ([]manifest.StepAt, error) { return m.Steps(b.Variant, d, b.Toggles) }
	return k, k.load()
}

// LoadReference is Load for the base's reference, which takes plain arrays.
func LoadReference(c *driver.Context, s *driver.Stream, m *manifest.Manifest, b Built, timeout time.Duration) (*Kernel, error) {
	k := &Kernel{ctx: c, stream: s, manifest: m, built: b, timeout: timeout}
	k.launch = func(d manifest.Dims) ([]manifest.StepAt, error) {
		g, err := m.ReferenceGeometry(d)
		return []manifest.StepAt{{Entry: m.Reference.Entry, Geometry: g}}, err
	}
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
		m := &module{functions: map[string]*driver.Function{}, shared: map[string]int{}}
		for entry, symbol := range k.built.Symbols {
			if m.functions[entry], err = loaded.Function(symbol); err != nil {
				return blame(err)
			}
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
	for _, part := range k.parts {
		if err := part.Reset(); err != nil {
			return err
		}
	}
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
