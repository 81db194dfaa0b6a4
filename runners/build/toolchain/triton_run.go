package toolchain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// maxKind bounds the bytes of one kind's cubin: there may be many.
const maxKind = 8 << 20

// figuresTimeout bounds ptxas's time for the figures of one kind; Triton has just done the same
// work.
const figuresTimeout = time.Minute

// maxPTX bounds the PTX of one kernel that is assembled again.
const maxPTX = 16 << 20

// maxSaid bounds the script's description of a launch.
const maxSaid = 256 << 10

// compile compiles all kinds here and, at the same time, in different surroundings.
func (t *Triton) compile(ctx context.Context, b TritonBuild) ([]nvccOutput, error) {
	build := func(ctx context.Context, in Surroundings) ([]nvccOutput, error) { return t.compileIn(ctx, b, in) }
	refused := func(kinds []nvccOutput) bool {
		return !slices.ContainsFunc(kinds, func(o nvccOutput) bool { return o.Refusal == "" })
	}
	if b.Once {
		return build(ctx, Here)
	}
	elsewhere := Elsewhere(cmp.Or(b.Seed, rand.Uint64()))
	kinds, there, err := twice(ctx, elsewhere, build, refused)
	if err != nil || refused(kinds) {
		return kinds, err
	}
	for i := range kinds {
		if kinds[i].Refusal != "" {
			continue
		}
		if kinds[i] = kinds[i].sameAs(there[i], b.Source, elsewhere); kinds[i].Refusal == "" && kinds[i].Usage != there[i].Usage {
			kinds[i] = nvccOutput{Log: kinds[i].Log, Refusal: ErrSurroundings(b.Source, elsewhere).Summary, Final: true}
		}
	}
	return kinds, nil
}

// compileIn makes the script compile all kinds, and reads its output: an image and a description
// for each. A refusal is one of all kinds.
func (t *Triton) compileIn(ctx context.Context, b TritonBuild, in Surroundings) ([]nvccOutput, error) {
	work, err := os.MkdirTemp(b.Scratch, "triton-")
	if err != nil {
		return nil, fmt.Errorf("making room for Triton: %w", err)
	}
	defer os.RemoveAll(work)
	refused, log, err := t.imported(ctx, b, work, in)
	if err != nil {
		return nil, err
	}
	made := make([]nvccOutput, len(b.Kinds))
	refuse := func(final bool, format string, args ...any) ([]nvccOutput, error) {
		for i := range made {
			made[i] = nvccOutput{Log: log, Refusal: fmt.Sprintf(format, args...), Final: final}
		}
		return made, nil
	}
	if refused.Refusal != "" {
		return refuse(refused.Final, "%s", refused.Refusal)
	}
	if exists(filepath.Join(work, "out", "exact")) {
		return refuse(true, "%s", needsExact)
	}
	for i := range made {
		if why, err := output.ReadFile(filepath.Join(work, "out", strconv.Itoa(i)+".refused"), maxSaid); err == nil && b.each {
			made[i] = nvccOutput{Log: log, Refusal: entryname.Quote(in.names(string(why), &b.Tree)), Final: true}
			continue
		}
		made[i], err = t.collect(ctx, b, filepath.Join(work, "out", strconv.Itoa(i)))
		if refusal, ok := errors.AsType[*output.CompileError](err); ok {
			return refuse(true, "%s", refusal.Summary)
		}
		if err != nil {
			return nil, err
		}
	}
	return made, nil
}

// imported runs the script on the kernel's source. The result is a refusal if the source is at
// fault.
func (t *Triton) imported(ctx context.Context, b TritonBuild, work string, in Surroundings) (o nvccOutput, log string, err error) {
	r, log, err := t.script(ctx, b, work, in)
	if err != nil {
		return o, log, err
	}
	if !r.OK() {
		diagnostics := diagnosticsIn(log, b.Dir)
		summary, final := refusal(sandbox.DeviceCompiler.Limits().Memory, r, log, diagnostics)
		if !blames(diagnostics) || strings.Contains(summary, "No module named 'triton'") {
			if fault := t.probe(ctx, b); fault != nil {
				return o, log, fault
			}
		}
		// A package may be installed later.
		o.Refusal, o.Final = summary+advice(summary), final && !strings.Contains(log, "ModuleNotFoundError")
		return o, log, nil
	}
	if err, ok := errors.AsType[*output.CompileError](in.asked(r, b.Dir, &b.Tree).compileError(b.Source, log)); ok {
		o.Refusal, o.Final = err.Summary, true
	}
	return o, log, nil
}

