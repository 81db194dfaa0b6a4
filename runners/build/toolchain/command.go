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
	"reflect"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A Command runs programs of a repository that write cubins with any compiler: CuTe DSL, TileLang,
// Rust. They see the system, the CUDA toolkit, the host's Python and the folders of
// KERNELGATE_READ.
type Command struct {
	path   []string // of programs
	read   []string
	memory int64
}

// FindCommand looks for what such programs may use.
func FindCommand(ctx context.Context, getenv func(string) string, cuda *CUDA) (*Command, error) {
	c := &Command{path: []string{filepath.Dir(cuda.NVCC)}, read: cuda.readable(), memory: cuda.memory()}
	if p, err := findPython(ctx, getenv); err == nil { // without Python, programs that do not need it still work
		c.path = append([]string{filepath.Dir(p.Executable)}, c.path...)
		dirs := []string{p.Prefix, p.BasePrefix, prefix(p.Real)}
		if dir := showsTooMuch(getenv, dirs); dir != "" {
			return nil, fmt.Errorf("%s cannot be used: a build would be shown all of %s; set KERNELGATE_PYTHON to a Python in a separate folder", p.Executable, dir)
		}
		c.read = append(c.read, dirs...)
	} else if ctx.Err() != nil {
		return nil, err
	}
	for _, dir := range filepath.SplitList(getenv("KERNELGATE_READ")) {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("KERNELGATE_READ names %q (write absolute folders, separated by colons, e.g. /opt/venv)", dir)
		}
		c.read = append(c.read, dir)
	}
	slices.Sort(c.read)
	c.read = slices.Compact(c.read)
	return c, nil
}

// A CommandBuild is one run of such a program. Only the files in Dir and the words of the command
// come from the change.
type CommandBuild struct {
	Dir     string       // the kernel's folder, seen read-only
	Tree    runners.Tree // where Dir lies in its repository
	Args    []string     // the program and its arguments
	Source  string       // a file in Dir, for people
	Entry   string       // the kernel's symbol, if the program names none
	Arch    string
	Toggles map[string]int
	Scratch string // existing folder; the cubin comes into a new one below it
	Seed    uint64 // see NVCCBuild
	Once    bool   // see NVCCBuild
}

// What a program writes to the folder that $OUT names.
const (
	commandCubin  = "kernel.cubin"
	commandLaunch = "kernel.json"
)

// commandSaid is kernel.json.
type commandSaid struct {
	Entry   string    `json:"entry"`
	Block   []int     `json:"block"`
	Shared  int       `json:"shared_memory"`
	Scratch []Scratch `json:"scratch"`
}

// Build runs the program in the sandbox, where it may do anything. Its output is read like any
// other cubin, and the launch that it asks for is compared with the code. Nothing is cached,
// because the program may read anything of the host. The errors are those of CUDA.Build.
func (c *Command) Build(ctx context.Context, b CommandBuild) (*Cubin, error) {
	if !archName.MatchString(b.Arch) || len(b.Args) == 0 || !filepath.IsAbs(b.Dir) || !filepath.IsAbs(b.Scratch) {
		return nil, fmt.Errorf("a build by %q for %q in %q is not whole", b.Args, b.Arch, b.Dir)
	}
	out, err := os.MkdirTemp(b.Scratch, b.Arch+"-")
	if err != nil {
		return nil, fmt.Errorf("making room for the cubin of %s: %w", b.Source, err)
	}
	cubin, err := c.buildTwice(ctx, b, out)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(out))
	}
	return cubin, nil
}

// buildTwice runs the program here and, at the same time, in different surroundings.
func (c *Command) buildTwice(ctx context.Context, b CommandBuild, out string) (*Cubin, error) {
	again, err := os.MkdirTemp(b.Scratch, "again-")
	if err != nil {
		return nil, fmt.Errorf("making room for the cubin of %s: %w", b.Source, err)
	}
	defer os.RemoveAll(again)
	build := func(ctx context.Context, in Surroundings) (*Cubin, error) {
		if in.Name == Here.Name {
			return c.build(ctx, b, out, in)
		}
		return c.build(ctx, b, again, in)
	}
	if b.Once {
		return build(ctx, Here)
	}
	elsewhere := Elsewhere(cmp.Or(b.Seed, rand.Uint64()))
	cubin, there, err := twice(ctx, elsewhere, build, func(*Cubin) bool { return false }) // a refusal is an error here
	if err != nil {
		return nil, err
	}
	if there.Code != cubin.Code || !reflect.DeepEqual(there.Start, cubin.Start) {
		return nil, cubin.refuse("%s", ErrSurroundings(b.Source, elsewhere).Summary)
	}
	return cubin, nil
}

