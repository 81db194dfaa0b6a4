package protocol

import "strings"

// A job that is compiled for a GPU may have two stages: a host without a GPU compiles it, and one with a GPU measures what was
// compiled. Runners that compile take their jobs by labels of their own, one for each kind of compiler.

// StageBuild asks to compile the job, and no more.
const StageBuild = "build"

// BuildsArtifact is the artifact of an open result that holds what was compiled.
const BuildsArtifact = "builds.tar.gz"

const buildLabel = "build-"

// BuildLabel is the label of runners that compile by that kind of compiler, such as nvcc; "" of none.
func BuildLabel(compiler string) string {
	if compiler == "" {
		return ""
	}
	return buildLabel + compiler
}

// Builds tells whether runners compile under that label, and measure nothing.
func Builds(label string) bool { return strings.HasPrefix(label, buildLabel) }