// needsExact is the answer of a build that must know the values of scalars. It does not refuse the
// source.
const needsExact = "@triton.heuristics: the build needs the values of the arguments"

// ErrNeedsExact asks for kinds with the values of scalars and the shapes of arrays: the functions
// of @triton.heuristics get them.
var ErrNeedsExact = errors.New(needsExact)

// needsGPU matches the messages of Triton and torch that there is no GPU.
var needsGPU = regexp.MustCompile(`active drivers|NVIDIA driver|CUDA driver|No CUDA GPUs|not compiled with CUDA`)

// advice returns what to do about a kernel that needs what a build does not have.
func advice(summary string) string {
	switch {
	case strings.Contains(summary, "No module named"):
		return " (a build sees the packages of the runner's Python, and of the repository the kernel's folder, root and include: write root: with the folder that the package lies in, install the package on the runner, write stubs: with the modules that the kernel does not use, or skip_init: with the packages whose __init__.py imports them)"
	case needsGPU.MatchString(summary):
		return " (a build has no GPU: name as the source an entry file that imports the kernel past this)"
	case strings.Contains(summary, "attempted relative import"):
		return " (the package is larger than what the build sees: write root: with the folder that the package lies in)"
	}
	return ""
}

// script runs our script on the kernel's source.
func (t *Triton) script(ctx context.Context, b TritonBuild, work string, s Surroundings) (sandbox.Result, string, error) {
	in, out, empty := filepath.Join(work, "in"), filepath.Join(work, "out"), filepath.Join(work, "empty")
	kinds := slices.Clone(b.Kinds)
	for i := range kinds {
		kinds[i].Entry = cmp.Or(kinds[i].Entry, b.Entry)
	}
	include := []string{}
	for _, folder := range b.Include {
		include = append(include, s.folder(folder, b.Dir, &b.Tree))
	}
	base := s.dir(&b.Tree)
	if b.Root != "" {
		base = s.folder(b.Root, b.Dir, &b.Tree)
	}
	request, err := json.Marshal(struct {
		Path     []string           `json:"path"`
		Source   string             `json:"source"`
		Base     string             `json:"base"`
		Root     bool               `json:"root"`
		Include  []string           `json:"include"`
		Arch     int                `json:"arch"`
		Forks    int                `json:"forks"`
		Describe bool               `json:"describe"`
		Each     bool               `json:"each"`
		SkipInit []string           `json:"skip_init"`
		Stubs    []string           `json:"stubs"`
		Kinds    []manifest.Special `json:"kinds"`
	}{append([]string{}, t.path...), s.source(b.Source, b.Dir, &b.Tree), base, b.Root != "", include, capability(b.Arch), s.forks, b.describe, b.each, append([]string{}, b.SkipInit...), append([]string{}, b.Stubs...), kinds})
	if err == nil {
		err = errors.Join(os.Mkdir(in, 0o755), os.Mkdir(out, 0o755), os.Mkdir(empty, 0o755), os.WriteFile(filepath.Join(in, "request.json"), request, 0o644),
			os.WriteFile(filepath.Join(in, "triton_compile.py"), tritonScript, 0o644), os.WriteFile(filepath.Join(in, "triton_standins.py"), tritonStandIns, 0o644))
	}
	if err != nil {
		return sandbox.Result{}, "", fmt.Errorf("writing what Triton is asked for: %w", err)
	}
	hidden, err := t.withoutPycache(empty)
	if err != nil {
		return sandbox.Result{}, "", err
	}
	spec := sandbox.Spec{
		Env:    tritonEnv,
		Args:   slices.Concat([]string{t.Python}, s.python, []string{s.work + "/in/triton_compile.py", s.work + "/in/request.json", s.work + "/out"}),
		Places: append(hidden, sandbox.Place{Host: in, Inside: s.work + "/in"}, sandbox.Place{Host: out, Inside: s.work + "/out", Write: true}),
	}
	s.enter(&spec, b.Dir, &b.Tree)
	r, log, err := t.run(ctx, spec, 0)
	return r, s.names(log, &b.Tree), err
}

// capability is the number of an architecture: 90 for sm_90a.
func capability(arch string) int {
	n, _ := strconv.Atoi(archName.FindStringSubmatch(arch)[1])
	return n
}

