package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// An NVCCBuild is one source to compile for one architecture: CUDA by nvcc, or PTX by ptxas only.
// Only the files in Dir come from the change.
type NVCCBuild struct {
	Dir     string   // folder of the sources, seen read-only
	Source  string   // a file in Dir
	Entries []string // the kernels by their names in the source, see manifest.Entry
	Arch    string   // such as sm_90a
	Flags   []string
	Defines []string      // flags too: -DNAME=VALUE
	Include []string      // flags of the host's preprocessor, which reads the sources of both: -IFOLDER and -idirafterFOLDER, within Dir
	Tree    runners.Tree  // where Dir lies in its repository
	Trusted bool          // the source is the judge's or the base's reference: it only has to compile
	Scratch string        // existing folder; the cubin comes into a new one below it
	Timeout time.Duration // of one program; 0 is that of sandbox.DeviceCompiler
	Seed    uint64        // from which the surroundings of the second build are drawn, see Elsewhere; 0 draws an unpredictable one
	Once    bool          // for a search, which decides nothing: there is no second build, and no gate uses this one

	markers string // source to read behind Source, see markerSource
}

// A Cubin is a kernel in machine code, with the tools' reports about it. It judges nothing.
type Cubin struct {
	Path  string // in a separate folder below Scratch
	Image []byte
	Code  string // see machineCode

	Kernels []Kernel // in the order of NVCCBuild.Entries
	Globals []Global // writable memory that outlives a launch
	Start   *Start   // how its one kernel is launched; nil if the manifest says so

	Autotune []string // the configurations that @triton.autotune offers, in the build's words
	Chosen   string   // the one of them that this is; "" if there is none

	Warnings    []string // of ptxas, about any entry
	Diagnostics []gates.Diagnostic
	Log         string
	Cached      bool // the compiler did not run this time
}

// A Kernel is a kernel of a cubin that was asked for.
type Kernel struct {
	Symbol   string // as the driver, the profiler and the other tools know it
	Name     string // as people read it: ns::scale<64, true>(float*, float const*)
	Usage    FunctionUsage
	Params   []Param
	CodeSize int // bytes of its instructions
	Line     int // where Source defines it; 0 if a macro or a different file does
}

// Build compiles in the sandbox. The error is a *CompileError if the source is at fault: the
// compiler refused it or exceeded its limits, the entry is missing, or the kernel needs what only a
// host program could provide. Other errors are faults of this machine or of the flags.
func (c *CUDA) Build(ctx context.Context, b NVCCBuild) (*Cubin, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	out, err := os.MkdirTemp(b.Scratch, b.Arch+"-")
	if err != nil {
		return nil, fmt.Errorf("making room for the cubin of %s: %w", b.Source, err)
	}
	if cubin := c.handed(b, filepath.Join(out, "kernel.cubin")); cubin != nil {
		return cubin, nil
	}
	cubin, err := c.build(ctx, b, filepath.Join(out, "kernel.cubin"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(out))
	}
	return cubin, nil
}

func (c *CUDA) build(ctx context.Context, b NVCCBuild, path string) (*Cubin, error) {
	entries, err := b.entries()
	if err != nil {
		return nil, err
	}
	made, cached, err := c.cachedOutput(ctx, b, path)
	if err != nil {
		return nil, fmt.Errorf("compiling %s for %s: %w", b.Source, b.Arch, err)
	}
	c.hand(b, made)
	cubin, err := made.read(b)
	if absent, ok := errors.AsType[*absentEntry](err); ok {
		if b.markers == "" && !b.isPTX() {
			b.markers = markerSource(entries)
			if b.markers != "" {
				cubin, err := c.build(ctx, b, path)
				return cubin, absent.explain(err)
			}
		}
		return nil, absent.refusal
	}
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

var archName = regexp.MustCompile(`^sm_(\d{2,3})[af]?$`)

func (b NVCCBuild) entries() ([]manifest.Entry, error) {
	var entries []manifest.Entry
	for _, text := range b.Entries {
		e, err := manifest.ParseEntry(text)
		if err != nil {
			return nil, fmt.Errorf("the entry %w", err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// check refuses values that nvcc would interpret as something else.
func (b NVCCBuild) check() error {
	switch {
	case !archName.MatchString(b.Arch):
		return fmt.Errorf("%q is no GPU architecture (write e.g. sm_89 or sm_90a)", b.Arch)
	case len(b.Entries) == 0:
		return errors.New("no kernel is asked for")
	case !filepath.IsLocal(b.Source) || strings.HasPrefix(b.Source, "-") || strings.HasPrefix(b.Source, "@"):
		return fmt.Errorf("%q is no file within the kernel's folder (write e.g. kernel.cu)", b.Source)
	case !strings.HasSuffix(b.Source, ".cu") && !b.isHeader() && !b.isPTX():
		return fmt.Errorf("%q is no CUDA source (its name must end in .cu, .cuh or .ptx)", b.Source)
	case strings.ContainsAny(b.Source, ",\n"):
		return fmt.Errorf("%q is a name that nvcc would read as several (write letters, digits, _ and -)", b.Source)
	case !filepath.IsAbs(b.Dir) || !filepath.IsAbs(b.Scratch):
		return fmt.Errorf("the folders %q and %q must be absolute", b.Dir, b.Scratch)
	}
	_, err := b.entries()
	return err
}

func (b NVCCBuild) isPTX() bool { return strings.HasSuffix(b.Source, ".ptx") }

// isHeader reports whether the kernels are in a header, which nvcc compiles only if it is told to.
func (b NVCCBuild) isHeader() bool { return strings.HasSuffix(b.Source, ".cuh") }

// compiler returns the program that compiles the source.
func (c *CUDA) compiler(b NVCCBuild) string {
	if b.isPTX() {
		return filepath.Join(c.Home, "bin", "ptxas")
	}
	return c.NVCC
}

// call returns the compiler and its arguments without the source and the output. The cache's key has
// only the arguments.
func (c *CUDA) call(b NVCCBuild, in Surroundings) []string {
	if b.isPTX() {
		return append([]string{c.compiler(b)}, c.args(b, in)...)
	}
	return slices.Concat([]string{c.compiler(b)}, in.include(), c.args(b, in))
}

// args returns the compiler's arguments without the source and the output. -lineinfo lets a
// profiler name lines; it changes no instruction.
func (c *CUDA) args(b NVCCBuild, in Surroundings) []string {
	if b.isPTX() {
		return append([]string{"--gpu-name", b.Arch, "-v", "--warn-on-spills", "-lineinfo"}, b.Flags...)
	}
	args := []string{
		"-cubin", "-gencode", fmt.Sprintf("arch=compute_%s,code=%s", strings.TrimPrefix(b.Arch, "sm_"), b.Arch),
		"-Xptxas", "-v,--warn-on-spills", "-lineinfo", "-ccbin", c.HostCompiler,
	}
	for _, flag := range in.flags(b.Include, b.Dir, &b.Tree) {
		args = append(args, "-Xcompiler="+flag)
	}
	args = append(append(args, b.Flags...), b.Defines...)
	switch {
	case b.markers != "":
		args = append(args, "-include", in.source(b.Source, b.Dir, &b.Tree))
	case b.isHeader():
		args = append(args, "-x", "cu")
	}
	return args
}
