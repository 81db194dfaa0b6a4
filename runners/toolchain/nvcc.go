package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// An NVCCBuild is one source to compile for one architecture. Nothing in it comes from the change but the files in Dir.
type NVCCBuild struct {
	Dir     string // folder of the sources, seen read-only
	Source  string // a file in Dir
	Entry   string // the kernel's name as the driver knows it: extern "C" __global__ void Entry(…)
	Arch    string // such as sm_90a
	Flags   []string
	Defines []string // flags too: -DNAME=VALUE
	Include []string // flags of the host's preprocessor, which reads the sources of both: -idirafterFOLDER, within Dir
	Scratch string   // existing folder; the cubin comes into a new one below it
	Timeout time.Duration
}

// A Cubin is a kernel in machine code, with what the tools say about it. It judges nothing.
type Cubin struct {
	Path  string // in a folder of its own below Scratch
	Image []byte
	Code  string // see machineCode

	Entries   []string // every kernel in it, not only the one that was asked for
	Usage     FunctionUsage
	CodeSize  int      // bytes of the entry's instructions
	Globals   []Global // writable memory that outlives a launch
	EntryLine int      // where Source defines the entry; 0 where a macro or another file does

	Warnings    []string // of ptxas, about any entry
	Diagnostics []gates.Diagnostic
	Log         string
	Seconds     float64 // that the compiler took when it ran
	Cached      bool    // it did not run this time
}

const (
	buildTimeout = 2 * time.Minute
	buildMemory  = 6 << 30
)

// Build compiles in the sandbox. The error is a *CompileError where the source is to blame: the compiler refused it or
// overran its limits, the entry is missing, or the kernel wants what only a host program could give it. Other
// errors are faults of this machine or of the flags.
func (c *CUDA) Build(ctx context.Context, b NVCCBuild) (*Cubin, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	out, err := os.MkdirTemp(b.Scratch, b.Arch+"-")
	if err != nil {
		return nil, fmt.Errorf("making room for the cubin of %s: %w", b.Source, err)
	}
	cubin, err := c.build(ctx, b, filepath.Join(out, "kernel.cubin"))
	if err == nil {
		return cubin, nil
	}
	if left := os.RemoveAll(out); left != nil {
		err = errors.Join(err, left)
	}
	return nil, err
}

func (c *CUDA) build(ctx context.Context, b NVCCBuild, path string) (*Cubin, error) {
	made, cached, err := c.cachedOutput(ctx, b, path)
	if err != nil {
		return nil, fmt.Errorf("compiling %s for %s: %w", b.Source, b.Arch, err)
	}
	cubin, err := made.read(b)
	if errors.Is(err, errNotCubin) {
		if fault := c.probe(ctx, b); fault != nil {
			return nil, fault
		}
		return nil, (&Cubin{Log: made.Log}).refuse("%v", err)
	}
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, made.Image, 0o644); err != nil {
		return nil, fmt.Errorf("writing the cubin of %s: %w", b.Source, err)
	}
	cubin.Path, cubin.Cached = path, cached
	return cubin, nil
}

var (
	archName  = regexp.MustCompile(`^sm_(\d{2,3})[af]?$`)
	entryName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)
)

// check refuses what would reach nvcc as something else than it is.
func (b NVCCBuild) check() error {
	switch {
	case !archName.MatchString(b.Arch):
		return fmt.Errorf("%q is no GPU architecture (write e.g. sm_89 or sm_90a)", b.Arch)
	case !entryName.MatchString(b.Entry):
		return fmt.Errorf("%q is no name of a kernel (write the name in extern \"C\" __global__ void NAME)", b.Entry)
	case !filepath.IsLocal(b.Source) || strings.HasPrefix(b.Source, "-") || strings.HasPrefix(b.Source, "@"):
		return fmt.Errorf("%q is no file within the kernel's folder (write e.g. kernel.cu)", b.Source)
	case !strings.HasSuffix(b.Source, ".cu"):
		return fmt.Errorf("%q is no CUDA source (its name must end in .cu)", b.Source)
	case !filepath.IsAbs(b.Dir) || !filepath.IsAbs(b.Scratch):
		return fmt.Errorf("the folders %q and %q must be absolute", b.Dir, b.Scratch)
	}
	return nil
}

// args are nvcc's, but for the source and the output. -lineinfo lets a profiler name lines; it changes no instruction.
func (c *CUDA) args(b NVCCBuild) []string {
	args := []string{
		"-cubin", "-gencode", fmt.Sprintf("arch=compute_%s,code=%s", strings.TrimPrefix(b.Arch, "sm_"), b.Arch),
		"-Xptxas", "-v,--warn-on-spills", "-lineinfo", "-ccbin", c.HostCompiler,
	}
	for _, flag := range b.Include {
		args = append(args, "-Xcompiler="+flag)
	}
	return append(append(args, b.Flags...), b.Defines...)
}
