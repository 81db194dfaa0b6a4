// Package cpu gathers evidence about kernels written in C for the CPU. It builds them with the
// system's compiler and runs each side in a separate sandbox, over shared memory, in a new process
// for every sample. The worker keeps inputs, clock, poison, guards and verification; the child only
// runs the kernel, and whatever it does to itself is evidence.
package cpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/object"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// Mode is the mode of the kernels that this backend measures.
const Mode = manifest.ModeCPU

// Config is what a worker needs in addition to the job.
type Config struct {
	Scratch       string        // folder for objects and executables; the caller removes it
	LaunchTimeout time.Duration // of one launch; 0 is sandbox.LaunchTime
	Seed          uint64        // of secret cases, inputs and order; 0 draws a random seed
	Getenv        func(string) string
}

// A Worker measures one job on this machine's CPU.
type Worker struct {
	runners.WithoutNotes
	runners.WithoutArtifacts
	runners.WithoutEnergy
	runners.ArmSet[*executable]
	job      runners.Job
	cc       toolchain.CC
	compiler compiler // cc itself
	config   Config
	rng      *rand.Rand
	sides    map[runners.Role]*executable
	ref      *executable
	python   *pyref.Reference // nil if the reference is in C
	recorded tensor.Recordings
	batches  map[string]int // launches per sample, by shape
	log      strings.Builder
	once     bool // nothing is compiled twice, see BuildArm
}

// A compiler does what a [toolchain.CC] does.
type compiler interface {
	Run(ctx context.Context, call toolchain.Compile) (log string, err error)
}

// An executable is one built side: a program that runs its kernel on command.
type executable struct {
	path     string
	symbol   string // the symbol of the entry in the object
	variant  string
	manifest *manifest.Manifest
	toggles  map[string]int
	threads  int
	parts    []*executable // of a choice by problem size, which has no program itself
}

// NewWorker finds a compiler for the job's sources.
func NewWorker(ctx context.Context, job runners.Job, config Config) (*Worker, error) {
	if job.Manifest.Mode != Mode {
		return nil, fmt.Errorf("%s is a %s kernel: the cpu runner builds cpu kernels", job.Manifest.Name, job.Manifest.Mode)
	}
	if _, err := filterText(1); err != nil {
		return nil, err
	}
	if n := job.Manifest.Threads; n > runtime.NumCPU() {
		return nil, runners.SetupErrorf("%s declares %d threads, and this machine has %d processors: run it on one with as many, or write fewer threads in the manifest", job.Manifest.Name, n, runtime.NumCPU())
	}
	cc, err := toolchain.FindCC(ctx, config.Getenv, isCXX(job))
	if err != nil {
		return nil, err
	}
	config.LaunchTimeout, config.Seed = cmp.Or(config.LaunchTimeout, sandbox.LaunchTime), runners.Seed(config.Seed)
	w := &Worker{
		job: job, cc: cc, compiler: cc, config: config, rng: rand.New(rand.NewPCG(config.Seed, 0)),
		sides: map[runners.Role]*executable{}, batches: map[string]int{},
	}
	if job.Manifest.Reference.Python() {
		w.python = pyref.StartReference(ctx, job, pyref.ReferenceConfig{Scratch: config.Scratch, Getenv: config.Getenv})
	}
	return w, nil
}

// isCXX reports whether a side is written in C++: one compiler builds both sides.
func isCXX(job runners.Job) bool {
	manifests := []*manifest.Manifest{job.Of(job.Candidate)}
	if job.Baseline != nil {
		manifests = append(manifests, job.Of(*job.Baseline))
	}
	for _, m := range manifests {
		for _, name := range m.VariantNames() {
			v, _ := m.Variant(name)
			if language(v.Source) == manifest.LanguageCXX {
				return true
			}
		}
	}
	return false
}

// Seed returns the seed of everything secret in the run.
func (w *Worker) Seed() uint64 { return w.config.Seed }

// Tools returns the programs that took part.
func (w *Worker) Tools() map[string]string {
	tools := map[string]string{"cc": w.cc.Version}
	maps.Copy(tools, w.python.Tools())
	return tools
}

// BuildLog returns everything that the compiler printed.
func (w *Worker) BuildLog() string { return w.log.String() }

