package cli

import (
	"runtime/debug"
)

// commit is set by `make build`. Go itself finds no commit in a work tree of another repository,
// nor without git's folder.
var commit string

// version returns the version of this build.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "kernelgate (unknown build)"
	}
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
	return "kernelgate " + info.Main.Version + revision + dirty
}
