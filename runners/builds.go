package runners

import "strings"

// A job that is compiled for a GPU may have two stages: a host without a GPU compiles it, and one with a GPU measures what was
// compiled. Those that compile take their jobs by labels of their own, one for each kind of compiler.

const buildLabel = "build-"

// BuildLabel is the label of runners that compile by that kind of compiler, such as nvcc; "" of none.
func BuildLabel(compiler string) string {
	if compiler == "" {
		return ""
	}
	return buildLabel + compiler
}

// IsBuildLabel tells whether runners compile under that label, and measure nothing.
func IsBuildLabel(label string) bool { return strings.HasPrefix(label, buildLabel) }

// BuildsFile is the artifact of a job that holds what was compiled of it.
const BuildsFile = "builds.tar.gz"