// collect reads the script's output for one kind. The error is a *output.CompileError if a compiler
// would not leave that.
func (t *Triton) collect(ctx context.Context, b TritonBuild, name string) (o nvccOutput, err error) {
	if o.Image, err = output.ReadFile(name+".cubin", maxKind); err != nil {
		return o, err
	}
	said, err := output.ReadFile(name+".json", maxSaid)
	if err != nil {
		return o, err
	}
	o.Usage = string(said)
	o.Log, err = t.figures(ctx, b, o, name+".ptx")
	return o, err
}

var (
	assemblerName = regexp.MustCompile(`^ptxas(-blackwell)?$`)
	assemblerFlag = regexp.MustCompile(`^(?:-lineinfo|--fmad=false|--regAllocOptLevel=\d|--opt-level=\d)$`)
)

// figures returns what Triton's own ptxas reports about the registers and spills of a kernel. The
// cubin does not record spills, and the PTX comes from an untrusted process and may be a different
// kernel's. So it is assembled again, with the flags that the script reports: if that gives the
// cubin's machine code, the figures are the cubin's. Otherwise there are none.
func (t *Triton) figures(ctx context.Context, b TritonBuild, o nvccOutput, ptx string) (string, error) {
	var said said
	if err := readStrictly([]byte(o.Usage), &said); err != nil {
		return "", nil // reported when it is read
	}
	if info, err := os.Lstat(ptx); len(said.PTXAS) == 0 || !assemblerName.MatchString(said.PTXAS[0]) || err != nil || !info.Mode().IsRegular() || info.Size() > maxPTX {
		return "", nil
	}
	dir, err := os.MkdirTemp(b.Scratch, "ptxas-")
	if err != nil {
		return "", fmt.Errorf("making room for ptxas: %w", err)
	}
	defer os.RemoveAll(dir)
	again := filepath.Join(dir, "again.cubin")
	args := []string{filepath.Join(t.Folder, "backends", "nvidia", "bin", said.PTXAS[0]), "-v"}
	for _, flag := range said.PTXAS[1:] {
		if assemblerFlag.MatchString(flag) && !slices.Contains(args, flag) {
			args = append(args, flag)
		}
	}
	args = append(args, "--gpu-name", tritonArch(b.Arch), ptx, "-o", again)
	r, log, err := t.run(ctx, sandbox.Spec{Args: args, Read: []string{ptx}, Write: []string{dir}}, figuresTimeout)
	if err != nil || !r.OK() {
		return "", err
	}
	image, err := output.ReadFile(again, maxImage)
	if err != nil {
		return "", nil
	}
	ours, err1 := machineCode(image)
	theirs, err2 := machineCode(o.Image)
	if err1 != nil || err2 != nil || ours != theirs {
		return "", nil
	}
	return strings.ReplaceAll(log, said.PTXAS[0]+" ", "ptxas "), nil
}

// tritonArch returns the architecture that Triton passes to ptxas: from sm_90 on, with the
// architecture-specific instructions.
func tritonArch(arch string) string {
	if n := capability(arch); n >= 90 {
		return "sm_" + strconv.Itoa(n) + "a"
	}
	return arch
}

// probe checks whether Triton compiles anything here. Only then a refusal without a source line is
// the source's fault.
func (t *Triton) probe(ctx context.Context, b TritonBuild) error {
	dir, err := os.MkdirTemp(b.Scratch, "probe-")
	if err != nil {
		return fmt.Errorf("making room for a trial of Triton: %w", err)
	}
	defer os.RemoveAll(dir)
	work := filepath.Join(dir, "work")
	const trial = "import triton\n\n@triton.jit\ndef empty():\n    pass\n"
	if err := errors.Join(os.Mkdir(work, 0o755), os.WriteFile(filepath.Join(dir, "empty.py"), []byte(trial), 0o644)); err != nil {
		return fmt.Errorf("writing the source for a trial of Triton: %w", err)
	}
	r, log, err := t.script(ctx, TritonBuild{
		Dir: dir, Tree: runners.Tree{}, Source: "empty.py", Arch: b.Arch, Kinds: []manifest.Special{{Entry: "empty", Constants: map[string]float64{}, Warps: 4, Stages: 3, CTAs: 1, Arguments: []manifest.SpecialArgument{}}},
	}, work, Here)
	if err == nil && !r.OK() {
		err = fmt.Errorf("%s with Python %s compiles not even an empty kernel for %s (%s): try it by hand, or install another Triton", t, t.PythonVersion, b.Arch, output.LastLine(log))
	}
	return err
}
