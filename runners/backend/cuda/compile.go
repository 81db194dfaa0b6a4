package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	sides "github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// A compiler turns a source into machine code, in the sandbox: one cubin for each kind of launch
// that it is asked for. An *output.CompileError blames the source; other errors are faults of this
// machine.
type compiler interface {
	fmt.Stringer    // its name and version
	digest() string // digest of the compiler, if it is pinned
	build(ctx context.Context, scratch string, kinds []manifest.Special) ([]*toolchain.Cubin, error)
}

// nvcc compiles CUDA sources and, with ptxas only, PTX. It does not distinguish kinds of launches.
type nvcc struct {
	cuda *toolchain.CUDA
	toolchain.NVCCBuild
}

func (c nvcc) String() string { return "nvcc " + c.cuda.Version }
func (c nvcc) digest() string { return c.cuda.Digest }

func (c nvcc) build(ctx context.Context, scratch string, _ []manifest.Special) ([]*toolchain.Cubin, error) {
	c.Scratch = scratch
	cubin, err := c.cuda.Build(ctx, c.NVCCBuild)
	return []*toolchain.Cubin{cubin}, err
}

// ptxas is the ptxas of nvcc, under its own name.
type ptxas struct{ nvcc }

func (c ptxas) String() string { return "ptxas " + c.cuda.Version }

// triton compiles a Python function, once for every kind of launch.
type triton struct {
	*toolchain.Triton
	toolchain.TritonBuild
}

func (c triton) String() string { return c.Triton.String() }
func (c triton) digest() string { return c.Triton.Digest }

func (c triton) build(ctx context.Context, scratch string, kinds []manifest.Special) ([]*toolchain.Cubin, error) {
	c.TritonBuild.Scratch, c.TritonBuild.Kinds = scratch, kinds
	return c.Triton.Build(ctx, c.TritonBuild)
}

// program is a command of the repository that writes a cubin.
type program struct {
	*toolchain.Command
	toolchain.CommandBuild
	cuda *toolchain.CUDA
}

func (c program) String() string { return "command " + strings.Join(c.Args, " ") }
func (c program) digest() string { return c.cuda.Digest }

func (c program) build(ctx context.Context, scratch string, _ []manifest.Special) ([]*toolchain.Cubin, error) {
	c.CommandBuild.Scratch = scratch
	cubin, err := c.Command.Build(ctx, c.CommandBuild)
	return []*toolchain.Cubin{cubin}, err
}

// compilerOf returns the compiler of a side, for an architecture.
func (b *Backend) compilerOf(ctx context.Context, side runners.Side, arch string) (compiler, error) {
	m := b.job.Of(side)
	variant, err := m.Variant(side.Variant)
	if err != nil {
		return nil, err
	}
	nvccOf, err := b.pinnedCUDA(ctx, side)
	if err != nil {
		return nil, err
	}
	plain := nvcc{nvccOf, toolchain.NVCCBuild{
		Dir: side.Dir, Source: m.SourceFile(variant), Entries: m.Entries(side.Variant), Arch: arch, Flags: m.CompilerFlags(side.Variant), Defines: m.Defines(side.Variant), Include: m.IncludeFlags(),
		Tree: *b.job.Tree(side), Seed: b.seed, Once: b.once,
	}}
	switch m.Compiler {
	case manifest.Triton:
		by, err := b.pinnedTriton(ctx, side)
		if err != nil {
			return nil, err
		}
		return triton{by, toolchain.TritonBuild{Dir: side.Dir, Tree: *b.job.Tree(side), Source: m.SourceFile(variant), Root: m.Root, Include: m.IncludeFolders(), SkipInit: m.SkipInit, Stubs: m.Stubs, Arch: arch, Seed: b.seed, Once: b.once}}, nil
	case manifest.PTX:
		return ptxas{plain}, nil
	case manifest.Program:
		by, err := toolchain.FindCommand(ctx, b.config.Getenv, nvccOf)
		if err != nil {
			return nil, runners.SetupErrorf("%s is compiled by a command: %w", m.Name, err)
		}
		return program{by, toolchain.CommandBuild{Dir: side.Dir, Tree: *b.job.Tree(side), Source: m.SourceFile(variant), Args: m.Build, Entry: m.Entry, Arch: arch, Toggles: m.ToggleValues(side.Variant), Seed: b.seed, Once: b.once}, nvccOf}, nil
	}
	return plain, nil
}

