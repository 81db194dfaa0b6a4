// Package kernels is the manifest language: what a kernel.yaml says of one
// kernel. It reads, checks and evaluates manifests; it compiles and runs nothing
// and touches no disk.
//
// A manifest has two halves. The problem is what is asked of the kernel and how
// that is judged: arguments, shapes, limits, reference, tolerance, work. It is
// trusted, and comes from the base. The implementation is how the same outputs are
// computed: sources, entry, flags, launch, variants, toggles. It is the author's,
// and comes from the side that is built. Join makes one manifest of the two.
package kernels

import (
	"embed"
	"slices"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Version is the manifest language that this program reads.
const Version = 1

// Shipped holds the kernels that come with the program, one folder each.
//
//go:embed sdpa_cpu
var Shipped embed.FS

// A Mode is a way to build and run a kernel.
type Mode string

const (
	ModeCUDA    Mode = "cuda"    // device code, launched through the driver API
	ModeCPU     Mode = "cpu"     // C, called in a process of its own
	ModeCommand Mode = "command" // any program that prints its measurements
)

var modes = []Mode{ModeCUDA, ModeCPU, ModeCommand}

func (m *Mode) UnmarshalStrict(n *strict.Node) { strict.WordCalled(n, m, modes, map[string]string{"gpu": "cuda", "nvidia": "cuda", "triton": "cuda", "host": "cpu", "c": "cpu"}) }
func (m *Mode) JSONSchema() map[string]any     { return strict.WordSchema(modes) }

// A Manifest describes one kernel. Parse has checked every expression in it
// against every shape. The tag half says whose each field is.
type Manifest struct {
	Version     int              `yaml:"version" half:"problem" required:"true" eg:"1" bounds:"(always 1)" doc:"Version of the manifest language."`
	Name        string           `yaml:"name" half:"problem" required:"true" eg:"sdpa_fp8" bounds:"(letters, digits, . _ -)" doc:"What the kernel is called in checks and commands."`
	Description string           `yaml:"description" half:"problem" eg:"FP8 attention, forward" doc:"One line for people."`
	Mode        Mode             `yaml:"mode" half:"problem" required:"true" eg:"cuda" doc:"cuda: device code only. cpu: a C function. command: any harness that prints JSON."`
	Arguments   []Argument       `yaml:"arguments" half:"problem" eg:"[{name: o, dtype: f16, access: out, shape: [S, D]}]" default:"(required for cuda and cpu)" bounds:"1 to 64 entries" doc:"The kernel function's parameters, in order."`
	Shapes      Shapes           `yaml:"shapes" half:"problem" required:"true" eg:"{mission: {B: 1, H: 8, S: 512, D: 64}}" bounds:"(1 to 64 shapes of up to 16 dims)" doc:"Named problem sizes, all over the same dims. 0 is for a dim that is a switch."`
	Limits      map[string]Range `yaml:"limits" half:"problem" eg:"{S: 1..4096, D: 64|128}" default:"(any value)" doc:"The values of each dim that the kernel supports."`
	Secret      map[string]Range `yaml:"secret" half:"problem" eg:"{S: 1..160}" default:"(no secret shapes)" doc:"Where secret test shapes are drawn from, within the variant's limits: each of up to four values in turn, of more any. Other dims are those of its first shape. One size is also timed under the policy's guard. policy lint warns where a dim covers less than two thirds of its limits: by the number of values up to 16, beyond that by the span on a logarithmic scale."`
	Reference   *Reference       `yaml:"reference" half:"problem" eg:"{source: reference.c, entry: sdpa_reference}" default:"(required for cuda and cpu)" doc:"The function that computes the expected output from real numbers."`
	Tolerance   Tolerance        `yaml:"tolerance" half:"problem" eg:"{abs: 0.06}" default:"(required for cuda and cpu)" doc:"An element is bad when |err| > abs + rel·|want|."`
	Threads     int              `yaml:"threads" half:"problem" eg:"2" default:"1" bounds:"1 to 64" doc:"cpu: how many threads the kernel may have. With more than one it is built with OpenMP, and timed by the clock on the wall."`
	Work        *Work            `yaml:"work" half:"problem" eg:"{flops: 4*B*H*S*S*D, bytes: 5*B*H*S*D, peak: fp8}" doc:"What the kernel must compute and move: the roofline."`
	Rivals      []Rival          `yaml:"rivals" half:"problem" eg:"[{name: torch, command: [python3, rival.py]}]" doc:"Other implementations, timed for information."`
	Command     *Command         `yaml:"command" half:"problem" eg:"{build: [make, bench], bench: [./bench]}" default:"(required for command)" doc:"command: how the harness is built and run."`

	Root           string           `yaml:"root" half:"implementation" eg:"csrc/kernels" default:"(the manifest's own folder)" doc:"cuda and cpu: the folder of the repository, from its root, that the sources are in. Every file below it is the author's."`
	Source         string           `yaml:"source" half:"implementation" eg:"sdpa.c" default:"(required without variants, but for command)" doc:"The file to compile, for a kernel of one variant."`
	Sources        []string         `yaml:"sources" half:"implementation" eg:"[\"*.c\", \"include/**\"]" default:"(C or CUDA sources and headers of the folder; everything for command)" doc:"Globs of the files that a change may bring, without root; ** crosses folders. In command mode they are of the problem: the harness is what they leave out."`
	Include        []string         `yaml:"include" half:"implementation" eg:"[common, third_party/x/include, <cutlass>]" bounds:"(up to 16)" doc:"cuda and cpu: folders of the repository, from its root, submodules among them, whose headers the sources may include; a name in <> is a set of headers that the runner has. A header of the system or the toolkit of the same name comes first."`
	Compiler       Compiler         `yaml:"compiler" half:"implementation" eg:"triton" default:"nvcc" doc:"cuda: what makes machine code of the source. nvcc: a .cu file. triton: a function of a .py file, compiled ahead of time. ptx: a .ptx file. command: build writes kernel.cubin and kernel.json."`
	Build          []string         `yaml:"build" half:"implementation" eg:"[python3, build.py]" default:"(required where the compiler is command)" doc:"compiler: command: program and arguments, run in the kernel's folder with $OUT as the folder to write to; no shell."`
	Entry          string           `yaml:"entry" half:"implementation" eg:"sdpa_fp8" default:"(required for cuda and cpu, unless the launch has steps)" doc:"The kernel function by its name in the source, C or C++: sdpa, ns::kernel, attention<64, true> (which the build instantiates), scale(float*, const float*, int) where there are several."`
	Arch           []Arch           `yaml:"arch" half:"implementation" eg:"[sm_89]" default:"(required for cuda)" doc:"cuda: the architectures to compile for."`
	Flags          []string         `yaml:"flags" half:"implementation" eg:"[-O3]" doc:"cuda and cpu: compiler flags, from a fixed list."`
	Launch         *Launch          `yaml:"launch" half:"implementation" eg:"{grid: [\"ceildiv(S, 64)\"], block: [128]}" default:"(required for cuda, unless every variant has one)" doc:"cuda: grid, block and dynamic shared memory, or steps of several kernels. A variant may have its own."`
	Scratch        []Scratch        `yaml:"scratch" half:"implementation" eg:"[{name: partial, dtype: f32, shape: [8, S, D]}]" bounds:"(up to 16, of 1 GiB together)" doc:"cuda: arrays that the kernels of a launch use between them. They are poisoned before every launch, never compared, and not shown to the reference."`
	Variants       Variants         `yaml:"variants" half:"implementation" eg:"{stage1: {source: stage1.c}}" default:"(one, default, of source)" bounds:"(1 to 64)" doc:"Ways to build the kernel."`
	DefaultVariant string           `yaml:"default_variant" half:"implementation" eg:"stage2" default:"(required with more than one variant)" doc:"The variant that a plain check gates."`
	Choose         []Chosen         `yaml:"choose" half:"implementation" eg:"[{when: \"S >= 1024\", variant: stage2}, {variant: stage1}]" bounds:"(1 to 16)" doc:"cuda and cpu: a choice by problem size in place of default_variant. The first entry whose condition holds serves a problem. Commands and reports call it choose."`
	Toggles        Toggles          `yaml:"toggles" half:"implementation" eg:"{TILE: {values: [32, 64], default: 64, layer: micro}}" bounds:"(up to 64)" doc:"Macros that variants set and a search may try; constants of a Triton kernel that has parameters of their names."`
	Constants      map[string]*Expr `yaml:"constants" half:"implementation" eg:"{BLOCK: 128, WIDTH: pow2ceil(D)}" bounds:"(up to 64)" doc:"compiler: triton: parameters that are no arguments, above all those that are tl.constexpr, each an expression over dims and toggles. Where it has another value, the kernel is compiled once more."`
	NumWarps       *Expr            `yaml:"num_warps" half:"implementation" eg:"8" default:"(4)" bounds:"1 to 32" doc:"compiler: triton: warps of a block, a power of two."`
	NumStages      *Expr            `yaml:"num_stages" half:"implementation" eg:"2" default:"(3)" bounds:"1 to 16" doc:"compiler: triton: stages of its software pipelines."`
	NumCTAs        *Expr            `yaml:"num_ctas" half:"implementation" eg:"2" default:"(1)" bounds:"1 to 8" doc:"compiler: triton: blocks of a cluster (sm_90 and later)."`

	problem  *Manifest // whose problem it is, while two files are joined
	holdings *holdings // of its structs
}

// Parse reads a manifest. The error is a strict.Problems that names every
// mistake by file, line and field.
func Parse(file string, data []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := strict.Decode(file, data, m); err != nil {
		return nil, err
	}
	return m, nil
}

// Shape finds a shape by its name.
func (m *Manifest) Shape(name string) (Shape, bool) {
	i := slices.IndexFunc(m.Shapes, func(s Shape) bool { return s.Name == name })
	if i < 0 {
		return Shape{}, false
	}
	return m.Shapes[i], true
}

// ShapeNames lists the shapes in the manifest's order.
func (m *Manifest) ShapeNames() []string {
	return mapped(m.Shapes, func(s Shape) string { return s.Name })
}

// argument finds an argument by its name.
func (m *Manifest) argument(name string) (*Argument, bool) {
	i := slices.IndexFunc(m.Arguments, func(a Argument) bool { return a.Name == name })
	if i < 0 {
		return nil, false
	}
	return &m.Arguments[i], true
}

func (m *Manifest) argumentNames() []string {
	return mapped(m.Arguments, func(a Argument) string { return a.Name })
}

// dims are the names that every shape gives a value to.
func (m *Manifest) dims() []string {
	if len(m.Shapes) == 0 {
		return nil
	}
	return m.Shapes[0].Dims.Names()
}

// exprs is every expression of the manifest. Work and the reference are the
// same whatever the build, so they may not name a toggle.
func (m *Manifest) exprs() (all, overDims []*Expr) {
	all = exprsOf(m.Arguments, m.Scratch, m.Launch, m.Variants, m.Constants, m.NumWarps, m.NumStages, m.NumCTAs)
	return all, exprsOf(m.Reference, m.Choose, m.Work)
}