// buildVariant compiles one variant of a side to an object, reads its resources, and
// links it with the stub.
func (w *Worker) buildVariant(ctx context.Context, name string, side runners.Side) (gates.Build, *executable, error) {
	m := w.job.Of(side)
	variant, err := m.Variant(side.Variant)
	if err != nil {
		return gates.Build{}, nil, err
	}
	start := time.Now()
	toggles := m.ToggleValues(side.Variant)
	flags := append(m.CompilerFlags(side.Variant), m.Defines(side.Variant)...)
	b := gates.Build{
		Variant: side.Variant, Source: variant.Source, Toggles: toggles, Flags: flags,
		Compiler: w.cc.Version, Arch: w.Device().Arch,
	}
	if b.Shadowed, err = w.cc.Shadowed(ctx, side.Dir, m); err != nil {
		return b, nil, err
	}
	made, err := w.compileTwice(ctx, name, side, m.SourceFile(variant), append(m.IncludeFlags(), append(flags, openMP(m)...)...))
	var refusal *output.CompileError
	if errors.As(err, &refusal) {
		b.Error, b.Diagnostics = refusal.Summary, refusal.Diagnostics
		b.Seconds = time.Since(start).Seconds()
		return b, nil, nil
	}
	if err != nil {
		return b, nil, err
	}
	if strings.HasPrefix(name, string(runners.Candidate)) && !w.once { // a baseline is merged already, with or without mistakes
		if b.Error, err = w.checkKernel(ctx, name, side, variant); err != nil || b.Error != "" {
			b.Diagnostics, b.Seconds = made.diagnostics, time.Since(start).Seconds()
			return b, nil, err
		}
	}
	b.Code = made.info.Code
	b.Resources = made.resources()
	b.Diagnostics = made.diagnostics
	sample, err := tensor.NewProblem(m, m.Shapes[0], toggles, "zero", 0)
	if err != nil {
		return b, nil, err
	}
	exe, err := w.link(ctx, name, made.info, stub(m.CPrototype(object.EntrySymbol), object.EntrySymbol, sample.Args, m.Threads), openMP(m)...)
	if errors.As(err, &refusal) {
		b.Error = fmt.Sprintf("the entry point %s does not link: %s", m.Entry, refusal.Summary)
		b.Seconds = time.Since(start).Seconds()
		return b, nil, nil
	}
	if err != nil {
		return b, nil, err
	}
	b.OK, b.Seconds = true, time.Since(start).Seconds()
	return b, &executable{path: exe, symbol: made.info.Entry, variant: side.Variant, manifest: m, toggles: toggles, threads: m.Threads}, nil
}

// A compiledSource is one object file, and the compiler's output about it.
type compiledSource struct {
	info        object.Object
	frames      map[string]int
	diagnostics []gates.Diagnostic
}

// compileTwice compiles a side here and elsewhere: both must give the same machine code. A source
// that uses the names of files does not compile elsewhere; it is compiled again by other names.
func (w *Worker) compileTwice(ctx context.Context, name string, side runners.Side, source string, flags []string) (compiledSource, error) {
	m := w.job.Of(side)
	call := toolchain.Compile{Dir: side.Dir, Source: source, Tree: w.job.Tree(side), In: toolchain.Here}
	first, err := w.compile(ctx, name, "object", call, m.Entry, flags)
	if err != nil || w.once {
		return first, err
	}
	same := func(in toolchain.Surroundings) error {
		call.In = in
		second, err := w.compile(ctx, name, "object-again", call, m.Entry, flags)
		if err == nil && second.info.Code != first.info.Code {
			return toolchain.ErrSurroundings(source, in)
		}
		return err
	}
	elsewhere := toolchain.Elsewhere(w.config.Seed)
	err = same(elsewhere)
	if refusal, ok := errors.AsType[*output.CompileError](err); ok && refusal.Log != "" {
		for _, in := range elsewhere.ByName() {
			if err = same(in); err != nil {
				break
			}
		}
	}
	if refusal, ok := errors.AsType[*output.CompileError](err); ok {
		refusal.Diagnostics = first.diagnostics
		fmt.Fprintf(&w.log, "%s\n", refusal.Summary)
	}
	return first, err
}

// compile makes an object from a source. The source controls what the compiler leaves in its
// folder, so only the files that are read here are used.
func (w *Worker) compile(ctx context.Context, name, part string, call toolchain.Compile, entry string, flags []string) (compiledSource, error) {
	out, err := w.folder(name, part)
	if err != nil {
		return compiledSource{}, err
	}
	file := filepath.Join(out, "kernel.o")
	args := append([]string{"-Wall"}, compileOnly(flags)...)
	// These follow the flags of the manifest, so that ours win. The language is explicit: by its
	// file name, a source could be assembler, or an order to the linker.
	args = append(args, "-fstack-usage", "-fno-ident", "-ffunction-sections", "-fno-common", "-x", language(call.Source), "-c", "-o", file)
	call.Args, call.Out = args, out
	log, err := w.compiler.Run(ctx, call)
	if call.In.Name == toolchain.Here.Name {
		fmt.Fprintf(&w.log, "# %s\n%s %s %s\n%s\n", name, filepath.Base(w.cc.Path), strings.Join(args, " "), call.Source, log)
	}
	if err != nil {
		return compiledSource{}, err
	}
	o := compiledSource{diagnostics: output.ParseDiagnostics(log)}
	if o.info, err = object.Read(file, entry); err == nil {
		o.frames, err = toolchain.Frames(filepath.Join(out, "kernel.su"))
	}
	if refusal, ok := errors.AsType[*output.CompileError](err); ok {
		refusal.Summary, refusal.Diagnostics = call.Source+": "+refusal.Summary, o.diagnostics
		fmt.Fprintf(&w.log, "%s\n", refusal.Summary)
	}
	return o, err
}