// A compilation is a running compilation of cubins.
type compilation struct {
	done   chan struct{}
	cubins []*toolchain.Cubin
	err    error
	logged bool
}

// begin starts a compilation under a name, once.
func (b *Backend) begin(ctx context.Context, name string, by compiler, kinds []manifest.Special) *compilation {
	if c := b.compiling[name]; c != nil {
		return c
	}
	c := &compilation{done: make(chan struct{})}
	b.compiling[name] = c
	scratch := filepath.Join(b.config.Scratch, name)
	go func() {
		defer close(c.done)
		if c.err = os.MkdirAll(scratch, 0o755); c.err != nil {
			c.err = fmt.Errorf("making room for the %s: %w", name, c.err)
			return
		}
		c.cubins, c.err = by.build(ctx, scratch, kinds)
	}()
	return c
}

// compile waits for a compilation. A compilation that was started ahead and cut off by the deadline
// of a different step is started again.
func (b *Backend) compile(ctx context.Context, name string, by compiler, kinds []manifest.Special) ([]*toolchain.Cubin, error) {
	c := b.begin(ctx, name, by, kinds)
	<-c.done
	if c.err != nil && ctx.Err() == nil && (errors.Is(c.err, context.Canceled) || errors.Is(c.err, context.DeadlineExceeded)) {
		delete(b.compiling, name)
		c = b.begin(ctx, name, by, kinds)
		<-c.done
	}
	if c.logged {
		return c.cubins, c.err
	}
	c.logged = true
	fmt.Fprintf(&b.log, "# %s: %s\n", name, by)
	if c.err == nil {
		for _, cubin := range c.cubins {
			b.log.WriteString(cubin.Log)
		}
	}
	if refusal, ok := errors.AsType[*output.CompileError](c.err); ok {
		b.log.WriteString(refusal.Log)
	}
	return c.cubins, c.err
}

// ahead starts the compilations that a whole run will need: the compiler leaves most cores idle.
func (b *Backend) ahead(ctx context.Context) {
	if b.config.Arch != "" {
		return // compiled only: nothing will run
	}
	m := b.job.Manifest
	for role, side := range map[runners.Role]*runners.Side{runners.Baseline: b.job.Baseline, runners.Candidate: &b.job.Candidate} {
		if side == nil {
			continue
		}
		m := b.job.Of(*side)
		for _, name := range m.Parts(side.Variant, b.device.Arch) {
			arch, err := archFor(b.device.Arch, m.ArchOf(name))
			if err != nil {
				continue // the build of that side reports the error
			}
			part := *side
			part.Variant = name
			by, err := b.compilerOf(ctx, part, arch)
			if err != nil {
				continue // as above
			}
			if m.TriesAll() {
				continue // the kernel must be asked for its configurations first
			}
			if kinds, err := kindsOf(m, name, false); err == nil {
				b.begin(ctx, b.compilationOf(role, name), by, kinds)
			}
		}
	}
	if g := b.job.Rule().Gates; g.Correctness == nil && g.Performance == nil {
		return
	}
	if m.ReferenceOnDevice() {
		b.begin(ctx, "reference", b.referenceBuild(), nil)
	}
	if build, err := b.oracleBuild(); err == nil {
		b.begin(ctx, "oracle", build, nil)
	}
}

// referenceBuild returns the build of the base's reference. The reference needs no sm_90a
// instructions, and the plain architecture always works.
func (b *Backend) referenceBuild() compiler {
	r := b.job.Manifest.Reference
	return nvcc{b.cuda, toolchain.NVCCBuild{Dir: b.job.Trusted, Source: r.Source, Entries: []string{r.Entry}, Arch: b.device.Arch, Trusted: true}}
}

func (b *Backend) reference(ctx context.Context) (*sides.Built, error) {
	m := b.job.Manifest
	cubins, err := b.compile(ctx, "reference", b.referenceBuild(), nil)
	if err != nil {
		if _, ok := errors.AsType[*output.CompileError](err); ok {
			return nil, b.job.ReferenceErrorf("does not compile: %w", err)
		}
		return nil, fmt.Errorf("compiling the reference %s: %w", m.Reference.Source, err)
	}
	cubin := cubins[0]
	if differs := compareParameters(cubin.Kernels[0], m.ReferenceParameters()); differs != nil {
		return nil, b.job.ReferenceErrorf("does not take what the manifest passes: %s; declare it as %s", differs.what, m.DeviceReferencePrototype())
	}
	if wrong := compareTypes(cubin.Kernels[0], m.ReferenceParameters()); wrong != "" {
		return nil, b.job.ReferenceErrorf("does not take what the manifest passes: %s; declare it as %s", wrong, m.DeviceReferencePrototype())
	}
	return &sides.Built{Image: cubin.Path, Symbols: map[string]string{m.Reference.Entry: cubin.Kernels[0].Symbol}}, nil
}

