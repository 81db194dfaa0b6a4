package kernels

import (
	"path"
	"slices"
)

// IncludeFolder is where a side's folder has the folders that its sources include from, by
// their paths from the repository's root.
const IncludeFolder = ".include"

const maxInclude = 16

// IncludeFlags is what makes a C preprocessor find them, in a side's folder. They come
// behind the system's own: no header of the repository gets into one of the system's, so
// that the sources alone say what they read.
func (m *Manifest) IncludeFlags() []string {
	flags := make([]string, len(m.Include))
	for i, folder := range m.Include {
		flags[i] = "-idirafter" + path.Join(IncludeFolder, folder)
	}
	return flags
}

func (c *checker) checkInclude() {
	at := c.n.Child("include")
	if len(c.m.Include) > maxInclude {
		c.errorf(at, "has %d folders (write at most %d)", len(c.m.Include), maxInclude)
	}
	for i, folder := range c.m.Include {
		switch {
		case !filePath.MatchString(folder):
			c.errorf(itemOf(at, i), "%q is not a folder of the repository (write its path from the root, e.g. common or third_party/x/include)", folder)
		case slices.Contains(c.m.Include[:i], folder):
			c.errorf(itemOf(at, i), "%q is named twice (delete one)", folder)
		}
	}
}