// folder returns an empty folder.
func (w *Worker) folder(name, part string) (string, error) {
	dir := filepath.Join(w.config.Scratch, name, part)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return "", fmt.Errorf("making room for the %s: %w", name, err)
	}
	return dir, nil
}

// openMP returns the flags for the source and for its program if the manifest declares threads.
func openMP(m *manifest.Manifest) []string {
	if m.Threads > 1 {
		return []string{"-fopenmp"}
	}
	return nil
}

// language returns the language of a source, which its manifest has checked.
func language(source string) string {
	name, _ := manifest.Language(source)
	return cmp.Or(name, manifest.LanguageC)
}

// compileOnly removes the linker's flags.
func compileOnly(flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return strings.HasPrefix(f, "-l") })
}

// linkFlags make a program that maps nothing both writable and executable, resolves every name
// before main, and depends only on the stub and the object. What the entry does not reach is left
// out: a file of a library has functions that call the rest of the library.
const linkFlags = "-Wl,-z,noexecstack,-z,text,-z,relro,-z,now,--build-id=none,--gc-sections"

// objectName is the file name of the kernel in the folder of its program.
const objectName = "kernel.o"

// link makes a program from the stub and the object in a folder that the compiler of the source has
// never seen.
func (w *Worker) link(ctx context.Context, name string, kernel object.Object, stub string, flags ...string) (string, error) {
	out, err := w.folder(name, "program")
	if err != nil {
		return "", err
	}
	source, kernelFile, exe := filepath.Join(out, "main.c"), filepath.Join(out, objectName), filepath.Join(out, "kernel")
	if err := errors.Join(os.WriteFile(source, []byte(stub), 0o644), os.WriteFile(kernelFile, kernel.Image, 0o644)); err != nil {
		return "", fmt.Errorf("writing the %s's main: %w", name, err)
	}
	// The C++ compiler links its libraries.
	args := []string{"-O1", "-x", "c", source, "-x", "none", kernelFile, "-o", exe, linkFlags, "-lm"}
	args = append(args, flags...)
	log, err := w.compiler.Run(ctx, toolchain.Compile{Dir: out, Args: args, Out: out})
	fmt.Fprintf(&w.log, "%s %s\n%s\n", filepath.Base(w.cc.Path), strings.Join(args, " "), log)
	if err != nil {
		return exe, err
	}
	// The baseline's program is older than the candidate's. No call shows that to a kernel, and there
	// is nothing to show.
	if err := os.Chtimes(exe, linked, linked); err != nil {
		return exe, fmt.Errorf("setting the time of the %s's program: %w", name, err)
	}
	return exe, nil
}

// linked is the time of every program.
var linked = time.Unix(1<<30, 0)

func (o compiledSource) resources() *gates.Resources {
	stack := 0
	for _, bytes := range o.frames {
		stack = max(stack, bytes)
	}
	return &gates.Resources{CodeSize: &o.info.CodeSize, Stack: &stack, Globals: o.info.Globals}
}

// Profile reports that there is no profiler for CPU kernels.
func (w *Worker) Profile(context.Context, *policy.ProfileGate, runners.Progress) (*gates.Profile, error) {
	return &gates.Profile{Skipped: "there is no profiler for CPU kernels; remove gates.profile from the policy"}, nil
}

// No single thread of an existing CPU computes more than this: 64 FLOP per cycle in single
// precision (two 512-bit FMA units) and 2,048 in a matrix unit, at 6 GHz. Bandwidth is not limited,
// because caches have no useful bound.
const clock = 6e9

var peak = map[string]float64{
	"fp64": 32 * clock, "fp32": 64 * clock, "tf32": 64 * clock,
	"fp16": 2048 * clock, "bf16": 2048 * clock, "fp8": 2048 * clock, "int8": 4096 * clock,
}

// Abilities returns what the backend can do.
func (w *Worker) Abilities() gates.Abilities { return runners.ModeOf(w.job.Manifest).Abilities }

// Device returns this machine's CPU.
func (w *Worker) Device() gates.Device {
	return gates.Device{
		Kind: gates.DeviceCPU, Name: runners.CPUName(), Arch: runtime.GOARCH, Units: runtime.NumCPU(), Peak: peak,
		PeakFrom: "an upper bound for one thread: 64 FLOP a cycle in fp32 at 6 GHz",
	}
}
