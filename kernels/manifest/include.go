package manifest

import (
	"path"
	"regexp"
	"slices"
)

// Where a side's folder has what lies elsewhere.
const (
	// RepositoryFolder holds the folders of the repository that have the sources or their headers,
	// by their paths from the root, so that relative paths between them still work.
	RepositoryFolder = ".repository"
	// SetsFolder holds the include sets of the runner, by their names.
	SetsFolder = ".sets"
)

// Sets that a runner finds itself, in the Python that it uses for references.
const (
	TorchSet  = "torch"  // PyTorch's headers
	PythonSet = "python" // Python.h
)

// torchCXX is the folder of PyTorch's headers for C++, torch/extension.h among them, within the set.
const torchCXX = "torch/csrc/api/include"

const maxInclude = 16

// topFolder is the repository's top folder.
const topFolder = "."

var setName = regexp.MustCompile(`^<([A-Za-z0-9_][A-Za-z0-9_.+-]*)>$`)

// IncludeFolders returns the folders of the repository whose headers the sources may include.
func (m *Manifest) IncludeFolders() []string {
	return slices.DeleteFunc(m.includes(), func(item string) bool { return setName.MatchString(item) })
}

// includes returns everything that the sources may include from, in the order of the search.
func (m *Manifest) includes() []string { return slices.Concat(m.IncludeFirst, m.Include) }

// FirstFolders returns the folders of the repository that are searched before the system's.
func (m *Manifest) FirstFolders() []string {
	return slices.DeleteFunc(slices.Clone(m.IncludeFirst), func(item string) bool { return setName.MatchString(item) })
}

// FirstPlaces returns where a side's folder has what is searched before the system's headers.
func (m *Manifest) FirstPlaces() []string {
	places := make([]string, len(m.IncludeFirst))
	for i, item := range m.IncludeFirst {
		places[i] = includePlace(item)
	}
	return places
}

func includePlace(item string) string {
	if set := setName.FindStringSubmatch(item); set != nil {
		return path.Join(SetsFolder, set[1])
	}
	return path.Join(RepositoryFolder, item)
}

// IncludeSets returns the names of the header sets that the runner must have.
func (m *Manifest) IncludeSets() []string {
	var names []string
	for _, item := range m.includes() {
		if set := setName.FindStringSubmatch(item); set != nil {
			names = append(names, set[1])
		}
	}
	return names
}

// IsIncludeSet reports whether a set of headers may have this name.
func IsIncludeSet(name string) bool { return setName.MatchString("<" + name + ">") }

// Elsewhere returns the folders of the repository that a side needs in addition to the kernel's
// own.
func (m *Manifest) Elsewhere() []string {
	folders := m.IncludeFolders()
	if m.Root != "" && !slices.Contains(folders, m.Root) {
		folders = append(folders, m.Root)
	}
	return folders
}

// SourceFile returns a variant's source in a side's folder.
func (m *Manifest) SourceFile(v Variant) string {
	if m.Root == "" || v.Source == "" {
		return v.Source
	}
	return path.Join(RepositoryFolder, m.Root, v.Source)
}

// The two ways in which a C preprocessor searches a folder: before the system's folders, or after them.
const (
	SearchFirst = "-I"
	SearchLast  = "-idirafter"
)

// IncludeFlags returns the flags by which a C preprocessor finds the headers, in a side's folder.
// Folders of include are searched after the system's, so no header of the repository replaces one
// of the system's. Folders of include_first give that up.
func (m *Manifest) IncludeFlags() []string {
	var flags []string
	for _, at := range m.FirstPlaces() {
		flags = append(flags, SearchFirst+at)
	}
	for _, item := range m.Include {
		flags = append(flags, SearchLast+includePlace(item))
		if item == "<"+TorchSet+">" {
			flags = append(flags, SearchLast+path.Join(includePlace(item), torchCXX))
		}
	}
	return flags
}

func (c *checker) checkInclude() {
	all := c.m.includes()
	if len(all) > maxInclude {
		c.errorf(c.n.Child("include"), "has %d folders with those of include_first (write at most %d)", len(all), maxInclude)
	}
	for i, item := range all {
		at := itemOf(c.n.Child("include_first"), i)
		if i >= len(c.m.IncludeFirst) {
			at = itemOf(c.n.Child("include"), i-len(c.m.IncludeFirst))
		}
		switch {
		case c.m.Compiler == Triton && setName.MatchString(item):
			c.errorf(itemOf(at, i), "%q is a set of headers, which Python does not import (name a folder of the repository)", item)
		case !filePath.MatchString(item) && !setName.MatchString(item):
			c.errorf(at, "%q is not a folder of the repository (write its path from the root, e.g. common or third_party/x/include, or <cutlass> for a set that the runner has)", item)
		case slices.Contains(all[:i], item):
			c.errorf(at, "%q is named twice (delete one)", item)
		}
	}
	if c.m.Root == topFolder {
		return
	}
	if c.n.Has("root") && !filePath.MatchString(c.m.Root) {
		c.errorf(c.n.Child("root"), "%q is not a folder of the repository (write its path from the root, e.g. csrc/kernels)", c.m.Root)
	}
}
