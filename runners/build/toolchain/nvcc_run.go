package toolchain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// An nvccOutput is the output of the tools. Build reads everything else from it, so that the same
// code reads a cached build and a fresh one.
type nvccOutput struct {
	Image   []byte
	Log     string
	Usage   string // of cuobjdump; empty if there is none
	Refusal string // why there is no image
	Final   bool   // the same source would be refused again: no limit was hit
}

// maxImage is many times what a kernel needs. The runner reads a whole image, which takes several
// times its size.
const maxImage = 32 << 20

// compile runs nvcc here and, at the same time, elsewhere, and then cuobjdump on the result. A source
// that uses the names of files does not compile elsewhere; it is compiled again by other names.
func (c *CUDA) compile(ctx context.Context, b NVCCBuild, path string) (nvccOutput, error) {
	if b.Trusted || b.Once || b.isPTX() { // only ptxas reads PTX, and it knows no other files
		return c.compileHere(ctx, b, path)
	}
	again, err := os.MkdirTemp(b.Scratch, "again-")
	if err != nil {
		return nvccOutput{}, fmt.Errorf("making room for nvcc: %w", err)
	}
	defer os.RemoveAll(again)
	build := func(ctx context.Context, in Surroundings) (nvccOutput, error) {
		if in.Name == Here.Name {
			return c.compileHere(ctx, b, path)
		}
		out := filepath.Join(again, strconv.Itoa(int(in.given)))
		if err := os.MkdirAll(out, 0o755); err != nil {
			return nvccOutput{}, fmt.Errorf("making room for nvcc: %w", err)
		}
		return c.compileIn(ctx, b, filepath.Join(out, "kernel.cubin"), in)
	}
	elsewhere := Elsewhere(cmp.Or(b.Seed, rand.Uint64()))
	here, there, err := twice(ctx, elsewhere, build, func(o nvccOutput) bool { return o.Refusal != "" })
	if err != nil || here.Refusal != "" {
		return here, err
	}
	if there.Refusal == "" {
		return here.sameAs(there, b.Source, elsewhere), nil
	}
	for _, in := range elsewhere.ByName() {
		if there, err = build(ctx, in); err != nil {
			return there, err
		}
		if here = here.sameAs(there, b.Source, in); here.Refusal != "" {
			break
		}
	}
	return here, nil
}

// sameAs refuses a build that differs in different surroundings.
func (o nvccOutput) sameAs(there nvccOutput, source string, in Surroundings) nvccOutput {
	if there.Refusal != "" {
		return nvccOutput{Log: there.Log, Refusal: there.Refusal, Final: there.Final}
	}
	here, err1 := machineCode(o.Image)
	other, err2 := machineCode(there.Image)
	if err1 != nil || err2 != nil { // reported when it is read
		return o
	}
	if here != other {
		return nvccOutput{Log: o.Log, Refusal: ErrSurroundings(source, in).Summary, Final: true}
	}
	return o
}

// compileHere compiles the code that is measured.
func (c *CUDA) compileHere(ctx context.Context, b NVCCBuild, path string) (nvccOutput, error) {
	o, err := c.compileIn(ctx, b, path, Here)
	if err == nil && o.Refusal == "" && c.Cuobjdump != "" {
		o.Usage, err = c.dump(ctx, path)
	}
	return o, err
}

