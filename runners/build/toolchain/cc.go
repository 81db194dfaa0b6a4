package toolchain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A CC is a C or C++ compiler of the system.
type CC struct {
	Path    string
	Version string // the first line of --version
}

// ErrNoCompiler says what to install.
var ErrNoCompiler = errors.New("no C compiler was found: install gcc or clang (Debian: apt-get install gcc libc6-dev), or set CC to one")

// FindCC looks for the compiler that the environment names in CC, then for cc,
// gcc and clang; for C++ in CXX, then for c++, g++ and clang++.
func FindCC(ctx context.Context, getenv func(string) string, cxx bool) (CC, error) {
	variable, names := "CC", []string{"cc", "gcc", "clang"}
	if cxx {
		variable, names = "CXX", []string{"c++", "g++", "clang++"}
	}
	if name := getenv(variable); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return CC{}, fmt.Errorf("finding the compiler %s: %w", name, err)
		}
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if err != nil {
			return CC{}, fmt.Errorf("asking %s for its version: %w (is it a compiler?)", path, err)
		}
		first, _, _ := strings.Cut(string(out), "\n")
		return CC{Path: path, Version: strings.TrimSpace(first)}, nil
	}
	if name := getenv(variable); name != "" {
		return CC{}, fmt.Errorf("the compiler %s=%s was not found: %w", variable, name, ErrNoCompiler)
	}
	return CC{}, ErrNoCompiler
}

// A Compile is one call of the compiler. Only the text of the sources comes from the change.
type Compile struct {
	Dir  string // folder of the sources, seen read-only
	Args []string
	Out  string // existing folder that the compiler may write to

	// Tree says where Dir is in its repository. With it, the sources are where a checkout has them,
	// in In, and files that a checkout has but Dir has not are refused. Source, a file in Dir, is
	// then the last argument.
	Tree   *runners.Tree
	In     Surroundings
	Source string

	lookups *[]string // where the lookups go that would otherwise be judged
}

// Try compiles an empty source in the sandbox.
func (c CC) Try(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "kernelgate-cc-")
	if err != nil {
		return fmt.Errorf("making a folder for the compiler: %w", err)
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "empty.c"), nil, 0o644); err != nil {
		return fmt.Errorf("writing a source for the compiler: %w", err)
	}
	_, err = c.Run(ctx, Compile{Dir: folder, Out: folder, Args: []string{"-c", "-o", filepath.Join(folder, "empty.o"), "empty.c"}})
	return err
}

