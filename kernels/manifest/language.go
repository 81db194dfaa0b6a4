package manifest

import (
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A kernel in cpu mode is compiled in the language that its name gives it in every other build. A
// name that compilers and build systems read differently is refused: k.C is C++ to gcc, and C where
// the file system ignores case; k.h is a header, and k.s assembler.

// The languages of kernels in cpu mode, as compilers name them after -x.
const (
	LanguageC   = "c"
	LanguageCXX = "c++"
)

var (
	endingsC   = []string{".c"}
	endingsCXX = []string{".cc", ".cpp", ".cxx", ".c++"}
)

// Language returns the language of a source in cpu mode; false if its name has none.
func Language(source string) (language string, ok bool) {
	switch ending := path.Ext(source); {
	case slices.Contains(endingsC, ending):
		return LanguageC, true
	case slices.Contains(endingsCXX, ending):
		return LanguageCXX, true
	}
	return "", false
}

// checkLanguages refuses sources of cpu mode whose names do not say in which language they are.
func (c *checker) checkLanguages() {
	m, n := c.m, c.n
	if m.Mode != ModeCPU {
		return
	}
	check := func(at *strict.Node, source string) {
		if _, ok := Language(source); !ok && source != "" && filePath.MatchString(source) {
			c.errorf(at, "%q is in no language that cpu mode compiles (end the name of a C file in %s, and that of a C++ file in %s)",
				source, strings.Join(endingsC, " or "), strings.Join(endingsCXX, " or "))
		}
	}
	for _, v := range m.Variants {
		if n.Has("variants") {
			check(n.Child("variants", v.Name, "source"), v.Source)
		} else {
			check(n.Child("source"), v.Source)
		}
	}
	if r := m.Reference; r != nil && !r.Python() && !r.deviceCode() {
		check(n.Child("reference", "source"), r.Source)
	}
}
