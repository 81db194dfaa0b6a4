package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/oracle"
	sides "github.com/kernelgate/kernelgate/runners/cuda/side"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

const compileTimeout = 5 * time.Minute

// A compilation is a cubin on its way.
type compilation struct {
	done   chan struct{}
	cubin  *toolchain.Cubin
	err    error
	logged bool
}

// begin starts compiling something under a name, once.
func (b *Backend) begin(ctx context.Context, name string, build toolchain.NVCCBuild) *compilation {
	if c := b.compiling[name]; c != nil {
		return c
	}
	c := &compilation{done: make(chan struct{})}
	b.compiling[name] = c
	build.Scratch, build.Timeout = filepath.Join(b.config.Scratch, name), compileTimeout
	go func() {
		defer close(c.done)
		if c.err = os.MkdirAll(build.Scratch, 0o755); c.err != nil {
			c.err = fmt.Errorf("making room for the %s: %w", name, c.err)
			return
		}
		c.cubin, c.err = b.cuda.Build(ctx, build)
	}()
	return c
}

// compile waits for something to be compiled. One that was begun ahead and cut
// off by another step's limit is begun again.
func (b *Backend) compile(ctx context.Context, name string, build toolchain.NVCCBuild) (*toolchain.Cubin, error) {
	c := b.begin(ctx, name, build)
	<-c.done
	if c.err != nil && ctx.Err() == nil && (errors.Is(c.err, context.Canceled) || errors.Is(c.err, context.DeadlineExceeded)) {
		delete(b.compiling, name)
		c = b.begin(ctx, name, build)
		<-c.done
	}
	if c.logged {
		return c.cubin, c.err
	}
	c.logged = true
	fmt.Fprintf(&b.log, "# %s: %s for %s\n", name, build.Source, build.Arch)
	if c.cubin != nil {
		b.log.WriteString(c.cubin.Log)
	}
	if refusal, ok := errors.AsType[*toolchain.CompileError](c.err); ok {
		b.log.WriteString(refusal.Log)
	}
	return c.cubin, c.err
}

// ahead begins what a whole run will need: the compiler leaves most cores idle.
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
			variant, err := m.Variant(name)
			if err != nil {
				continue // told when it is that side's turn
			}
			if arch, err := archFor(b.device.Arch, m.ArchOf(name)); err == nil {
				b.begin(ctx, b.compilationOf(role, name), toolchain.NVCCBuild{
					Dir: side.Dir, Source: m.SourceFile(variant), Entries: m.Entries(name), Arch: arch, Flags: m.CompilerFlags(name), Defines: m.Defines(name), Include: m.IncludeFlags(),
				})
			}
		}
	}
	if b.job.Rule().Gates.Correctness == nil {
		return
	}
	if m.ReferenceOnDevice() {
		b.begin(ctx, "reference", b.referenceBuild())
	}
	if build, err := b.oracleBuild(); err == nil {
		b.begin(ctx, "oracle", build)
	}
}

// referenceBuild is the base's reference. sm_90a code needs no such reference;
// the plain architecture always works.
func (b *Backend) referenceBuild() toolchain.NVCCBuild {
	r := b.job.Manifest.Reference
	return toolchain.NVCCBuild{Dir: b.job.Trusted, Source: r.Source, Entries: []string{r.Entry}, Arch: b.device.Arch}
}

func (b *Backend) reference(ctx context.Context) (*sides.Built, error) {
	m := b.job.Manifest
	if !m.ReferenceOnDevice() {
		return nil, runners.SetupErrorf("the reference %s of %s is not CUDA: the cuda runner computes it on the GPU (write it as a .cu file)", m.Reference.Source, m.Name)
	}
	cubin, err := b.compile(ctx, "reference", b.referenceBuild())
	if err != nil {
		if _, ok := errors.AsType[*toolchain.CompileError](err); ok {
			return nil, runners.SetupErrorf("the reference %s of the base does not compile: %w", m.Reference.Source, err)
		}
		return nil, fmt.Errorf("compiling the reference %s of the base: %w", m.Reference.Source, err)
	}
	if differs := compareParameters(cubin.Kernels[0], m.ReferenceParameters()); differs != nil {
		return nil, fmt.Errorf("the reference %s of the base: %s", m.Reference.Source, differs.summary)
	}
	return &sides.Built{Image: cubin.Path, Symbols: map[string]string{m.Reference.Entry: cubin.Kernels[0].Symbol}}, nil
}

// oracleBuild is the judge's own device code, which comes with this program.
func (b *Backend) oracleBuild() (toolchain.NVCCBuild, error) {
	const source = "oracle.cu"
	dir := filepath.Join(b.config.Scratch, "oracle-source")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return toolchain.NVCCBuild{}, err
	}
	build := toolchain.NVCCBuild{Dir: dir, Source: source, Entries: []string{oracle.Entry}, Arch: b.device.Arch, Flags: oracle.Flags()}
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
	cubin, err := b.compile(ctx, "oracle", build)
	if err != nil {
		return "", fmt.Errorf("compiling the judge's own kernels: %w", err)
	}
	return cubin.Path, nil
}