// compileIn runs nvcc in surroundings.
func (c *CUDA) compileIn(ctx context.Context, b NVCCBuild, path string, in Surroundings) (nvccOutput, error) {
	source := in.source(b.Source, b.Dir, &b.Tree)
	if b.markers != "" {
		source = filepath.Join(filepath.Dir(path), markerFileName)
		if err := os.WriteFile(source, []byte(b.markers), 0o644); err != nil {
			return nvccOutput{}, fmt.Errorf("writing the source that names the entries: %w", err)
		}
	}
	r, log, err := c.run(ctx, tool{
		args: append(c.call(b, in), "-o", path, source),
		dir:  b.Dir, tree: &b.Tree, in: in, guard: !b.isPTX(), write: []string{filepath.Dir(path)}, timeout: b.Timeout,
	})
	if err != nil {
		return nvccOutput{}, err
	}
	o := nvccOutput{Log: log}
	if !r.OK() {
		diagnostics := diagnosticsIn(log, b.Dir)
		if b.isPTX() {
			ofSource(diagnostics)
		}
		o.Refusal, o.Final = refusal(c.memory(), r, log, diagnostics)
		if o.Final && !blames(diagnostics) {
			err = c.probe(ctx, b)
		}
		return o, err
	}
	// In the repository's top folder nvcc looks for its own libraries and headers. What the source
	// looks up is judged in the other surroundings.
	if !b.Trusted && !b.Once && in.given != fromTop {
		refusal, err := c.lookups(ctx, b, r, in, filepath.Dir(path))
		if err != nil || refusal != "" {
			return nvccOutput{Log: log, Refusal: refusal, Final: true}, err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return o, fmt.Errorf("nvcc said nothing was wrong and left no cubin: %w%s", err, also(r.Refused))
	}
	if info.Size() > maxImage {
		o.Refusal, o.Final = fmt.Sprintf("the cubin has %d bytes, over the limit of %d: compile fewer kernels from one source", info.Size(), maxImage), true
		return o, nil
	}
	if o.Image, err = os.ReadFile(path); err != nil {
		return o, fmt.Errorf("reading the cubin: %w", err)
	}
	return o, nil
}

// lookups returns why a build is refused for its lookups; "" if it is not.
func (c *CUDA) lookups(ctx context.Context, b NVCCBuild, r sandbox.Result, in Surroundings, out string) (string, error) {
	a := in.asked(r, b.Dir, &b.Tree)
	a.out = out
	if !b.isPTX() {
		var err error
		if a.include, err = c.headers(ctx); err != nil {
			return "", err
		}
	}
	a.usual = func() (map[string]bool, error) { return c.usualLookups(ctx, b) }
	err := a.compileError(b.Source, "")
	if refusal, ok := errors.AsType[*output.CompileError](err); ok {
		return refusal.Summary, nil
	}
	return "", err
}

func (c *CUDA) dump(ctx context.Context, path string) (string, error) {
	r, out, err := c.run(ctx, tool{args: []string{c.Cuobjdump, "--dump-resource-usage", path}, read: path})
	if err == nil && !r.OK() {
		err = fmt.Errorf("cuobjdump cannot read the cubin%s: %s; install the cuobjdump of CUDA %s next to nvcc", also(r.Refused), output.LastLine(out), c.Version)
	}
	return out, err
}

// probe checks whether nvcc compiles anything this way, to something that can be read. Only then a
// refusal without a source line is the source's fault. The log is not enough, because the source
// can print anything to it.
func (c *CUDA) probe(ctx context.Context, b NVCCBuild) error {
	image, r, log, err := c.empty(ctx, b)
	if err != nil {
		return err
	}
	if !r.OK() {
		summary, _ := refusal(c.memory(), r, log, diagnosticsIn(log, ""))
		return fmt.Errorf("nvcc %s with %s refuses even an empty kernel for %s (%s): check the flags %q and the host compiler",
			c.Version, c.HostVersion, b.Arch, summary, append(slices.Clone(b.Flags), b.Defines...))
	}
	if _, err := machineCode(image); err != nil {
		return fmt.Errorf("nvcc %s makes an empty kernel for %s that cannot be read: %w; use a CUDA release that kernelgate knows", c.Version, b.Arch, err)
	}
	return nil
}

// empty compiles an empty kernel as b is compiled.
func (c *CUDA) empty(ctx context.Context, b NVCCBuild) (image []byte, r sandbox.Result, log string, err error) {
	dir, err := os.MkdirTemp(b.Scratch, "probe-")
	if err != nil {
		return nil, r, "", fmt.Errorf("making room for a trial of nvcc: %w", err)
	}
	defer os.RemoveAll(dir)
	b.markers = ""
	path := filepath.Join(dir, "empty.cubin")
	empty, text := "empty.cu", "__global__ void empty() {}\n"
	if b.isPTX() {
		empty, text = "empty.ptx", ".version 8.0\n.target "+b.Arch+"\n.address_size 64\n.visible .entry empty() { ret; }\n"
	}
	if err := os.WriteFile(filepath.Join(dir, empty), []byte(text), 0o644); err != nil {
		return nil, r, "", fmt.Errorf("writing the source for a trial of nvcc: %w", err)
	}
	r, log, err = c.run(ctx, tool{
		args: append(c.call(b, Here), "-o", path, empty), dir: dir, tree: &runners.Tree{}, in: Here, guard: !b.isPTX(), write: []string{dir},
	})
	if err == nil && r.OK() {
		image, err = os.ReadFile(path)
	}
	return image, r, log, err
}

// A tool is one call of a program of the toolkit.
type tool struct {
	args    []string
	dir     string        // of the sources
	tree    *runners.Tree // where it is in its repository; nil if there are no sources
	in      Surroundings
	guard   bool // a header comes before the source, see guard.go
	read    string
	write   []string
	timeout time.Duration
}

// run calls the tool in the sandbox.
func (c *CUDA) run(ctx context.Context, t tool) (sandbox.Result, string, error) {
	var out bytes.Buffer
	spec := sandbox.Spec{
		Args: t.args, Env: compilerEnv, Stdout: &out, Stderr: &out,
		Read: append(c.readable(), t.args[0]), Write: t.write,
		Limits: compilerLimits(ctx, c.memory(), t.timeout),
	}
	if t.read != "" {
		spec.Read = append(spec.Read, t.read)
	}
	names := func(log string) string { return log }
	if t.tree != nil {
		t.in.enter(&spec, t.dir, t.tree)
		if t.guard {
			guard, err := t.in.guarded(&spec)
			if err != nil {
				return sandbox.Result{}, "", err
			}
			defer os.RemoveAll(guard)
		}
		names = func(log string) string { return t.in.names(log, t.tree) }
	}
	r, err := sandbox.Run(ctx, spec)
	if err != nil {
		return r, names(out.String()), fmt.Errorf("running %s: %w", filepath.Base(t.args[0]), err)
	}
	return r, names(out.String()), nil
}

// readable returns what the toolkit's programs may see in addition to the sources.
func (c *CUDA) readable() []string { return append(sandbox.SystemPaths(), c.folders()...) }