// CheckReference builds the reference, and compares its parameters with the manifest. A reference
// in Python also computes the outputs of a small shape. A run that compares outputs does the same.
func (b *Backend) CheckReference(ctx context.Context) (note string, err error) {
	switch {
	case b.job.Manifest.Reference == nil:
		return "", nil
	case b.python != nil:
		return b.python.Check(ctx, b.job.Of(b.job.Candidate), b.job.Candidate.Variant)
	}
	_, err = b.reference(ctx)
	return "", err
}

// oracleBuild returns the build of the judge's own device code, which is part of this program.
func (b *Backend) oracleBuild() (compiler, error) {
	const source = "oracle.cu"
	dir := filepath.Join(b.config.Scratch, "oracle-source")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	build := nvcc{b.cuda, toolchain.NVCCBuild{Dir: dir, Source: source, Entries: []string{oracle.Entry}, Arch: b.device.Arch, Flags: oracle.Flags(), Trusted: true}}
	if b.compiling["oracle"] != nil {
		return build, nil // it is being read
	}
	return build, os.WriteFile(filepath.Join(dir, source), oracle.Source, 0o644)
}

func (b *Backend) oracle(ctx context.Context) (string, error) {
	build, err := b.oracleBuild()
	if err != nil {
		return "", fmt.Errorf("writing the judge's own kernels: %w", err)
	}
	cubins, err := b.compile(ctx, "oracle", build, nil)
	if err != nil {
		return "", fmt.Errorf("compiling the judge's own kernels: %w", err)
	}
	return cubins[0].Path, nil
}

// Prepare compiles what a measurement needs in addition to the sides: the reference and the judge's
// own kernels. The runner that measures reports what does not compile.
func (b *Backend) Prepare(ctx context.Context) {
	if g := b.job.Rule().Gates; g.Correctness == nil && g.Performance == nil {
		return
	}
	if b.job.Manifest.ReferenceOnDevice() {
		if _, err := b.reference(ctx); err != nil {
			fmt.Fprintf(&b.log, "the reference is left to the runner that measures: %v\n", err)
		}
	}
	if _, err := b.oracle(ctx); err != nil {
		fmt.Fprintf(&b.log, "the judge's own kernels are left to the runner that measures: %v\n", err)
	}
}

// judgePin returns the pin of the nvcc that compiles the reference and the judge's own kernels: the
// base's, which is trusted.
func judgePin(job runners.Job) *policy.Toolchain {
	if job.Baseline != nil {
		return job.Baseline.Toolchains.NVCC
	}
	return job.Candidate.Toolchains.NVCC
}

// pinnedCUDA returns the nvcc of a side. If the host lacks it, that is the host's fault, not the
// source's.
func (b *Backend) pinnedCUDA(ctx context.Context, side runners.Side) (*toolchain.CUDA, error) {
	pin := side.Toolchains.NVCC
	if pin.Equal(judgePin(b.job)) {
		return b.cuda, nil
	}
	if pin == nil {
		pin = &policy.Toolchain{}
	}
	b.found.mu.Lock()
	defer b.found.mu.Unlock()
	if b.found.cudas[*pin] == nil {
		found, err := b.installed.CUDA(ctx, side.Toolchains.NVCC)
		if err != nil {
			return nil, err
		}
		b.found.cudas[*pin] = found
	}
	return b.found.cudas[*pin], nil
}

// pinnedTriton returns the Triton of a side.
func (b *Backend) pinnedTriton(ctx context.Context, side runners.Side) (*toolchain.Triton, error) {
	var key policy.Toolchain
	if side.Toolchains.Triton != nil {
		key = *side.Toolchains.Triton
	}
	b.found.mu.Lock()
	defer b.found.mu.Unlock()
	if b.found.tritons[key] == nil {
		found, err := b.installed.Triton(ctx, side.Toolchains.Triton)
		if err != nil && side.Toolchains.Triton == nil {
			return nil, runners.SetupErrorf("%s is compiled by Triton: %w", b.job.Manifest.Name, err)
		}
		if err != nil {
			return nil, err
		}
		b.found.tritons[key] = found
	}
	return b.found.tritons[key], nil
}
