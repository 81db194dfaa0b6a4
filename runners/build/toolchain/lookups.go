package toolchain

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A source may read, and look up, only files that the build has, under the same names and with the
// same bytes as in a checkout. The sandbox reports which paths the compiler looked up, so that no
// form of include is overlooked.

// An asked is what a build looked up, and what it may look up.
type asked struct {
	lookups []string
	opened  []string // the part of the lookups that may have listed a folder
	cut     bool
	in      Surroundings
	dir     string // of the sources, on the host
	tree    *runners.Tree
	include []string // folders of the system's own headers
	out     string   // the folder of the output
	// usual returns what the tools look up for an empty source; nil if the source is a program,
	// which may look around.
	usual func() (map[string]bool, error)
}

// compileError refuses a build for its lookups; nil if there is nothing to refuse.
func (a asked) compileError(source, log string) error {
	name, why, err := a.refusal()
	if err != nil || why == "" {
		return err
	}
	d := gates.Diagnostic{File: source, Line: a.lineOf(source, path.Base(name)), Severity: "error", Message: why}
	summary := fmt.Sprintf("%s: %s", source, why)
	if d.Line > 0 {
		summary = fmt.Sprintf("%s:%d: %s", source, d.Line, why)
	}
	return &output.CompileError{Summary: summary, Log: log + summary + "\n", Diagnostics: append(output.ParseDiagnostics(log), d)}
}

// lineOf returns the first line of a source that has a word in it; 0 if none has.
func (a asked) lineOf(source, word string) int {
	content, err := output.ReadFile(filepath.Join(a.dir, filepath.FromSlash(source)), maxSource)
	before, _, found := strings.Cut(string(content), word)
	if err != nil || !found {
		return 0
	}
	return 1 + strings.Count(before, "\n")
}

// refusal returns the first path that a build may not look up, and why.
func (a asked) refusal() (name, why string, err error) {
	if a.cut {
		return "", "the build asks for more files than are followed (keep generated files out of it)", nil
	}
	var outside []string
	for _, asked := range a.lookups {
		rel, inside := strings.CutPrefix(asked, a.in.Root+"/")
		found := ""
		switch {
		case inside:
			found = a.ofRepository(rel)
		case a.usual == nil || a.isOwn(asked):
		case a.isHeader(asked):
			found = a.shadowed(asked)
		case !a.besideSystem(asked):
			outside = append(outside, asked)
		}
		// The longest path says most: a compiler tries a name in several folders, and first as a
		// precompiled header.
		if found != "" && (name == "" || len(asked) > len(name) && path.Ext(asked) != ".gch") {
			name, why = asked, found
		}
	}
	if why != "" || len(outside) == 0 {
		return name, why, nil
	}
	usual, err := a.usual()
	if err != nil {
		return "", "", err
	}
	for _, asked := range outside {
		if !usual[asked] && (name == "" || len(asked) > len(name) && path.Ext(asked) != ".gch") {
			name = asked
		}
	}
	if name != "" {
		why = fmt.Sprintf("it asks for %s, which is a file of the host: where this file is a different one or missing, the merged kernel could be a different one (include only files of the repository and headers of the system)", elf.Quote(name))
	}
	return name, why, nil
}

// besideSystem reports whether a compiler tried a path such as ../x.h next to the system's headers,
// and found it in a folder of the repository. If the repository has no such file, only the host can
// have it.
func (a asked) besideSystem(name string) bool {
	for _, dir := range a.include {
		rel, err := filepath.Rel(dir, name)
		if err != nil || !strings.HasPrefix(rel, "../") {
			continue
		}
		for _, folder := range append([]string{folderOf(a.tree)}, a.tree.Shared...) {
			beside := path.Join(folder, rel)
			if slices.Contains(a.lookups, path.Join(a.in.Root, beside)) && a.has(beside) {
				return true
			}
		}
	}
	return false
}

// has reports whether the build has a file or folder of the repository.
func (a asked) has(rel string) bool {
	if own, ok := strings.CutPrefix(rel, folderOf(a.tree)+"/"); ok && exists(filepath.Join(a.dir, filepath.FromSlash(own))) {
		return true
	}
	return filepath.IsLocal(rel) && exists(filepath.Join(a.dir, manifest.RepositoryFolder, filepath.FromSlash(rel)))
}

