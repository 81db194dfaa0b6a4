package side

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// A Built is a kernel in machine code.
type Built struct {
	Image string `json:"image"` // the cubin's file
	// Symbols are the names of its kernels in the cubin, by entry.
	Symbols map[string]string `json:"symbols"`
	// Manifest is the file with its implementation; "" means the base's kernel.yaml.
	Manifest string         `json:"manifest,omitempty"`
	Variant  string         `json:"variant,omitempty"`
	Toggles  map[string]int `json:"toggles,omitempty"`
	Globals  []string       `json:"globals,omitempty"` // variables that outlive a launch

	// Parts are the variants of a choice by problem size on a device. They replace the image.
	Parts  []Built `json:"parts,omitempty"`
	Device string  `json:"device,omitempty"`

	// Start says how the code is launched, if its compiler says so.
	Start *toolchain.Start `json:"start,omitempty"`
	// Kinds is the file for a kernel that is compiled differently for different launches: a mapping
	// from keys of manifest.Special to Built. The fields about the code are set there; the other
	// fields hold for all of them.
	Kinds string `json:"kinds,omitempty"`
	// Exact tells that these keys have the values of scalars in them.
	Exact bool `json:"exact,omitempty"`
	// Picks are the configurations that were found fastest, see manifest.Picked.
	Picks []manifest.Pick `json:"picks,omitempty"`
}

// Joined returns the manifest that the code is launched by: the problem of the base's kernel.yaml
// with the side's implementation.
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

// A Kernel is code that is loaded on the GPU, in a context of this process.
type Kernel struct {
	ctx      *driver.Context
	stream   *driver.Stream
	manifest *manifest.Manifest
	built    Built
	image    []byte
	// maps means that arguments that ask for tensor maps get them.
	maps    bool
	launch  func(manifest.Dims) ([]manifest.StepAt, error) // the steps; nil for a choice
	modules []*module
	kinds   map[string]*Kernel // replaces modules, see Built.Kinds
	scratch map[int][]driver.Buffer
	timeout time.Duration
	parts   []*Kernel // of a choice by problem size, which has no code itself
}

// A module is one copy of the code, with the memory that its launches leave behind.
type module struct {
	functions map[string]*driver.Function // by entry
	shared    map[string]int              // dynamic shared memory that each may use
	state     []state
}

type state struct{ live, first driver.Buffer }

// maxState is the largest state, in bytes, for which every launch of a batch gets its own copy. If
// the state is larger, the launches of a batch share it, and it is reset only between batches. If
// one launch then saved work for the next, the times of single launches would show it.
const maxState = 16 << 20

// Load loads a side's kernel onto the GPU.
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

// copies ensures that each of n launches has its own module if the code keeps state. Launches of
// code without state share one module. Each module is loaded from the image.
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
				continue // local to its file: the driver does not find each of these
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

// Reset queues copies that give every variable its initial value again.
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

// Wait waits until the stream is empty, with a time limit. A kernel that does not end is the
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

// A Failure says what the code on the GPU did wrong. It is evidence if the candidate failed, and
// otherwise a fault of the run.
type Failure struct{ gates.Failure }

func (f *Failure) Error() string { return f.Detail }

// blame turns a driver error after a launch into a failure of the kernel.
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
