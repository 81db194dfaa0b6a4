package checkout

import (
	"fmt"
	"path"
	"strings"
)

// Limits bound what is read from commits that nobody has reviewed. A few hundred bytes of git
// objects can represent a million files, or one file under many names. Anything beyond the limits
// is Refused before any of it is written.
type Limits struct {
	Entries int   // files and folders visited in one pass over a commit
	Trees   int64 // bytes of folders read in one pass, and of the paths that lead there
	Depth   int   // of nested folders
	Changed int   // files that a change may touch
	Names   int64 // bytes of their names
	Kernels int   // manifests
	Text    int64 // bytes of a file that is read as a whole: a policy, a manifest, a reference
	Files   int   // written by one export
	Bytes   int64 // written by one export
	Written int64 // bytes written by all exports of one Repo together
}

// usual returns limits that are far beyond any repository of kernels, and that bound the work to a
// few seconds.
func usual() *Limits {
	return &Limits{
		Entries: 1_000_000, Trees: 128 << 20, Depth: 100, Changed: 50_000, Names: 8 << 20, Kernels: 2_000,
		Text: 16 << 20, Files: 20_000, Bytes: 256 << 20, Written: 1 << 30,
	}
}

// Refused means that a commit has something that is not read, and why. A retry gives the same
// result.
type Refused struct {
	File string // from the repository's top; "" means all of it
	Why  string // with what to do about it
}

func (r Refused) Error() string {
	if r.File == "" {
		return r.Why
	}
	return fmt.Sprintf("%s: %s", shown(r.File), r.Why)
}

func refuse(file, format string, args ...any) error {
	return Refused{File: shown(file), Why: fmt.Sprintf(format, args...)}
}

// shown returns a name for a message. A stranger may have chosen the name.
func shown(name string) string {
	const most = 200
	if len(name) > most {
		name = name[:most] + "…"
	}
	return strings.ToValidUTF8(name, "�")
}

// The longest name and path that can be written: file systems allow no more.
const (
	maxName = 255
	maxPath = 1024
)

// checkPath refuses a name that cannot be written.
func checkPath(name string) error {
	if len(name) > maxPath {
		return refuse(name, "the path is %d bytes long (at most %d are written; shorten it)", len(name), maxPath)
	}
	for part := name; part != "." && part != "/"; part = path.Dir(part) {
		if n := len(path.Base(part)); n > maxName {
			return refuse(name, "a name in it is %d bytes long (at most %d are written; shorten it)", n, maxName)
		}
	}
	return nil
}
