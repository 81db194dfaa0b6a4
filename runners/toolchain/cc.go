package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/sandbox"
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

// A Compile is one call of the compiler. Nothing in it comes from the change
// but the text of the sources.
type Compile struct {
	Dir     string // folder of the sources, seen read-only
	Args    []string
	Out     string // existing folder that the compiler may write to
	Timeout time.Duration
}

// A CompileError is a compiler's refusal: evidence about the source, not a
// fault of the runner.
type CompileError struct {
	Summary     string
	Log         string
	Diagnostics []gates.Diagnostic
}

func (e *CompileError) Error() string { return e.Summary }

// compilerEnv is all the environment that a compiler gets.
var compilerEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp"}

// Run calls the compiler in the sandbox and returns what it printed. The error
// is a *CompileError where the compiler refused the source or overran its
// limits.
func (c CC) Run(ctx context.Context, call Compile) (log string, err error) {
	var out bytes.Buffer
	spec := sandbox.Spec{
		Args: append([]string{c.Path}, call.Args...), Dir: call.Dir, Env: compilerEnv,
		Read:  append(sandbox.SystemPaths(), call.Dir, c.Path),
		Write: []string{call.Out}, Stdout: &out, Stderr: &out,
		Limits: sandbox.Limits{Wall: call.Timeout, Memory: 4 << 30, Disk: 512 << 20, Processes: 64, Output: 1 << 20},
	}
	r, err := sandbox.Run(ctx, spec)
	if err != nil {
		return out.String(), fmt.Errorf("running %s: %w", filepath.Base(c.Path), err)
	}
	if r.OK() {
		return out.String(), nil
	}
	failure := &CompileError{Log: out.String(), Diagnostics: ParseDiagnostics(out.String())}
	failure.Summary = failure.summary(r)
	return out.String(), failure
}

func (e *CompileError) summary(r sandbox.Result) string {
	if len(r.Refused) > 0 {
		return "the compiler was stopped: " + strings.Join(r.Refused, "; ")
	}
	switch first := FirstError(e.Diagnostics); {
	case first != "":
		return first
	case r.Signal != 0:
		return fmt.Sprintf("the compiler died: %s", r.Signal)
	}
	return fmt.Sprintf("the compiler ended with status %d and named no error", r.ExitCode)
}

// FirstError is the first error among the messages in one line, with the number
// of those behind it; empty where there is none.
func FirstError(messages []gates.Diagnostic) string {
	first, errors := "", 0
	for _, d := range messages {
		if !isError(d) {
			continue
		}
		if errors++; first == "" {
			first = d.Message
			if d.File != "" {
				first = fmt.Sprintf("%s:%d: %s", d.File, d.Line, d.Message)
			}
		}
	}
	if errors > 1 {
		return fmt.Sprintf("%s (and %d more errors)", first, errors-1)
	}
	return first
}

// maxStackUsage is the bytes of a report about 32,768 functions with long names.
const maxStackUsage = 16 << 20

// Frames reads the stack frames that -fstack-usage wrote: bytes by function. The names in the file are the source's, which can
// garble it; the error is a *CompileError then.
func Frames(file string) (map[string]int, error) {
	text, err := readOutput(file, maxStackUsage)
	if err != nil {
		return nil, err
	}
	frames, err := parseStackUsage(string(text))
	if err != nil {
		return nil, refuseObject("the compiler's stack report is garbled (%v): the source must not change its own name, as by #line", err)
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
