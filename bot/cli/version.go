package cli

import (
	"runtime/debug"
)

// commit is what `make build` knows of the checkout: Go itself sees none in a work tree
// of another's repository, nor without git's own folder.
var commit string

// version is what the build knows of itself.
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
