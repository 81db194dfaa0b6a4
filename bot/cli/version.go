package cli

import (
	"runtime/debug"
)

// commit is set by `make build` and for releases. Go itself finds no commit in a linked work tree, or
// without the folder .git.
var commit string

// release is the version of a released build, such as v0.1.0. It is empty for other builds: Go
// knows the version that `go install` was asked for.
var release string

// version returns the version of this build.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "kernelgate (unknown build)"
	}
	return versionOf(info, release, commit)
}

func versionOf(info *debug.BuildInfo, release, commit string) string {
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = " " + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if revision == "" && commit != "" {
		revision = " " + commit
	}
	name := info.Main.Version
	if release != "" {
		name = release
	}
	return "kernelgate " + name + revision + dirty
}
