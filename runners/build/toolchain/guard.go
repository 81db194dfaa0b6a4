package toolchain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A source that asks for the date can be right today and wrong tomorrow, and one that asks for its
// path right in this place and wrong in another. Builds in a few places at a few dates would not
// find that: the source can name the place or the date at which it is wrong. So the compiler
// refuses the words themselves. A header with these lines comes before every source. No pragma and
// no macro of a source can take them back, and nothing else shows that they are there.
//
// The names of files are refused only elsewhere. Honest sources use them, in assert and in the
// messages of host code, and if they compile elsewhere without this header, by each of the usual
// names, to the same machine code, they pass. What is left is a source that gives different code at
// one path only, which it names.

var (
	datesOfBuild = []string{"__DATE__", "__TIME__", "__TIMESTAMP__"}
	namesOfFiles = []string{"__FILE__", "__BASE_FILE__", "__FILE_NAME__", "__builtin_FILE", "__builtin_FILE_NAME", "__builtin_source_location"}
)

// guardText returns the header's lines. As a system header it warns about nothing.
func (s Surroundings) guardText() string {
	words := slices.Clone(datesOfBuild)
	if s.nameless {
		words = append(words, namesOfFiles...)
	}
	return "#pragma GCC system_header\n#pragma GCC poison " + strings.Join(words, " ") + "\n"
}

// guarded puts the header into the build. The caller removes the folder in which it is on the host.
func (s Surroundings) guarded(spec *sandbox.Spec) (folder string, err error) {
	if folder, err = os.MkdirTemp("", "kernelgate-guard-"); err != nil {
		return "", fmt.Errorf("making room for the header that refuses dates: %w", err)
	}
	file := filepath.Join(folder, "guard.h")
	// The program may run as another user.
	if err := errors.Join(os.Chmod(folder, 0o755), os.WriteFile(file, []byte(s.guardText()), 0o644)); err != nil {
		return "", errors.Join(fmt.Errorf("writing the header that refuses dates: %w", err), os.RemoveAll(folder))
	}
	spec.Places = append(spec.Places, sandbox.Place{Host: file, Inside: s.guard})
	return folder, nil
}

// include is the compiler's flags that read the header first.
func (s Surroundings) include() []string { return []string{"-include", s.guard} }

var poisoned = regexp.MustCompile(`attempt to use (?:a )?poisoned (?:identifier )?"?(\w+)"?`)

// plain explains the compiler's words about the header.
func plain(log string) string {
	return poisoned.ReplaceAllStringFunc(log, func(text string) string {
		word := poisoned.FindStringSubmatch(text)[1]
		if slices.Contains(datesOfBuild, word) {
			return word + " is not allowed: the merged kernel would have the date of a different build (remove it)"
		}
		return text
	})
}
