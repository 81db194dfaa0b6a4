package manifest

import (
	"path"
	"regexp"
	"slices"
)

// Where a side's folder has what lies elsewhere.
const (
	// RepositoryFolder holds the folders of the repository that the sources are in or
	// include from, by their paths from its root: they lie to each other as they do there.
	RepositoryFolder = ".repository"
	// SetsFolder holds the include sets of the runner, by their names.
	SetsFolder = ".sets"
)

const maxInclude = 16

// topFolder is the repository's own. Only Python packages are found from there.
const topFolder = "."

var setName = regexp.MustCompile(`^<([A-Za-z0-9_][A-Za-z0-9_.+-]*)>$`)

// IncludeFolders is the folders of the repository whose headers the sources may include.
func (m *Manifest) IncludeFolders() []string {
	return slices.DeleteFunc(slices.Clone(m.Include), func(item string) bool { return setName.MatchString(item) })
}

// IncludeSets is the sets of headers that the runner must have, by their names.
func (m *Manifest) IncludeSets() []string {
	var names []string
	for _, item := range m.Include {
		if set := setName.FindStringSubmatch(item); set != nil {
			names = append(names, set[1])
		}
	}
	return names
}

// IsIncludeSet tells whether a runner may call a set of headers so.
func IsIncludeSet(name string) bool { return setName.MatchString("<" + name + ">") }

// Elsewhere is the folders of the repository beside the kernel's own that a side needs.
func (m *Manifest) Elsewhere() []string {
	folders := m.IncludeFolders()
	if m.Root != "" && !slices.Contains(folders, m.Root) {
		folders = append(folders, m.Root)
	}
	return folders
}

// SourceFile is a variant's source in a side's folder.
func (m *Manifest) SourceFile(v Variant) string {
	if m.Root == "" || v.Source == "" {
		return v.Source
	}
	return path.Join(RepositoryFolder, m.Root, v.Source)
}

// IncludeFlags is what makes a C preprocessor find them, in a side's folder. They come
// behind the system's own: no header of the repository gets into one of the system's, so
// that the sources alone say what they read.
func (m *Manifest) IncludeFlags() []string {
	flags := make([]string, len(m.Include))
	for i, item := range m.Include {
		at := path.Join(RepositoryFolder, item)
		if set := setName.FindStringSubmatch(item); set != nil {
			at = path.Join(SetsFolder, set[1])
		}
		flags[i] = "-idirafter" + at
	}
	return flags
}

func (c *checker) checkInclude() {
	at := c.n.Child("include")
	if len(c.m.Include) > maxInclude {
		c.errorf(at, "has %d folders (write at most %d)", len(c.m.Include), maxInclude)
	}
	for i, item := range c.m.Include {
		switch {
		case c.m.Compiler == Triton && setName.MatchString(item):
			c.errorf(itemOf(at, i), "%q is a set of headers, which Python does not import (name a folder of the repository)", item)
		case !filePath.MatchString(item) && !setName.MatchString(item):
			c.errorf(itemOf(at, i), "%q is not a folder of the repository (write its path from the root, e.g. common or third_party/x/include, or <cutlass> for a set that the runner has)", item)
		case slices.Contains(c.m.Include[:i], item):
			c.errorf(itemOf(at, i), "%q is named twice (delete one)", item)
		}
	}
	if c.m.Root == topFolder && c.m.Compiler == Triton {
		return
	}
	if c.n.Has("root") && !filePath.MatchString(c.m.Root) {
		c.errorf(c.n.Child("root"), "%q is not a folder of the repository (write its path from the root, e.g. csrc/kernels)", c.m.Root)
	}
}
