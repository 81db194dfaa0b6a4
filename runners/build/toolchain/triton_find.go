package toolchain

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/interpreter"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A Triton is an installed Triton, with the Python that it is for.
type Triton struct {
	Python        string // the program
	PythonVersion string
	Version       string // such as 3.6.0
	Digest        string // of the package, where a policy pins it
	Folder        string // the package itself
	path          []string
	sites         []string // folders of the packages of its Python
	read          []string // folders that Python and Triton need

	// Cache keeps what was compiled; nil compiles every time.
	Cache *Cache
	// Handover passes builds to another host, or has those of another host; nil does neither.
	Handover *Handover
}

// ErrNoTriton says how to get it.
var ErrNoTriton = errors.New("no Triton was found: install it (pip install triton) for python3 or for the Python that KERNELGATE_PYTHON names, or run `make setup`, which fetches it from PyPI")

// A python is the interpreter that Tritons are for.
type python struct{ interpreter.Python }

// FindTriton asks the Python that KERNELGATE_PYTHON names, or python3, for its Triton, and looks then for one that fetch-python.sh
// has left for that Python.
func FindTriton(ctx context.Context, getenv func(string) string) (*Triton, error) {
	p, err := findPython(ctx, getenv)
	if err != nil {
		return nil, err
	}
	all, err := p.tritons(getenv)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// tritons lists the Tritons of one Python: its own first, then the newest.
func (p python) tritons(getenv func(string) string) ([]*Triton, error) {
	var found []*Triton
	if p.Triton != "" {
		t, err := p.with(p.Triton)
		if err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	var fetched []*Triton
	if root, err := cacheRoot(getenv); err == nil {
		folders, _ := filepath.Glob(filepath.Join(root, "triton-*-"+p.Tag, "triton"))
		for _, folder := range folders {
			if t, err := p.with(folder); err == nil {
				t.path = []string{filepath.Dir(folder)}
				fetched = append(fetched, t)
			}
		}
	}
	slices.SortFunc(fetched, func(a, b *Triton) int { return slices.Compare(numbers(b.Version), numbers(a.Version)) })
	if found = append(found, fetched...); len(found) == 0 {
		return nil, fmt.Errorf("%w (asked was %s, Python %s)", ErrNoTriton, p.Executable, p.Version)
	}
	if err := found[0].hides(getenv); err != nil {
		return nil, err
	}
	return found, nil
}

// hides refuses a Triton that would show too much to a build.
func (t *Triton) hides(getenv func(string) string) error {
	if dir := showsTooMuch(getenv, t.read); dir != "" {
		return fmt.Errorf("%s cannot be used: a build would be shown all of %s; set KERNELGATE_PYTHON to a Python in a separate folder", t.Python, dir)
	}
	return nil
}

// checked returns a Triton in a folder that may be used.
func (p python) checked(folder string, getenv func(string) string) (*Triton, error) {
	t, err := p.with(folder)
	if err != nil {
		return nil, err
	}
	if err := t.hides(getenv); err != nil {
		return nil, err
	}
	return t, nil
}

func findPython(ctx context.Context, getenv func(string) string) (python, error) {
	program, err := interpreter.Program(getenv)
	if err != nil {
		return python{}, fmt.Errorf("%w (%w)", ErrNoTriton, err)
	}
	return askedPython(ctx, program)
}

func askedPython(ctx context.Context, program string) (python, error) {
	p, err := interpreter.Ask(ctx, program)
	return python{p}, err
}

// with returns a Triton in a folder.
func (p python) with(folder string) (*Triton, error) {
	text, err := os.ReadFile(filepath.Join(folder, "__init__.py"))
	if err != nil {
		return nil, fmt.Errorf("reading the version of Triton: %w", err)
	}
	_, after, _ := strings.Cut(string(text), "__version__ = '")
	version, _, found := strings.Cut(after, "'")
	if !found || len(version) > 64 {
		return nil, fmt.Errorf("%s does not tell its version: install Triton 3", folder)
	}
	t := &Triton{Python: p.Executable, PythonVersion: p.Version, Version: version, Folder: folder, sites: p.Sites}
	for _, dir := range append(p.Folders(), filepath.Dir(folder)) {
		if !slices.ContainsFunc(append(sandbox.SystemPaths(), t.read...), func(seen string) bool { return sandbox.Within(dir, seen) }) {
			t.read = append(t.read, dir)
		}
	}
	return t, nil
}

// packages returns the packages of its Python, by name and version: a kernel may import them.
func (t *Triton) packages() []string {
	all := []string{}
	for _, site := range t.sites {
		found, _ := filepath.Glob(filepath.Join(site, "*.dist-info"))
		for _, name := range found {
			all = append(all, filepath.Base(name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// String is the name in the evidence.
func (t *Triton) String() string { return "triton " + t.Version }
