// Package manifest is the language of kernel.yaml, the file that describes one
// kernel. It reads, checks and evaluates manifests. It compiles and runs nothing,
// and it reads no files.
//
// A manifest has two halves. The problem says what the kernel must compute and how
// that is judged: arguments, shapes, limits, reference, tolerance, work. It comes
// from the base, and is trusted. The implementation says how one side computes it:
// sources, entry, flags, launch, variants, toggles. It comes from the side that is
// built, and is not trusted. Join makes one manifest of the two.
package manifest

import (
	"slices"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Version is the manifest language that this program reads.
const Version = 1

// SchemaID is the address of the JSON Schema of manifests, for editors.
const SchemaID = "https://raw.githubusercontent.com/kernelgate/kernelgate/main/kernels/schema.json"

// A Mode is a way to build and run a kernel.
type Mode string

const (
	ModeCUDA    Mode = "cuda"    // device code, launched through the driver API
	ModeCPU     Mode = "cpu"     // C, called in a separate process
	ModeCommand Mode = "command" // any program that prints its measurements
)

var modes = []Mode{ModeCUDA, ModeCPU, ModeCommand}

func (m *Mode) UnmarshalStrict(n *strict.Node) {
	strict.WordCalled(n, m, modes, map[string]string{"gpu": "cuda", "nvidia": "cuda", "triton": "cuda", "host": "cpu", "c": "cpu"})
}
func (m *Mode) JSONSchema() map[string]any { return strict.WordSchema(modes) }

// A Manifest describes one kernel. Parse has checked every expression in it against every shape.
// The tag half says which half each field belongs to.
type Manifest struct {
	Version     int              `yaml:"version" half:"problem" required:"true" eg:"1" bounds:"(always 1)" doc:"Version of the manifest language."`
	Name        string           `yaml:"name" half:"problem" required:"true" eg:"sdpa_fp8" bounds:"(letters, digits, . _ -)" doc:"Name of the kernel in checks and commands."`
	Description string           `yaml:"description" half:"problem" eg:"FP8 attention, forward" doc:"One line of description."`
	Mode        Mode             `yaml:"mode" half:"problem" required:"true" eg:"cuda" doc:"cuda: device code only. cpu: a C function. command: any harness that prints JSON."`
	Arguments   []Argument       `yaml:"arguments" half:"problem" eg:"[{name: o, dtype: f16, access: out, shape: [S, D]}]" default:"(required for cuda and cpu)" bounds:"1 to 64 entries" doc:"Parameters of the kernel function, in order."`
	Shapes      Shapes           `yaml:"shapes" half:"problem" required:"true" eg:"{mission: {B: 1, H: 8, S: 512, D: 64}}" bounds:"(1 to 64 shapes of up to 16 dims)" doc:"Named problem sizes, all with the same dims. The value 0 is for a dim that works as a switch."`
	Limits      map[string]Range `yaml:"limits" half:"problem" eg:"{S: 1..4096, D: 64|128}" default:"(any value)" doc:"The values of each dim that the kernel supports."`
	Secret      map[string]Range `yaml:"secret" half:"problem" eg:"{S: 1..160}" default:"(no secret shapes)" doc:"Ranges of the secret test shapes, within the limits of the variant. From a range of up to four values each value is used in turn; from a larger range, random values. All other dims are those of the variant's first shape. One size is also timed, under the guard of the policy. policy lint warns if a dim covers less than two thirds of its limits. Up to 16 values are compared by their number, more by their span on a logarithmic scale."`
	Reference   *Reference       `yaml:"reference" half:"problem" eg:"{source: reference.c, entry: sdpa_reference}" default:"(required for cuda and cpu)" doc:"Function that computes the expected output from real numbers."`
	Tolerance   Tolerance        `yaml:"tolerance" half:"problem" eg:"{abs: 0.06}" default:"(required for cuda and cpu)" doc:"An element is bad if |err| > abs + rel·|want|."`
	Threads     int              `yaml:"threads" half:"problem" eg:"2" default:"1" bounds:"1 to 64" doc:"cpu: maximum number of threads of the kernel. With more than one, the kernel is built with OpenMP and timed by wall-clock time."`
	Work        *Work            `yaml:"work" half:"problem" eg:"{flops: 4*B*H*S*S*D, bytes: 5*B*H*S*D, peak: fp8}" doc:"Operations and bytes that the problem requires, for the roofline."`
	Recorded    Recordings       `yaml:"recorded" half:"problem" eg:"{decode: {file: inputs/decode.safetensors, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, shape: mission}}" default:"(none)" bounds:"(up to 16)" doc:"Real inputs from files. A policy lists them among its distributions: recorded, or recorded:decode."`
	Weights     *Weights         `yaml:"weights" half:"problem" eg:"{launches: {mission: 36}}" doc:"How often a step of the program launches the kernel at each shape, so that a policy can ask for the time of a whole step. kernelgate weights reads it from a trace of a profiler."`
	Rivals      []Rival          `yaml:"rivals" half:"problem" eg:"[{name: torch, command: [python3, rival.py]}]" doc:"Alternative implementations, timed only for information."`
	Command     *Command         `yaml:"command" half:"problem" eg:"{build: [make, bench], bench: [./bench]}" default:"(required for command)" doc:"command: commands that build and run the harness."`

	Root           string    `yaml:"root" half:"implementation" eg:"csrc/kernels" default:"(the folder of the manifest)" doc:"cuda and cpu: folder of the sources, relative to the root of the repository. A change may edit every file below it. For Triton: the folder that the package of the source is imported from. A single dot is the whole repository."`
	Source         string    `yaml:"source" half:"implementation" eg:"sdpa.c" default:"(required without variants, except for command)" doc:"File to compile, for a kernel with one variant."`
	Sources        []string  `yaml:"sources" half:"implementation" eg:"[\"*.c\", \"include/**\"]" default:"(C or CUDA sources and headers of the folder; all files for command)" doc:"Globs of the files that a change may edit, if there is no root; ** crosses folders. In command mode they belong to the problem, and all other files are the harness."`
	Include        []string  `yaml:"include" half:"implementation" eg:"[common, third_party/x/include, <cutlass>]" bounds:"(up to 16)" doc:"cuda and cpu: folders whose headers the sources may include, relative to the root of the repository. They may be in submodules. A name in <> is a set of headers on the runner; it finds <torch> and <python> itself. If the system or the toolkit has a header of the same name, that header is used. For Triton: folders that modules are imported from."`
	IncludeFirst   []string  `yaml:"include_first" half:"implementation" eg:"[third_party/cccl/libcudacxx/include]" bounds:"(up to 16, with those of include)" doc:"cuda and cpu: folders as in include that are searched before those of the system and the toolkit. Every change of a file in them is a change of the kernel, and the evidence lists each header of the system or the toolkit that they replace."`
	SkipInit       []string  `yaml:"skip_init" half:"implementation" eg:"[mypkg, mypkg.ops]" bounds:"(up to 32)" doc:"compiler: triton: packages of the repository whose __init__.py is not run when the source is imported."`
	Stubs          []string  `yaml:"stubs" half:"implementation" eg:"[apex, mypkg.distributed]" bounds:"(up to 32)" doc:"compiler: triton: modules that the source imports and the kernel does not use. A stand-in is imported in place of each and of everything below it, whether or not the runner has the module."`
	Compiler       Compiler  `yaml:"compiler" half:"implementation" eg:"triton" default:"nvcc" doc:"cuda: compiler of the source. nvcc: a .cu file. triton: a function in a .py file, compiled ahead of time. ptx: a .ptx file. command: the build command writes kernel.cubin and kernel.json."`
	Build          []string  `yaml:"build" half:"implementation" eg:"[python3, build.py]" default:"(required if the compiler is command)" doc:"compiler: command: program and arguments, without a shell. It runs in the folder of the kernel and writes to the folder $OUT."`
	Entry          string    `yaml:"entry" half:"implementation" eg:"sdpa_fp8" default:"(required for cuda and cpu, unless the launch has steps)" doc:"Kernel function, by its C or C++ name in the source: sdpa, ns::kernel, attention<64, true> (the build instantiates it), or scale(float*, const float*, int) to select an overload."`
	Arch           []Arch    `yaml:"arch" half:"implementation" eg:"[sm_89]" default:"(required for cuda)" doc:"cuda: architectures to compile for."`
	Flags          []string  `yaml:"flags" half:"implementation" eg:"[-O3]" doc:"cuda and cpu: compiler flags, from a fixed list."`
	Launch         *Launch   `yaml:"launch" half:"implementation" eg:"{grid: [\"ceildiv(S, 64)\"], block: [128]}" default:"(required for cuda, unless every variant has one)" doc:"cuda: grid, block and dynamic shared memory, or steps of several kernels. A variant may replace it."`
	Scratch        []Scratch `yaml:"scratch" half:"implementation" eg:"[{name: partial, dtype: f32, shape: [8, S, D]}]" bounds:"(up to 16, at most 1 GiB in total)" doc:"cuda: arrays through which the kernels of a launch pass data to each other. They are filled with poison before every launch. They are never compared, and the reference does not see them."`
	Variants       Variants  `yaml:"variants" half:"implementation" eg:"{stage1: {source: stage1.c}}" default:"(one variant, default, from source)" bounds:"(1 to 64)" doc:"Ways to build the kernel."`
	DefaultVariant string    `yaml:"default_variant" half:"implementation" eg:"stage2" default:"(required with more than one variant)" doc:"Variant that kernelgate check gates by default."`
	Choose         []Chosen  `yaml:"choose" half:"implementation" eg:"[{when: \"S >= 1024\", variant: stage2}, {variant: stage1}]" bounds:"(1 to 16)" doc:"cuda and cpu: choice of the variant by problem size, instead of default_variant. The first entry with a true condition is used. Commands and reports call this choice choose."`
	Toggles        Toggles   `yaml:"toggles" half:"implementation" eg:"{TILE: {values: [32, 64], default: 64, layer: micro}}" bounds:"(up to 64)" doc:"Macros that variants set and that a search may vary. In a Triton kernel: constants, for parameters of the same names."`
	Constants      Constants `yaml:"constants" half:"implementation" eg:"{BLOCK: 128, WIDTH: pow2ceil(D), CAUSAL: true, ACTIVATION: {text: silu}, OUT: {dtype: float16}}" bounds:"(up to 64)" doc:"compiler: triton: parameters that are not arguments, usually tl.constexpr. Each is an expression over dims and toggles, true, false, none, {text: …} or {dtype: …}. The kernel is compiled once for each combination of values."`
	Autotune       *Autotune `yaml:"autotune" half:"implementation" eg:"{BLOCK_M: \"S > 512 ? 128 : 64\", num_warps: 4}" default:"(required if the kernel has @triton.autotune)" doc:"compiler: triton: the configuration of @triton.autotune that is gated, by enough of its values to tell it from the others. Each value is written as under constants. all: the runner times every configuration and gates the fastest one of each shape. {all: {BLOCK_M: 64}}: the same, for a launch whose expressions use BLOCK_M; 64 is what lint computes with."`
	NumWarps       *Expr     `yaml:"num_warps" half:"implementation" eg:"8" default:"(4)" bounds:"1 to 32" doc:"compiler: triton: number of warps of a block, a power of two."`
	NumStages      *Expr     `yaml:"num_stages" half:"implementation" eg:"2" default:"(3)" bounds:"1 to 16" doc:"compiler: triton: number of stages of software pipelines."`
	NumCTAs        *Expr     `yaml:"num_ctas" half:"implementation" eg:"2" default:"(1)" bounds:"1 to 8" doc:"compiler: triton: number of blocks of a cluster (sm_90 and later)."`

	problem  *Manifest // the file of the problem, while two files are joined
	holdings *holdings // of its structs
	sms      int       // of the GPU; 0 where it is not known
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

// exprs returns every expression of the manifest. Work and the reference do not depend on the
// build, so they may not name a toggle.
func (m *Manifest) exprs() (all, overDims []*Expr) {
	all = exprsOf(m.Arguments, m.Scratch, m.Launch, m.Variants, m.Constants, m.Autotune, m.NumWarps, m.NumStages, m.NumCTAs)
	return all, exprsOf(m.Reference, m.Choose, m.Work)
}
