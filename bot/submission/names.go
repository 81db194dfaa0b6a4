package submission

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// refPrefix is where the commits of submissions are kept in the repository on this disk.
const refPrefix = "refs/kernelgate/"

// checkNames refuses files that a submission cannot replace.
func checkNames(kernel check.Described, files map[string]string) error {
	m := kernel.Manifest
	if len(files) > 0 && m.Root != "" {
		return usage.Errorf("the sources of %s are in %s, outside of its folder: commit them, and name the commit in ref", m.Name, m.Root)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsAny(name, "\\\n\x00"):
			return usage.Errorf("%q is not the name of a file in the kernel's folder (write e.g. %s)", name, exampleFile(kernel))
		case name != manifest.FileName && !m.IsSource(name):
			return usage.Errorf("%s cannot be changed: it is not among the sources of %s (these are %s)", name, m.Name, strings.Join(m.Sources, ", "))
		}
	}
	return nil
}

func exampleFile(kernel check.Described) string {
	for _, name := range slices.Sorted(maps.Keys(kernel.Files)) {
		if name != manifest.FileName {
			return name
		}
	}
	return manifest.FileName
}
