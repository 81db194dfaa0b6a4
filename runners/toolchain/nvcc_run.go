package toolchain

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/runners/sandbox"
)

// An nvccOutput is what the tools left behind. Everything else that Build tells is read from it, so that a
// cached build is read by the same code as a fresh one.
type nvccOutput struct {
	Image   []byte
	Log     string
	Usage   string // of cuobjdump; empty where there is none
	Refusal string // why there is no image
	Final   bool   // the same source would be refused again: no limit was hit
}

// maxImage is many times what a kernel needs. The runner reads an image as a whole, and takes several times its size doing so.
const maxImage = 32 << 20

// compile runs nvcc, and cuobjdump over what it made.
func (c *CUDA) compile(ctx context.Context, b NVCCBuild, path string) (nvccOutput, error) {
	source := b.Source
	if b.markers != "" {
		source = filepath.Join(filepath.Dir(path), markerFileName)
		if err := os.WriteFile(source, []byte(b.markers), 0o644); err != nil {
			return nvccOutput{}, fmt.Errorf("writing the source that names the entries: %w", err)
		}
	}
	r, log, err := c.run(ctx, tool{
		args: append(append([]string{c.compiler(b)}, c.args(b)...), "-o", path, source),
		dir:  b.Dir, read: b.Dir, write: []string{filepath.Dir(path)}, timeout: b.Timeout,
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
	if c.Cuobjdump != "" {
		o.Usage, err = c.dump(ctx, path)
	}
	return o, err
}

func (c *CUDA) dump(ctx context.Context, path string) (string, error) {
	r, out, err := c.run(ctx, tool{args: []string{c.Cuobjdump, "--dump-resource-usage", path}, read: path})
	if err == nil && !r.OK() {
		err = fmt.Errorf("cuobjdump cannot read the cubin%s: %s; install the cuobjdump of CUDA %s beside nvcc", also(r.Refused), lastLine(out), c.Version)
	}
	return out, err
}

// probe asks whether nvcc compiles anything at all this way, to something that can be read. Only if it does, a refusal that
// names no line of the source is the source's fault. The log alone cannot tell: the source may print to it what it likes.
func (c *CUDA) probe(ctx context.Context, b NVCCBuild) error {
	dir, err := os.MkdirTemp(b.Scratch, "probe-")
	if err != nil {
		return fmt.Errorf("making room for a trial of nvcc: %w", err)
	}
	defer os.RemoveAll(dir)
	b.markers = ""
	path := filepath.Join(dir, "empty.cubin")
	empty, text := "empty.cu", "__global__ void empty() {}\n"
	if b.isPTX() {
		empty, text = "empty.ptx", ".version 8.0\n.target "+b.Arch+"\n.address_size 64\n.visible .entry empty() { ret; }\n"
	}
	if err := os.WriteFile(filepath.Join(dir, empty), []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the source for a trial of nvcc: %w", err)
	}
	r, log, err := c.run(ctx, tool{
		args: append(append([]string{c.compiler(b)}, c.args(b)...), "-o", path, empty), dir: dir, read: dir, write: []string{dir},
	})
	if err != nil {
		return err
	}
	if !r.OK() {
		summary, _ := refusal(c.memory(), r, log, diagnosticsIn(log, dir))
		return fmt.Errorf("nvcc %s with %s refuses even an empty kernel for %s (%s): check the flags %q and the host compiler",
			c.Version, c.HostVersion, b.Arch, summary, append(slices.Clone(b.Flags), b.Defines...))
	}
	image, err := os.ReadFile(path)
	if err == nil {
		_, err = machineCode(image)
	}
	if err != nil {
		return fmt.Errorf("nvcc %s makes an empty kernel for %s that cannot be read: %w; use a CUDA release that kernelgate knows", c.Version, b.Arch, err)
	}
	return nil
}

// A tool is one call of a program of the toolkit.
type tool struct {
	args    []string
	dir     string // to work in
	read    string
	write   []string
	timeout time.Duration
}

// run calls the tool in the sandbox.
func (c *CUDA) run(ctx context.Context, t tool) (sandbox.Result, string, error) {
	var out bytes.Buffer
	r, err := sandbox.Run(ctx, sandbox.Spec{
		Args: t.args, Dir: t.dir, Env: compilerEnv, Stdout: &out, Stderr: &out,
		Read: append(c.readable(), t.read, t.args[0]), Write: t.write,
		Limits: sandbox.Limits{
			Wall: cmp.Or(t.timeout, buildTimeout), Memory: c.memory(), Disk: 1 << 30, Processes: 256, Output: 1 << 20,
		},
	})
	if err != nil {
		return r, out.String(), fmt.Errorf("running %s: %w", filepath.Base(t.args[0]), err)
	}
	return r, out.String(), nil
}

// readable is what the toolkit's programs may see beside the sources.
func (c *CUDA) readable() []string { return append(sandbox.SystemPaths(), c.folders()...) }
