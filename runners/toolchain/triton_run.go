package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/sandbox"
	"github.com/kernelgate/kernelgate/runners/toolchain/output"
)

// maxKind is the bytes of one kind's cubin: there may be many.
const maxKind = 8 << 20

// figuresTimeout is what ptxas may take for the figures of one kind; Triton has just had it done.
const figuresTimeout = time.Minute

// maxPTX is the bytes of the PTX of one kernel that is assembled once more.
const maxPTX = 16 << 20

// maxSaid is the bytes of what the script says of a launch.
const maxSaid = 256 << 10

// compile has all kinds compiled here and, at the same time, in other surroundings.
func (t *Triton) compile(ctx context.Context, b TritonBuild) ([]nvccOutput, error) {
	build := func(ctx context.Context, in Surroundings) ([]nvccOutput, error) { return t.compileIn(ctx, b, in) }
	kinds, there, err := twice(ctx, build, func(kinds []nvccOutput) bool { return kinds[0].Refusal != "" })
	if err != nil || kinds[0].Refusal != "" {
		return kinds, err
	}
	for i := range kinds {
		if kinds[i] = kinds[i].sameAs(there[i], b.Source); kinds[i].Refusal == "" && kinds[i].Usage != there[i].Usage {
			kinds[i] = nvccOutput{Log: kinds[i].Log, Refusal: ErrSurroundings(b.Source).Summary, Final: true}
		}
	}
	return kinds, nil
}

// compileIn has the script compile all kinds, and reads what it left: for each an image, and what is said of it. A refusal is one of
// all kinds.
func (t *Triton) compileIn(ctx context.Context, b TritonBuild, in Surroundings) ([]nvccOutput, error) {
	work, err := os.MkdirTemp(b.Scratch, "triton-")
	if err != nil {
		return nil, fmt.Errorf("making room for Triton: %w", err)
	}
	defer os.RemoveAll(work)
	r, log, err := t.script(ctx, b, work, in)
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
	if !r.OK() {
		diagnostics := diagnosticsIn(log, b.Dir)
		summary, final := refusal(t.memory(), r, log, diagnostics)
		if !blames(diagnostics) || strings.Contains(summary, "No module named 'triton'") {
			if fault := t.probe(ctx, b); fault != nil {
				return nil, fault
			}
		}
		return refuse(final, "%s%s", summary, advice(summary))
	}
	if err, ok := errors.AsType[*output.CompileError](in.asked(r, b.Dir, &b.Tree).compileError(b.Source, log)); ok {
		return refuse(true, "%s", err.Summary)
	}
	for i := range made {
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

// advice is what to do about a kernel that needs what a build has not.
func advice(summary string) string {
	if strings.Contains(summary, "No module named") {
		return " (a build sees Python, Triton and the kernel's folder: keep the kernel in a file that imports nothing else)"
	}
	return ""
}

// script runs our script on the kernel's source.
func (t *Triton) script(ctx context.Context, b TritonBuild, work string, s Surroundings) (sandbox.Result, string, error) {
	in, out, empty := filepath.Join(work, "in"), filepath.Join(work, "out"), filepath.Join(work, "empty")
	request, err := json.Marshal(struct {
		Path   []string           `json:"path"`
		Source string             `json:"source"`
		Entry  string             `json:"entry"`
		Arch   int                `json:"arch"`
		Kinds  []manifest.Special `json:"kinds"`
	}{append([]string{}, t.path...), s.source(b.Source, b.Dir, &b.Tree), b.Entry, capability(b.Arch), b.Kinds})
	if err == nil {
		err = errors.Join(os.Mkdir(in, 0o755), os.Mkdir(out, 0o755), os.Mkdir(empty, 0o755), os.WriteFile(filepath.Join(in, "request.json"), request, 0o644),
			os.WriteFile(filepath.Join(in, "triton_compile.py"), tritonScript, 0o644))
	}
	if err != nil {
		return sandbox.Result{}, "", fmt.Errorf("writing what Triton is asked for: %w", err)
	}
	hidden, err := t.withoutPycache(empty)
	if err != nil {
		return sandbox.Result{}, "", err
	}
	spec := sandbox.Spec{
		Args:   slices.Concat([]string{t.Python}, s.python, []string{s.work + "/in/triton_compile.py", s.work + "/in/request.json", s.work + "/out"}),
		Places: append(hidden, sandbox.Place{Host: in, Inside: s.work + "/in"}, sandbox.Place{Host: out, Inside: s.work + "/out", Write: true}),
	}
	s.enter(&spec, b.Dir, &b.Tree)
	r, log, err := t.run(ctx, spec, b.Timeout)
	return r, s.names(log, &b.Tree), err
}

// capability is the number of an architecture: 90 for sm_90a.
func capability(arch string) int {
	n, _ := strconv.Atoi(archName.FindStringSubmatch(arch)[1])
	return n
}

// collect reads what the script left for one kind. The error is a *CompileError where that is not what a compiler leaves.
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

// figures is what Triton's own ptxas says of the registers and spills of a kernel. The cubin tells of no spills; the PTX was written by
// the same process and may be another kernel's. So it is assembled once more, here, with the flags that the script says Triton
// used: where that gives the cubin's own machine code, the figures are the cubin's. Otherwise there are none.
func (t *Triton) figures(ctx context.Context, b TritonBuild, o nvccOutput, ptx string) (string, error) {
	var said said
	if err := readStrictly([]byte(o.Usage), &said); err != nil {
		return "", nil // told when it is read
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

// tritonArch is what Triton has ptxas make: from sm_90 on, code with the architecture's own instructions.
func tritonArch(arch string) string {
	if n := capability(arch); n >= 90 {
		return "sm_" + strconv.Itoa(n) + "a"
	}
	return arch
}

// probe asks whether Triton compiles anything at all here. Only if it does, a refusal that names no line of the source is the
// source's fault.
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
		Dir: dir, Tree: Tree{}, Source: "empty.py", Entry: "empty", Arch: b.Arch, Kinds: []manifest.Special{{Constants: map[string]float64{}, Warps: 4, Stages: 3, CTAs: 1, Arguments: []manifest.SpecialArgument{}}},
	}, work, Here)
	if err == nil && !r.OK() {
		err = fmt.Errorf("%s with Python %s compiles not even an empty kernel for %s (%s): try it by hand, or install another Triton", t, t.PythonVersion, b.Arch, output.LastLine(log))
	}
	return err
}
