package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A Disassembler shows machine code to people. The code comes from an untrusted source, so it runs
// in the sandbox like a compiler. Its output decides nothing.
type Disassembler struct {
	Path    string
	Version string // such as nvdisasm 13.4.92
	Cache   *Cache // caches its output; nil runs it every time

	args  []string
	parse func(string) map[string]listing
}

// A listing is the instructions of one function.
type listing []instruction

// An instruction is one line of a disassembly, without what depends on its address.
type instruction struct {
	Text   string
	Class  class
	Vector bool   // arithmetic on vectors, on a CPU
	File   string // base name of the source; "" if unknown
	Line   int
	At     int // where it is, in bytes from the beginning of the function or of the image
	Back   int // 1 plus the index of the instruction to which it branches backward; 0 for all others
}

// A class says what an instruction does.
type class int

// The classes are those of gates.Instructions.
const (
	classOther class = iota
	classTensor
	classMemory
	classBarrier
	classSpecial
)

// errNoDisassembler says how to get one.
var errNoDisassembler = errors.New("no nvdisasm was found: install the one of the CUDA toolkit next to nvcc, or run `make setup`, which fetches it from PyPI")

var disassemblerVersion = regexp.MustCompile(`(?m)V(\d+\.\d+\.\d+)\s*$`)

// FindNVDisasm looks next to nvcc, in PATH, and next to a Triton that fetch-python.sh has left,
// which has one.
func FindNVDisasm(ctx context.Context, getenv func(string) string, cuda *CUDA) (*Disassembler, error) {
	names := append([]string{filepath.Join(cuda.Home, "bin", "nvdisasm")}, InPath(getenv, "nvdisasm")...)
	if root, err := cacheRoot(getenv); err == nil {
		brought, _ := filepath.Glob(filepath.Join(root, "triton-*", "triton", "backends", "nvidia", "bin", "nvdisasm"))
		slices.Reverse(brought)
		names = append(names, brought...)
	}
	for _, name := range names {
		path, ok := program(name)
		if !ok {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if m := disassemblerVersion.FindSubmatch(out); err == nil && m != nil {
			return &Disassembler{Path: path, Version: "nvdisasm " + string(m[1]), Cache: cuda.Cache, args: []string{"-g", "-c"}, parse: parseSASS}, nil
		}
	}
	return nil, errNoDisassembler
}

// FindObjdump looks for the system's objdump, for the output of C compilers.
func FindObjdump(ctx context.Context) (*Disassembler, error) {
	path, err := exec.LookPath("objdump")
	if err != nil {
		return nil, fmt.Errorf("no objdump was found: install binutils: %w", err)
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", path, err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return &Disassembler{Path: path, Version: strings.TrimSpace(first), args: []string{"-d", "-l", "--no-show-raw-insn"}, parse: parseObjdump}, nil
}

// disassemble returns the functions of an image by their symbols. The output of a C compiler is one
// function without a name.
func (d *Disassembler) disassemble(ctx context.Context, path string) (map[string]listing, error) {
	key := ""
	if d.Cache != nil {
		sum, err := folderhash.File(path)
		if err != nil {
			return nil, fmt.Errorf("reading machine code: %w", err)
		}
		key = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "disassembly %d %s %q %x", cacheVersion, d.Version, d.args, sum)))
	}
	text, err := d.Cache.text(key, "a disassembly", func() (string, error) { return d.run(ctx, path) })
	if err != nil {
		return nil, err
	}
	return d.parse(text), nil
}

func (d *Disassembler) run(ctx context.Context, path string) (string, error) {
	var out, says bytes.Buffer
	r, err := sandbox.Run(ctx, sandbox.Spec{
		Args: append(append([]string{d.Path}, d.args...), path), Env: compilerEnv, Stdout: &out, Stderr: &says,
		Read:   append(sandbox.SystemPaths(), d.Path, path),
		Limits: sandbox.Disassembler.Limits(),
	})
	if err != nil {
		return "", fmt.Errorf("running %s: %w", filepath.Base(d.Path), err)
	}
	if !r.OK() {
		return "", fmt.Errorf("%s cannot show the machine code%s: %s", d.Version, also(r.Refused), clipped(output.LastLine(says.String())))
	}
	return out.String(), nil
}

// clipped shortens an untrusted line for a quotation.
func clipped(s string) string {
	if s = strings.ToValidUTF8(s, "?"); len(s) > maxInstruction {
		return strings.ToValidUTF8(s[:maxInstruction], "") + "…"
	}
	return s
}

// maxInstruction is the longest useful line in bytes.
const maxInstruction = 160
