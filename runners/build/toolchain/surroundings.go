package toolchain

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// What is measured must be what a checkout of the merged change compiles to. So a build finds its
// files where a checkout has them, under a path that is the same for both sides of a comparison. It
// runs twice, in different surroundings, and both builds must have the same machine code. It may
// not look up a file that a checkout has and the build has not, see lookups.go.

// Surroundings are what a build can observe about its environment.
type Surroundings struct {
	Name string // says which of a run's surroundings these are; builds in those of one name are equal
	Root string // where the repository lies

	work string   // where a program that compiles finds its request, and leaves its output; it names no side
	host string   // the host's name
	sets string   // where the include sets of the runner are
	tmp  string   // the folder for temporary files
	env  []string // variables that no compiler needs
	// python is the flags of the interpreter. None of them lets it read anything outside the build.
	python []string
	given  naming
	// forks is how many processes a Python build forks before it starts, so that its process id
	// differs.
	forks int

	guard    string // path of the header that comes before every source, see guard.go
	nameless bool   // the header also refuses the names of files
}

// A naming is how a compiler is given the path of a source.
type naming int

const (
	byFileName naming = iota // from the kernel's folder
	byFullPath
	fromTop // from the repository's top folder
)

// backendsInTree makes Triton use only its own backends, which are part of the pinned digest, and
// not those that files next to the package name. It is not set elsewhere: a source that looks for it
// gets different code there.
const backendsInTree = "TRITON_BACKENDS_IN_TREE=1"

// folderOf returns the kernel's folder, from the repository's top.
func folderOf(t *runners.Tree) string {
	if t.Folder == "" {
		return "kernel"
	}
	return t.Folder
}

// dir returns the kernel's folder, as a build sees it.
func (s Surroundings) dir(t *runners.Tree) string { return path.Join(s.Root, folderOf(t)) }

// places shows a folder of sources as a checkout has it.
func (s Surroundings) places(dir string, t *runners.Tree) []sandbox.Place {
	places := []sandbox.Place{{Host: dir, Inside: s.dir(t)}}
	if within(t, dir) {
		places = nil
	}
	for _, folder := range t.Shared {
		host := filepath.Join(dir, manifest.RepositoryFolder, filepath.FromSlash(folder))
		if isFolder(host) && reachable(t, dir, folder) {
			places = append(places, sandbox.Place{Host: host, Inside: path.Join(s.Root, folder)})
		}
	}
	if sets := filepath.Join(dir, manifest.SetsFolder); isFolder(sets) {
		places = append(places, sandbox.Place{Host: sets, Inside: s.sets})
	}
	return places
}

// enter makes a program run in these surroundings, and records its lookups.
func (s Surroundings) enter(spec *sandbox.Spec, dir string, t *runners.Tree) {
	spec.Dir, spec.Host, spec.Watch = s.dir(t), s.host, true
	if s.given == fromTop {
		spec.Dir = s.Root
	}
	spec.Places = append(spec.Places, s.places(dir, t)...)
	spec.Places = append(spec.Places, sandbox.Place{Inside: s.tmp})
	own := append([]string{"TMPDIR=" + s.tmp, "PWD=" + spec.Dir}, s.env...)
	name := func(variable string) string { name, _, _ := strings.Cut(variable, "="); return name }
	theirs := slices.DeleteFunc(slices.Clone(spec.Env), func(v string) bool {
		return slices.ContainsFunc(own, func(o string) bool { return name(o) == name(v) })
	})
	spec.Env = append(theirs, own...)
}

// within reports whether the kernel's folder is shown as a part of another one, because its own has
// no files of the repository.
func within(t *runners.Tree, dir string) bool {
	entries, err := os.ReadDir(dir)
	own := func(e os.DirEntry) bool {
		return e.Name() == manifest.RepositoryFolder || e.Name() == manifest.SetsFolder
	}
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !own(e) }) {
		return false
	}
	return slices.ContainsFunc(t.Shared, func(folder string) bool {
		rel, ok := strings.CutPrefix(folderOf(t), folder+"/")
		if folder == topFolder {
			rel, ok = folderOf(t), true
		}
		return ok && isFolder(filepath.Join(dir, manifest.RepositoryFolder, filepath.FromSlash(folder), filepath.FromSlash(rel)))
	})
}

