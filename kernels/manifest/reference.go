package manifest

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Reference is the function that computes the expected output from real numbers, without the
// scales, which only undo the quantisation. In C it is called by ReferencePrototype. In a .cu file
// it is a separate kernel: arrays are const float* if the kernel reads them and float* if it writes
// them, and scalars are the kernel's. Both get the dims that they ask for. In Python it is a
// function over arrays, or one expression: see PythonReference.
type Reference struct {
	Source string           `yaml:"source" eg:"reference.c" default:"(required without torch)" doc:"In cpu mode a C file that computes in float64. In cuda mode a .cu file that computes in float32. In both modes a .py file that computes in float64 with NumPy or PyTorch."`
	Entry  string           `yaml:"entry" eg:"sdpa_reference" default:"(required without torch)" doc:"Function, or kernel of a .cu file, by its name in the source."`
	Torch  string           `yaml:"torch" eg:"F.softmax(x, -1)" default:"(none)" bounds:"(one line of up to 2000 characters)" doc:"Instead of source and entry: an expression in Python over the inputs, scalars and dims by name, with torch, F (torch.nn.functional) and math. Its value is the output, or a tuple of the outputs in their order."`
	DType  ReferenceDType   `yaml:"dtype" eg:"float32" default:"(float64)" doc:"In Python: the format of the floating-point arrays that the reference gets."`
	Device ReferenceDevice  `yaml:"device" eg:"cuda" default:"(cpu)" doc:"In Python, with PyTorch, for a kernel of cuda mode: where the arrays are."`
	Dims   []string         `yaml:"dims" eg:"[S, D]" default:"(none)" doc:"Dims to pass after the arguments, in this order. Each is an int64_t (long long in a .cu file). A function in Python names the dims that it needs among its parameters."`
	Launch *ReferenceLaunch `yaml:"launch" eg:"{grid: [\"ceildiv(B*H*S, 4)\"], block: [128]}" default:"(required for a .cu file)" doc:"For a .cu file: grid, block and dynamic shared memory."`
}

// DimType is the format in which a reference is passed a dim.
const DimType = I64

// A ReferenceLaunch says how a reference on the device is launched. It is the same for every
// variant: its expressions know only the dims.
type ReferenceLaunch struct {
	Grid         []Expr `yaml:"grid" required:"true" eg:"[\"ceildiv(B*H*S, 4)\"]" bounds:"1 to 3 entries" doc:"Number of blocks along each axis."`
	Block        []Expr `yaml:"block" required:"true" eg:"[128]" bounds:"1 to 3 entries" doc:"Number of threads of a block along each axis."`
	SharedMemory *Expr  `yaml:"shared_memory" eg:"4*D" default:"(0)" doc:"Dynamic shared memory in bytes."`
}

func (r *Reference) ValidateStrict(n *strict.Node) {
	if n.Has("entry") && !r.Python() {
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

// ReferenceOnDevice reports whether the reference is a kernel.
func (m *Manifest) ReferenceOnDevice() bool {
	return m.Mode == ModeCUDA && m.Reference != nil && m.Reference.deviceCode()
}

func (r *Reference) deviceCode() bool { return path.Ext(r.Source) == ".cu" }

// ReferenceGeometry returns the launch of a reference on the device for one problem size.
func (m *Manifest) ReferenceGeometry(dims Dims) (Geometry, error) {
	if !m.ReferenceOnDevice() {
		return Geometry{}, fmt.Errorf("%s has no reference on the device: see ReferenceOnDevice", m.Name)
	}
	return m.Reference.Launch.launch().geometry(m.Env(dims, nil))
}

// checkReference checks that device code, and nothing else, has a launch.
func (c *checker) checkReference() {
	m, n := c.m, c.n.Child("reference")
	if m.Reference == nil {
		return
	}
	if m.Reference.Python() {
		c.checkPythonReference(n)
		return
	}
	for _, field := range []struct{ name, example string }{{"source", "reference.c"}, {"entry", "sdpa_reference"}} {
		if !given(n, field.name) {
			c.errorf(n.Child(field.name), "is required (write e.g. %s: %s)", field.name, field.example)
		}
	}
	for _, field := range []string{"dtype", "device"} {
		if given(n, field) {
			c.errorf(n.Child(field), "is for a reference in Python (delete it, or name a .py file as the source)")
		}
	}
	if m.Reference.Source == "" {
		return
	}
	c.checkReferenceDims(n.Child("dims"))
	launched, device := given(n, "launch"), m.Reference.deviceCode()
	if m.Mode == ModeCPU && device {
		c.errorf(n.Child("source"), "%q is device code, which cpu mode does not run (write e.g. reference.c or reference.py)", m.Reference.Source)
	}
	switch {
	case m.Mode == ModeCPU && launched:
		c.errorf(n.Child("launch"), "is not read in cpu mode (delete it)")
	case m.Mode == ModeCUDA && device && !launched:
		c.errorf(n.Child("launch"), "is required for a reference on the device (write e.g. launch: {grid: [\"ceildiv(S, 4)\"], block: [128]})")
	case m.Mode == ModeCUDA && !device:
		c.errorf(n.Child("source"), "%q is no CUDA file: the reference of a cuda kernel runs on the GPU (write a __global__ function in a .cu file, and its launch, or a function in a .py file)", m.Reference.Source)
	}
}

// checkReferenceDims checks that the reference asks for existing dims, each once, and for none
// whose name an argument has: its prototype has both.
func (c *checker) checkReferenceDims(at *strict.Node) {
	m := c.m
	for i, name := range m.Reference.Dims {
		place := itemOf(at, i)
		a, argument := m.argument(name)
		switch {
		case len(m.Shapes) > 0 && !slices.Contains(m.dims(), name):
			c.errorf(place, "%q is no dim of the shapes (write one of %s)", name, strings.Join(m.dims(), ", "))
		case slices.Contains(m.Reference.Dims[:i], name):
			c.errorf(place, "%q is passed already (delete it)", name)
		case argument && a.Setting == nil:
			c.errorf(place, "%q is an argument, which the reference sees already (delete it)", name)
		}
	}
}