// ofRepository judges a path within the repository.
func (a asked) ofRepository(rel string) string {
	folder := folderOf(a.tree)
	for _, own := range []string{manifest.RepositoryFolder, manifest.SetsFolder} {
		if sandbox.Within("/"+rel, "/"+path.Join(folder, own)) {
			return fmt.Sprintf("it asks for %s, which is the judge's own folder and in no checkout (include headers by their names)", elf.Quote(rel))
		}
	}
	for _, d := range a.tree.Differs {
		if sandbox.Within("/"+rel, "/"+d.Path) { // a link may lead to a folder, and a submodule is one
			return fmt.Sprintf("it asks for %s: %s", elf.Quote(rel), d.Why)
		}
	}
	for _, f := range append([]string{folder}, a.tree.Shared...) {
		if f = path.Clean(f); f == topFolder {
			f = ""
		}
		switch {
		case sandbox.Within("/"+rel, "/"+f) && a.usual == nil:
			return a.listed(rel)
		case sandbox.Within("/"+rel, "/"+f) || sandbox.Within("/"+f, "/"+rel):
			return ""
		}
	}
	return fmt.Sprintf("it asks for %s, which is outside the kernel's folder and not part of the build: the merged kernel could be a different one (name its folder under include in the manifest)", elf.Quote(rel))
}

// importable are the suffixes of files that Python imports.
var importable = []string{".py", ".pyc", ".so", ".pth"}

// listed judges a folder that a Python program listed. To import a module, Python lists the folders
// that may have it, and never looks up a missing name: a module that a checkout has but the build
// has not would be imported unnoticed. It counts if a source mentions its name. A program that only
// looks at the folder itself, as packages do that resolve the working directory, lists nothing.
func (a asked) listed(rel string) string {
	if !a.mayList(rel) {
		return ""
	}
	for _, d := range a.tree.Differs {
		below, inside := strings.CutPrefix(d.Path, rel+"/")
		module, _, _ := strings.Cut(below, "/")
		module, _, _ = strings.Cut(module, ".")
		if inside && slices.Contains(importable, path.Ext(d.Path)) && a.mentions(module) {
			return fmt.Sprintf("it looks for modules in %s, where %s is another: %s", elf.Quote(rel), elf.Quote(d.Path), d.Why)
		}
	}
	return ""
}

// throughProc matches paths that lead to a folder under a different name.
var throughProc = regexp.MustCompile(`^/proc/[^/]+/(task/[^/]+/)?(cwd|root|fd/)`)

// mayList reports whether a build may have listed a folder of the repository.
func (a asked) mayList(rel string) bool {
	return slices.Contains(a.opened, path.Join(a.in.Root, rel)) || slices.ContainsFunc(a.opened, throughProc.MatchString)
}

// mentions reports whether a Python source has a word in it.
func (a asked) mentions(word string) bool {
	pattern, err := regexp.Compile(`\b` + regexp.QuoteMeta(word) + `\b`)
	if err != nil {
		return true
	}
	found := false
	err = filepath.WalkDir(a.dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || found || !d.Type().IsRegular() || path.Ext(file) != ".py" {
			return err
		}
		content, err := output.ReadFile(file, maxSource)
		found = err != nil || pattern.Match(content)
		return nil
	})
	return found || err != nil
}

// isOwn reports whether a path belongs to the build alone. Elsewhere these paths have names that no
// source knows.
func (a asked) isOwn(name string) bool {
	if sandbox.Within(a.in.Root, name) {
		return true
	}
	return slices.ContainsFunc([]string{a.in.tmp, a.in.sets, path.Dir(a.in.guard), a.out}, func(own string) bool { return sandbox.Within(name, own) || sandbox.Within(own, name) })
}

// isHeader reports whether a path is in a folder in which the compiler looks for the system's
// headers. Every compiler looks there for each header that a source includes.
func (a asked) isHeader(name string) bool {
	return slices.ContainsFunc(a.include, func(dir string) bool { return sandbox.Within(name, dir) })
}

// shadowed refuses a header of the system that an include folder of the repository also has: the
// build takes the system's, but a build with -I for that folder takes the other.
func (a asked) shadowed(name string) string {
	for _, dir := range a.include {
		rel, ok := strings.CutPrefix(name, dir+"/")
		if !ok {
			continue
		}
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		for _, folder := range a.tree.Shared {
			if _, err := os.Stat(filepath.Join(a.dir, manifest.RepositoryFolder, filepath.FromSlash(folder), filepath.FromSlash(rel))); err == nil {
				return fmt.Sprintf("it includes <%s> of the system, and %s/%[1]s has the same name: which of them is taken depends on the compiler's flags (give the file of the repository another name)", elf.Quote(rel), folder)
			}
		}
	}
	return ""
}
