package doctor

import (
	"fmt"

	"github.com/kernelgate/kernelgate/runners/measure"
)

// includeFinding is a set of headers: a job that names it fails where it cannot be read.
func includeFinding(name string, sets measure.IncludeSets) Finding {
	folder := sets[name]
	f := Finding{Name: "include <" + name + ">", Status: OK}
	if err := (measure.IncludeSets{name: folder}).Check(); err != nil {
		f.Status, f.Detail, f.Remedy = Missing, oneLine(err), "install the headers, or name the folder that they are in: --include "+name+"=FOLDER, runner.includes in the bot's configuration"
		return f
	}
	set, err := measure.ReadIncludeSet(folder)
	if err != nil {
		f.Status, f.Detail, f.Remedy = Missing, fmt.Sprintf("%s: %s", folder, oneLine(err)), "let this user read the folder, and put files in place of links that lead out of it"
		return f
	}
	version := set.Version
	if version == "" {
		version = "no version (neither VERSION nor git tells)"
	}
	f.Detail = fmt.Sprintf("%s, %s, %d files, sha256 %.12s", version, folder, set.Files, set.Hash)
	return f
}
