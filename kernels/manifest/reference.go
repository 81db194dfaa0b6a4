package manifest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Reference is the function that computes the expected output from real
// numbers, without the scales, which only undo the quantisation. In C it is
// called as ReferencePrototype says. In a .cu file it is a kernel of its own:
// arrays are const float* where the kernel reads and float* where it writes,
// scalars are the kernel's. Both get the dims that they ask for.
type Reference struct {
	Source string           `yaml:"source" required:"true" eg:"reference.c" doc:"In cpu mode a C file that computes in float64. In cuda mode a .cu file that computes in float32."`
	Entry  string           `yaml:"entry" required:"true" eg:"sdpa_reference" doc:"Function, or kernel of a .cu file, by its name in the source."`
	Dims   []string         `yaml:"dims" eg:"[S, D]" default:"(none)" doc:"Dims to pass after the arguments, in this order. Each is an int64_t (long long in a .cu file)."`
	Launch *ReferenceLaunch `yaml:"launch" eg:"{grid: [\"ceildiv(B*H*S, 4)\"], block: [128]}" default:"(required for a .cu file)" doc:"For a .cu file: grid, block and dynamic shared memory."`
}

// DimType is the format in which a reference is passed a dim.
const DimType = I64

// A ReferenceLaunch is how a reference on the device is started. It is the same
// for every variant: its expressions know the dims alone.
type ReferenceLaunch struct {
	Grid         []Expr `yaml:"grid" required:"true" eg:"[\"ceildiv(B*H*S, 4)\"]" bounds:"1 to 3 entries" doc:"Number of blocks along each axis."`
	Block        []Expr `yaml:"block" required:"true" eg:"[128]" bounds:"1 to 3 entries" doc:"Number of threads of a block along each axis."`
	SharedMemory *Expr  `yaml:"shared_memory" eg:"4*D" default:"(0)" doc:"Dynamic shared memory in bytes."`
}

func (r *Reference) ValidateStrict(n *strict.Node) {
	if n.Has("entry") {
		checkEntry(n.Child("entry"), r.Entry)
	}
}

func (l *ReferenceLaunch) ValidateStrict(n *strict.Node) {
	if n.Clean() {
		checkAxes(n, "grid", len(l.Grid))
		checkAxes(n, "block", len(l.Block))
	}
}

// launch shares the expressions, so that a fault still knows its place.
func (l *ReferenceLaunch) launch() *Start {
	return &Start{Grid: l.Grid, Block: l.Block, SharedMemory: l.SharedMemory, MaxThreads: maxThreads}
}

// ReferenceOnDevice tells whether the reference is a kernel too.
func (m *Manifest) ReferenceOnDevice() bool {
	return m.Mode == ModeCUDA && m.Reference != nil && m.Reference.deviceCode()
}

func (r *Reference) deviceCode() bool { return path.Ext(r.Source) == ".cu" }

// ReferenceGeometry is the launch of a reference on the device for one problem
// size.
func (m *Manifest) ReferenceGeometry(dims Dims) (Geometry, error) {
	if !m.ReferenceOnDevice() {
		return Geometry{}, fmt.Errorf("%s has no reference on the device: see ReferenceOnDevice", m.Name)
	}
	return m.Reference.Launch.launch().geometry(m.Env(dims, nil))
}

// checkReference sees to it that device code, and nothing else, has a launch.
func (c *checker) checkReference() {
	m, n := c.m, c.n.Child("reference")
	if m.Reference == nil || m.Reference.Source == "" {
		return
	}
	c.checkReferenceDims(n.Child("dims"))
	launched, device := given(n, "launch"), m.Reference.deviceCode()
	if m.Mode == ModeCPU && device {
		c.errorf(n.Child("source"), "%q is device code, which cpu mode does not run (write e.g. reference.c)", m.Reference.Source)
	}
	switch {
	case m.Mode == ModeCPU && launched:
		c.errorf(n.Child("launch"), "is not read in cpu mode (delete it)")
	case m.Mode == ModeCUDA && device && !launched:
		c.errorf(n.Child("launch"), "is required for a reference on the device (write e.g. launch: {grid: [\"ceildiv(S, 4)\"], block: [128]})")
	case m.Mode == ModeCUDA && !device:
		c.errorf(n.Child("source"), "%q is no CUDA file: the reference of a cuda kernel runs on the GPU (write a __global__ function in a .cu file, and its launch)", m.Reference.Source)
	}
}

// checkReferenceDims sees to it that the reference asks for dims, each once, and for none whose name is taken: its prototype has
// the arguments' names too.
func (c *checker) checkReferenceDims(at *strict.Node) {
	m := c.m
	for i, name := range m.Reference.Dims {
		place := itemOf(at, i)
		_, argument := m.argument(name)
		switch {
		case len(m.Shapes) > 0 && !slices.Contains(m.dims(), name):
			c.errorf(place, "%q is no dim of the shapes (write one of %s)", name, strings.Join(m.dims(), ", "))
		case slices.Contains(m.Reference.Dims[:i], name):
			c.errorf(place, "%q is passed already (delete it)", name)
		case argument:
			c.errorf(place, "%q is an argument, which the reference sees already (delete it)", name)
		}
	}
}
