package manifest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// defaultSources is what a change may edit if the manifest does not say.
var defaultSources = map[Mode][]string{
	ModeCUDA:    {"*.cu", "*.cuh", "*.h"},
	ModeCPU:     {"*.c", "*.cc", "*.cpp", "*.cxx", "*.c++", "*.h"},
	ModeCommand: {"**"},
}

var (
	filePath = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*$`)
	globText = regexp.MustCompile(`^[A-Za-z0-9_.+*?-]+(?:/[A-Za-z0-9_.+*?-]+)*$`)
)

// IsSource reports whether a change may bring this file of the kernel's folder. Manifests, the
// reference and recordings are never sources, whatever the globs say. If the sources are in a different folder, no
// file of this one is a source.
func (m *Manifest) IsSource(relpath string) bool {
	if m.Root != "" || relpath == "" || path.Clean(relpath) != relpath || !isLocal(relpath) {
		return false
	}
	if first, _, _ := strings.Cut(relpath, "/"); strings.EqualFold(first, RepositoryFolder) || strings.EqualFold(first, SetsFolder) {
		return false
	}
	// Where a file system ignores case, another spelling is the same file.
	if IsManifest(strings.ToLower(relpath)) || m.HoldsRecording(relpath) || m.Reference != nil && strings.EqualFold(relpath, m.Reference.Source) {
		return false
	}
	return slices.ContainsFunc(m.Sources, func(pattern string) bool { return ident.Glob(pattern).MatchString(relpath) })
}

func isLocal(relpath string) bool {
	return !path.IsAbs(relpath) && relpath != ".." && !strings.HasPrefix(relpath, "../") && !strings.ContainsFunc(relpath, func(r rune) bool { return r == '\\' || unicode.IsControl(r) })
}

// checkSources checks every path, and that the gated variant can be changed while the reference
// cannot.
func (c *checker) checkSources() {
	m := c.m
	if m.Mode == "" {
		return
	}
	at := c.n.Child("sources")
	if c.n.Has("sources") && c.n.Has("root") {
		c.errorf(at, "is not read with root: every file below that folder is a source (delete it)")
	}
	if m.Root != "" {
		m.Sources = nil
	} else if !c.n.Has("sources") {
		m.Sources = slices.Clone(m.sourcesByDefault())
	} else if at.List() && len(m.Sources) == 0 {
		c.errorf(at, "is empty: no change could touch the kernel (write e.g. [\"*.cu\"])")
	}
	for i, pattern := range m.Sources {
		if c.n.Has("sources") && (!globText.MatchString(pattern) || slices.Contains(strings.Split(pattern, "/"), "..")) {
			c.errorf(itemOf(at, i), "%q is not a glob within the kernel's folder (write e.g. *.cu or include/**)", pattern)
		}
	}
	for _, v := range m.Variants {
		c.checkVariantSource(v)
	}
	if ref := m.Reference; ref != nil && c.n.Child("reference").Has("source") {
		c.checkPath(c.n.Child("reference", "source"), ref.Source)
	}
}

func (c *checker) checkVariantSource(v Variant) {
	m := c.m
	parent, example := c.n.Child("variants", v.Name), v.Name
	if !c.n.Has("variants") {
		parent, example = c.n, "sdpa"
	}
	at := parent.Child("source")
	if v.Source == "" {
		if text, ok := at.Text(); m.Mode != ModeCommand && (!parent.Has("source") || ok && text == "" && !at.Null()) {
			c.errorf(at, "is required (write e.g. source: %s.%s)", example, map[Mode]string{ModeCUDA: "cu", ModeCPU: "c"}[m.Mode])
		}
		return
	}
	c.checkPath(at, v.Source)
	switch {
	case m.Root != "":
	case m.Reference != nil && strings.EqualFold(m.Reference.Source, v.Source):
		c.errorf(at, "%q is the reference, which no change may bring (name another file)", v.Source)
	case slices.Contains(m.Parts(m.DefaultVariant, ""), v.Name) && !m.IsSource(v.Source) && filePath.MatchString(v.Source):
		c.errorf(at, "%q matches none of sources %s: no change could touch what is gated (add it there)", v.Source, strings.Join(m.Sources, ", "))
	}
}

func (c *checker) checkPath(at *strict.Node, file string) {
	if !filePath.MatchString(file) {
		c.errorf(at, "%q is not a file within the kernel's folder (write e.g. sdpa.c)", file)
	}
}
