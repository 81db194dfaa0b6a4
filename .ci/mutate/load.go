package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
)

// A module is the sources of the chosen packages, with their types.
type module struct {
	root     string
	packages []*source
}

// A source is one package.
type source struct {
	target
	dir   string
	fset  *token.FileSet
	names []string // of its files, absolute, in the order of files
	files []*ast.File
	texts [][]byte
	info  *types.Info
	types *types.Package
	from  types.Importer
}

// listed is what we need of `go list -json`.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Path, Dir string }
}

// load reads the packages of the module in a folder. Types of their imports come from the compiler's export data.
func load(ctx context.Context, dir string, chosen []target) (*module, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module"}
	for _, t := range chosen {
		args = append(args, "./"+t.pkg)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := map[string]listed{}
	m := &module{}
	prefix := ""
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all[l.ImportPath] = l
		if l.Module != nil && prefix == "" && l.Dir != "" && slices.ContainsFunc(chosen, func(t target) bool { return l.ImportPath == path.Join(l.Module.Path, t.pkg) }) {
			m.root, prefix = l.Module.Dir, l.Module.Path
		}
	}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})
	for _, t := range chosen {
		l, ok := all[path.Join(prefix, t.pkg)]
		if !ok {
			return nil, fmt.Errorf("go list does not know ./%s", t.pkg)
		}
		s := &source{target: t, dir: l.Dir, fset: fset, from: from}
		for _, name := range l.GoFiles {
			if err := s.add(filepath.Join(l.Dir, name), nil); err != nil {
				return nil, err
			}
		}
		if err := s.check(); err != nil {
			return nil, err
		}
		m.packages = append(m.packages, s)
	}
	return m, nil
}

// add parses one file; text is read where it is nil.
func (s *source) add(name string, text []byte) (err error) {
	if text == nil {
		if text, err = os.ReadFile(name); err != nil {
			return err
		}
	}
	file, err := parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.names, s.texts, s.files = append(s.names, name), append(s.texts, text), append(s.files, file)
	return nil
}

func (s *source) check() (err error) {
	s.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: s.from}
	s.types, err = config.Check(s.pkg, s.fset, s.files, s.info)
	return err
}

// compiles tells whether the package still type-checks with one mutant in it.
func (s *source) compiles(m *mutant) bool {
	name := s.names[m.file]
	text := apply(s.texts[m.file], m.edits)
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	// The positions of the unchanged files are of another file set, which only spoils messages that nobody reads.
	files := slices.Clone(s.files)
	files[m.file] = file
	helper, err := parser.ParseFile(token.NewFileSet(), "switch.go", switchSource(s.types.Name()), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	config := types.Config{Importer: s.from}
	_, err = config.Check(s.pkg, s.fset, append(files, helper), nil)
	return err == nil
}

// sample draws n mutants that compile, with a share for each package according to its size but at least 10 of each; n = 0 takes all.
func (m *module) sample(seed uint64, n int) (sampled []*mutant, total int) {
	possible := make([][]*mutant, len(m.packages))
	for i, s := range m.packages {
		possible[i] = s.mutants(total + 1)
		total += len(possible[i])
	}
	for i, s := range m.packages {
		// Each package has its own stream, so that a sample of one package does not depend on the others.
		name := fnv.New64a()
		name.Write([]byte(s.pkg))
		rng := rand.New(rand.NewPCG(seed, name.Sum64()))
		rng.Shuffle(len(possible[i]), func(a, b int) { possible[i][a], possible[i][b] = possible[i][b], possible[i][a] })
		share := len(possible[i])
		if n > 0 {
			share = max(10, (n*len(possible[i])+total/2)/total)
		}
		for _, mutant := range possible[i] {
			if share == 0 {
				break
			}
			if s.compiles(mutant) {
				sampled = append(sampled, mutant)
				share--
			}
		}
	}
	return sampled, total
}
