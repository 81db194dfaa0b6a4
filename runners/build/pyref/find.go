package pyref

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/interpreter"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A Python is an interpreter that references can run in.
type Python struct {
	Program string
	Version string
	NumPy   string // version; "" where there is none
	Torch   string // version; "" where there is none
	path    []string
	read    []string
}

// ErrNoArrays says how to get what references in Python need.
var ErrNoArrays = errors.New("no NumPy was found: install it (pip install numpy, or torch) for python3 or for the Python that KERNELGATE_PYTHON names, or run `make setup`, which fetches it from PyPI")

// ErrNoTorch says how to get PyTorch.
var ErrNoTorch = errors.New("no PyTorch was found: install it (pip install torch) for python3 or for the Python that KERNELGATE_PYTHON names")

// Find asks the Python that KERNELGATE_PYTHON names, or python3, for NumPy and PyTorch. If it has no NumPy, the one is taken that
// fetch-python.sh left for that Python.
func Find(ctx context.Context, getenv func(string) string) (*Python, error) {
	p, err := Interpreter(ctx, getenv)
	if err == nil && p.NumPy == "" && p.Torch == "" {
		return nil, fmt.Errorf("%w (asked was %s, Python %s)", ErrNoArrays, p.Program, p.Version)
	}
	return p, err
}

// Interpreter is the same whether or not it has NumPy or PyTorch.
func Interpreter(ctx context.Context, getenv func(string) string) (*Python, error) {
	program, err := interpreter.Program(getenv)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoArrays, err)
	}
	asked, err := interpreter.Ask(ctx, program)
	if err != nil {
		return nil, err
	}
	p := &Python{Program: asked.Executable, Version: asked.Version, NumPy: asked.NumPy, Torch: asked.Torch}
	for _, dir := range asked.Folders() {
		p.show(dir)
	}
	if p.NumPy == "" {
		p.fetched(getenv, asked.Tag)
	}
	if home := getenv("HOME"); slices.ContainsFunc(p.read, func(dir string) bool { return dir == "/" || home != "" && sandbox.Within(filepath.Clean(home), dir) }) {
		return nil, fmt.Errorf("%s cannot be used: a reference would be shown a whole home folder; set KERNELGATE_PYTHON to a Python in a separate folder", p.Program)
	}
	return p, nil
}

// Folders are what a program of this Python needs to see beside the system's.
func (p *Python) Folders() []string { return p.read }

// show lets references read a folder.
func (p *Python) show(dir string) {
	if !slices.ContainsFunc(append(sandbox.SystemPaths(), p.read...), func(seen string) bool { return sandbox.Within(dir, seen) }) {
		p.read = append(p.read, dir)
	}
}

// fetched adds the NumPy that fetch-python.sh left.
func (p *Python) fetched(getenv func(string) string, tag string) {
	root := getenv("XDG_CACHE_HOME")
	if root == "" && getenv("HOME") != "" {
		root = filepath.Join(getenv("HOME"), ".cache")
	}
	if root == "" {
		return
	}
	folders, _ := filepath.Glob(filepath.Join(root, "kernelgate", "numpy-*-"+tag, "numpy"))
	if len(folders) == 0 {
		return
	}
	home, err := filepath.EvalSymlinks(filepath.Dir(slices.Max(folders)))
	if err != nil {
		return
	}
	p.NumPy = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(home), "numpy-"), "-"+tag)
	p.path = []string{home}
	p.show(home)
}

// Fetched is the folder of a NumPy that is none of the installation's own; "" where there is none.
func (p *Python) Fetched() string { return strings.Join(p.path, "") }

// For refuses a Python that lacks what a reference surely needs. What its file imports shows when it runs.
func (p *Python) For(r *manifest.Reference) error {
	if (r.Torch != "" || r.Device == manifest.OnCUDA) && p.Torch == "" {
		return fmt.Errorf("%w (asked was %s, Python %s)", ErrNoTorch, p.Program, p.Version)
	}
	return nil
}

// Tools is what evidence says of it.
func (p *Python) Tools() map[string]string {
	tools := map[string]string{"reference python": p.Version}
	for name, version := range map[string]string{"numpy": p.NumPy, "torch": p.Torch} {
		if version != "" {
			tools["reference "+name] = version
		}
	}
	return tools
}

func (p *Python) String() string {
	text := p.Version
	for _, part := range []struct{ name, version string }{{"NumPy", p.NumPy}, {"PyTorch", p.Torch}} {
		if part.version != "" {
			text += ", " + part.name + " " + part.version
		}
	}
	return text
}