// installed is the folders of a compiler outside the system's, as below /opt/gcc-14: programs that it
// starts, its libraries and its headers. They are siblings of its folder bin, and nothing else of
// what lies there may be read.
func (c CC) installed() []string {
	found := map[string]bool{}
	for _, path := range []string{c.Path, resolved(c.Path)} {
		bin := filepath.Dir(path)
		if filepath.Base(bin) != "bin" {
			continue
		}
		found[bin] = true
		for _, sibling := range []string{"lib", "lib32", "lib64", "libexec", "include", "*-linux-gnu"} {
			matches, _ := filepath.Glob(filepath.Join(filepath.Dir(bin), sibling))
			for _, folder := range matches {
				found[folder] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// resolved is where a path leads, or the path itself where it leads nowhere.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// compilerEnv is the whole environment of a compiler.
var compilerEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp"}

// Run calls the compiler in the sandbox and returns its output. The error is a *CompileError if the
// compiler refused the source or exceeded its limits.
func (c CC) Run(ctx context.Context, call Compile) (log string, err error) {
	var out bytes.Buffer
	spec := sandbox.Spec{
		Args: append([]string{c.Path}, call.Args...), Dir: call.Dir, Env: compilerEnv,
		Read:  slices.Concat(sandbox.SystemPaths(), []string{c.Path}, c.installed()),
		Write: []string{call.Out}, Stdout: &out, Stderr: &out,
		Limits: sandbox.CCompiler.Limits().Until(ctx),
	}
	if call.Tree != nil {
		spec.Args = slices.Concat([]string{c.Path}, call.In.include(), call.In.flags(call.Args, call.Dir, call.Tree), []string{call.In.source(call.Source, call.Dir, call.Tree)})
		call.In.enter(&spec, call.Dir, call.Tree)
		guard, err := call.In.guarded(&spec)
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(guard)
	} else {
		spec.Read = append(spec.Read, call.Dir)
	}
	r, err := sandbox.Run(ctx, spec)
	log = out.String()
	if call.Tree != nil {
		log = call.In.names(log, call.Tree)
	}
	if err != nil {
		return log, fmt.Errorf("running %s: %w", filepath.Base(c.Path), err)
	}
	if !r.OK() {
		failure := &output.CompileError{Log: log, Diagnostics: output.ParseDiagnostics(log)}
		failure.Summary = summarize(failure, r)
		return log, failure
	}
	if call.Tree == nil {
		return log, nil
	}
	if call.lookups != nil {
		*call.lookups = r.Lookups
		return log, nil
	}
	a := call.In.asked(r, call.Dir, call.Tree)
	a.out, a.usual = call.Out, func() (map[string]bool, error) { return c.usualLookups(ctx, call) }
	if a.include, err = systemIncludes(ctx, c.Path, call.Args); err != nil {
		return log, err
	}
	return log, a.compileError(call.Source, log)
}

var searched = regexp.MustCompile(`(?s)#include <\.\.\.> search starts here:\n(.*?)End of search list`)

// systemIncludes returns the folders in which a compiler finds the system's headers, for the
// language that its arguments name.
func systemIncludes(ctx context.Context, compiler string, args []string) ([]string, error) {
	language := "c"
	if i := slices.Index(args, "-x"); i >= 0 && i+1 < len(args) {
		language = args[i+1]
	}
	known := compiler + " " + language
	if dirs, ok := includesOf.Load(known); ok {
		return dirs.([]string), nil
	}
	cmd := exec.CommandContext(ctx, compiler, "-E", "-v", "-x", language, "/dev/null")
	cmd.Env = compilerEnv
	said, err := cmd.CombinedOutput()
	list := searched.FindSubmatch(said)
	if err != nil || list == nil {
		return nil, fmt.Errorf("asking %s where the system's headers are: %w (is it a compiler?)", compiler, cmp.Or(err, errors.New("it names no folders")))
	}
	dirs := []string{}
	for line := range strings.Lines(string(list[1])) {
		dirs = append(dirs, filepath.Clean(strings.TrimSpace(line)))
	}
	includesOf.Store(known, dirs)
	return dirs, nil
}

// includesOf caches the answers of compilers.
var includesOf sync.Map

// maxStackUsage is the size of a report about 32,768 functions with long names.
const maxStackUsage = 16 << 20

// Frames reads the stack frames that -fstack-usage wrote: bytes by function. The source chooses the
// names in the file and can garble it; then the error is a *CompileError.
func Frames(file string) (map[string]int, error) {
	text, err := output.ReadFile(file, maxStackUsage)
	if err != nil {
		return nil, err
	}
	frames, err := parseStackUsage(string(text))
	if err != nil {
		return nil, output.Refuse("the compiler's stack report is garbled (%v): the source must not change its own name, as by #line", err)
	}
	return frames, nil
}

// parseStackUsage reads lines such as "k.c:12:6:sdpa\t1040\tstatic".
func parseStackUsage(text string) (map[string]int, error) {
	frames := map[string]int{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(fields) == 1 && strings.TrimSpace(fields[0]) == "" {
			continue
		}
		var bytes int
		if len(fields) != 3 {
			return nil, fmt.Errorf("stack usage line %d: has %d columns, expected 3", number, len(fields))
		}
		if _, err := fmt.Sscanf(fields[1], "%d", &bytes); err != nil || bytes < 0 {
			return nil, fmt.Errorf("stack usage line %d: %q is not a size in bytes", number, fields[1])
		}
		name := fields[0][strings.LastIndexByte(fields[0], ':')+1:]
		frames[name] = max(frames[name], bytes)
	}
	return frames, nil
}

// notStarted is the exit status of a program that the loader cannot start: a shared library is missing.
const notStarted = 127

// summarize describes a failed run of a compiler in one line.
func summarize(e *output.CompileError, r sandbox.Result) string {
	if len(r.Refused) > 0 {
		return "the compiler was stopped: " + strings.Join(r.Refused, "; ")
	}
	if first := e.Headline(); first != "" {
		return first
	}
	if r.Signal != 0 {
		return fmt.Sprintf("the compiler died: %s", r.Signal)
	}
	if last := output.LastLine(e.Log); r.ExitCode == notStarted && last != "" {
		return fmt.Sprintf("the compiler does not start in the sandbox: %.300s", last)
	}
	return fmt.Sprintf("the compiler ended with status %d and named no error", r.ExitCode)
}