func (c *Command) build(ctx context.Context, b CommandBuild, out string, in Surroundings) (*Cubin, error) {
	var text bytes.Buffer
	spec := sandbox.Spec{
		Args: b.Args, Env: c.env(b, in.work+"/out"), Stdout: &text, Stderr: &text, Read: slices.Clone(c.read),
		Places: []sandbox.Place{{Host: out, Inside: in.work + "/out", Write: true}},
		Limits: compilerLimits(ctx, c.memory, 0),
	}
	in.enter(&spec, b.Dir, &b.Tree)
	r, err := sandbox.Run(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("running the build %s: %w", entryname.Quote(strings.Join(b.Args, " ")), err)
	}
	log := in.names(text.String(), &b.Tree)
	cubin := &Cubin{Log: log, Diagnostics: diagnosticsIn(log, b.Dir), Path: filepath.Join(out, commandCubin)}
	if !r.OK() {
		summary, _ := refusal(c.memory, r, cubin.Log, cubin.Diagnostics)
		return nil, cubin.refuse("the build %s: %s", entryname.Quote(strings.Join(b.Args, " ")), summary)
	}
	if cubin.Image, err = output.ReadFile(cubin.Path, maxImage); err != nil {
		return nil, withLog(err, cubin)
	}
	launch, err := output.ReadFile(filepath.Join(out, commandLaunch), maxSaid)
	if err != nil {
		return nil, withLog(err, cubin)
	}
	if refusal, ok := errors.AsType[*output.CompileError](in.asked(r, b.Dir, &b.Tree).compileError(b.Source, log)); ok {
		return nil, cubin.refuse("%s", refusal.Summary)
	}
	if err := cubin.readCommand(b, launch); err != nil {
		return nil, err
	}
	return cubin, os.WriteFile(cubin.Path, cubin.Image, 0o644)
}

func withLog(err error, c *Cubin) error {
	if refusal, ok := errors.AsType[*output.CompileError](err); ok {
		return c.refuse("%s", refusal.Summary)
	}
	return err
}

// env is the whole environment of the program.
func (c *Command) env(b CommandBuild, out string) []string {
	env := []string{"PATH=" + strings.Join(append(slices.Clone(c.path), "/usr/local/bin", "/usr/bin", "/bin"), ":"), "LC_ALL=C", "TMPDIR=/tmp", "OUT=" + out, "ARCH=" + b.Arch}
	for name, value := range b.Toggles {
		env = append(env, fmt.Sprintf("TOGGLE_%s=%d", name, value))
	}
	slices.Sort(env)
	return env
}

// readCommand reads the cubin, and compares the launch that is asked for with it.
func (c *Cubin) readCommand(b CommandBuild, text []byte) error {
	var s commandSaid
	if err := readStrictly(text, &s); err != nil {
		return c.refuse("%s of the build cannot be read: %v (write e.g. {\"entry\": \"softmax\", \"block\": [128], \"shared_memory\": 0})", commandLaunch, err)
	}
	if len(s.Block) == 0 || len(s.Block) > 3 {
		return c.refuse("%s of the build has a block of %d axes (write one to three, e.g. \"block\": [128])", commandLaunch, len(s.Block))
	}
	f, err := c.readImage(b.Source, cmp.Or(s.Entry, b.Entry), 0)
	if err != nil {
		return err
	}
	c.Start = &Start{Block: [3]int{1, 1, 1}, Shared: s.Shared, Scratch: s.Scratch}
	copy(c.Start.Block[:], s.Block)
	if err := c.Start.check(f, c.Kernels[0]); err != nil {
		return c.refuse("%s would be launched as its machine code does not allow: %s says %v", b.Source, commandLaunch, err)
	}
	return c.readFigures(f, "", b.Arch)
}