// reachable reports whether a shared folder can be shown at its own path: if it is within another
// folder that is shown, or the reverse, the outer one must have a folder in its place.
func reachable(t *runners.Tree, dir, folder string) bool {
	inside := func(inner, outer, host string) bool {
		rel, ok := strings.CutPrefix(inner, outer+"/")
		if outer == topFolder && inner != topFolder {
			rel, ok = inner, true
		}
		return !ok || isFolder(filepath.Join(host, filepath.FromSlash(rel)))
	}
	at := func(shared string) string {
		return filepath.Join(dir, manifest.RepositoryFolder, filepath.FromSlash(shared))
	}
	if folder == folderOf(t) || !inside(folder, folderOf(t), dir) || !inside(folderOf(t), folder, at(folder)) {
		return false
	}
	return !slices.ContainsFunc(t.Shared, func(other string) bool { return !inside(folder, other, at(other)) })
}

// topFolder is the repository's top folder, as manifests name it.
const topFolder = "."

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// flags names include folders by their place in a checkout.
func (s Surroundings) flags(flags []string, dir string, t *runners.Tree) []string {
	shown := s.places(dir, t)
	var all []string
	for _, flag := range flags {
		for _, search := range []string{manifest.SearchFirst, manifest.SearchLast} {
			if name, ok := strings.CutPrefix(flag, search+manifest.SetsFolder+"/"); ok {
				flag = search + path.Join(s.sets, name)
			}
			if name, ok := strings.CutPrefix(flag, search+manifest.RepositoryFolder+"/"); ok {
				if at := path.Join(s.Root, name); slices.ContainsFunc(shown, func(p sandbox.Place) bool { return p.Inside == at }) {
					flag = search + at
				}
			}
		}
		all = append(all, flag)
	}
	return all
}

// folder returns where a build finds one of its folders of the repository.
func (s Surroundings) folder(name, dir string, t *runners.Tree) string {
	at := path.Join(s.Root, name)
	for _, p := range s.places(dir, t) {
		if sandbox.Within(at, p.Inside) {
			return at
		}
	}
	return path.Join(s.dir(t), manifest.RepositoryFolder, name)
}

// source returns the name of a source for the compiler.
func (s Surroundings) source(name, dir string, t *runners.Tree) string {
	at := path.Join(s.dir(t), name)
	shared := false
	if rel, ok := strings.CutPrefix(name, manifest.RepositoryFolder+"/"); ok {
		for _, p := range s.places(dir, t) {
			if elsewhere := path.Join(s.Root, rel); p.Inside != s.dir(t) && sandbox.Within(elsewhere, p.Inside) {
				at, shared = elsewhere, true
			}
		}
	}
	switch {
	case s.given == fromTop:
		return strings.TrimPrefix(at, s.Root+"/")
	case s.given == byFullPath || shared:
		return at
	}
	return name
}

// names makes a log name files as a side's folder does.
func (s Surroundings) names(log string, t *runners.Tree) string {
	if s.given == fromTop {
		log = regexp.MustCompile(`(^|[\s"'(])`+regexp.QuoteMeta(folderOf(t))+"/").ReplaceAllString(log, "$1")
	}
	return strings.NewReplacer(
		s.dir(t)+"/", "",
		s.Root+"/", manifest.RepositoryFolder+"/",
		s.sets+"/", manifest.SetsFolder+"/",
	).Replace(plain(log))
}

// asked returns what a program in these surroundings looked up.
func (s Surroundings) asked(r sandbox.Result, dir string, t *runners.Tree) asked {
	return asked{lookups: r.Lookups, opened: r.Opened, cut: r.LookupsCut, in: s, dir: dir, tree: t}
}

// twice builds Here and elsewhere at the same time. If the build Here fails or is refused, the other
// one is stopped, and twice waits for its end, because it writes to a folder that the caller
// removes.
func twice[T any](ctx context.Context, elsewhere Surroundings, build func(context.Context, Surroundings) (T, error), refused func(T) bool) (here, there T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		there, err = build(ctx, elsewhere)
		done <- err
	}()
	if here, err = build(ctx, Here); err != nil || refused(here) {
		cancel()
		<-done
		return here, there, err
	}
	return here, there, <-done
}

// ErrSurroundings refuses a source whose machine code depends on its surroundings.
func ErrSurroundings(source string, in Surroundings) *output.CompileError {
	return &output.CompileError{Summary: fmt.Sprintf("%s: %s (the second build was %s)", source, differs, in)}
}

const differs = "the machine code depends on where it is compiled: the same source gave different code in a folder with a different name, on a host with a different name, " +
	"or on a different date. The merged kernel could be a different one (remove what depends on such things: __FILE__, assert without -DNDEBUG, the environment)"
