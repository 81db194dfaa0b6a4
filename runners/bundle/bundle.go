// Package bundle is one job as a file: everything that a runner needs to gather evidence, for the
// transport from the bot to a host without credentials. [Write] packs a job, [Read] unpacks it and
// [Peek] reads its description. The package moves bytes and checks their form; it neither fetches
// sources nor measures them.
//
// A bundle is a gzipped tar with these names, in ascending order, and no others:
//
//	base/…         the folder of the kernel's manifest at the base, with the reference
//	baseline.yaml  the manifest with the baseline's implementation, if that is not the base's
//	baseline/…     the baseline's folder, if that is not the base's
//	commit-000/…   a state of the kernel in the range of a bisection, with commit-000.yaml as its manifest
//	head.yaml      the manifest with the candidate's implementation, if that is not the base's
//	head/…         the base's folder with the head's sources over it
//	job.json       everything else
//	policy.yaml    the base's policy
//	recorded/…     the recordings that the policy names, if it names any
//
// It has no times, owners or modes except the executable bit: the same job has the same digest.
package bundle

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

// schema names the version of the format.
const schema = "kernelgate/bundle/v1"

// Limits of an unpacked bundle.
const (
	maxBytes = 256 << 20
	maxFiles = 20_000
)

// Names in a bundle.
const (
	jobFile    = "job.json"
	policyFile = "policy.yaml"

	baseFolder     = "base"
	headFolder     = "head"
	baselineFolder = "baseline"
	recordedFolder = "recorded"

	headManifest     = headFolder + ".yaml"
	baselineManifest = baselineFolder + ".yaml"
)

// A description is a runners.Job as job.json stores it.
type description struct {
	Schema     string           `json:"schema"`
	Key        string           `json:"folder"`
	PolicyFile string           `json:"policy_file"`
	Candidate  side             `json:"candidate"`
	Baseline   *side            `json:"baseline,omitempty"`
	Change     policy.Change    `json:"change"`
	Provenance gates.Provenance `json:"provenance"`
	Notes      []string         `json:"notes,omitempty"`
	Noise      bool             `json:"noise,omitempty"`
	Recorded   bool             `json:"recorded,omitempty"` // there are recordings

	Rounds  int          `json:"rounds,omitempty"`
	Shapes  []string     `json:"shapes,omitempty"`
	Seeds   []int64      `json:"seeds,omitempty"`
	Profile bool         `json:"profile,omitempty"`
	Part    runners.Part `json:"part,omitempty"`

	Search *runners.Search `json:"search,omitempty"`
	Sides  []side          `json:"sides,omitempty"` // of a bisection
}

// manifest returns the name of the base's manifest in the bundle.
func (d description) manifest() string {
	return baseFolder + "/" + path.Base(manifest.FileOf(d.Key))
}

// A side lies in one of the bundle's folders.
type side struct {
	Folder  string `json:"folder"`
	Variant string `json:"variant"`
	// Manifest is the file with its own implementation; "" means the base's.
	Manifest string `json:"manifest,omitempty"`
	// Sources is as in runners.Side.
	Sources string `json:"sources,omitempty"`
	// Toolchains are the compilers that are pinned for it.
	Toolchains policy.Toolchains `json:"toolchains,omitzero"`
	// Differs lists the files that are different in a checkout than in the folder.
	Differs []runners.Difference `json:"differs,omitempty"`
}

// contents returns the folders of a bundle with this description, and its manifests in addition to
// the base's.
func (d description) contents() (folders, manifests []string, err error) {
	folders = []string{baseFolder}
	if d.Recorded {
		folders = append(folders, recordedFolder)
	}
	add := func(role runners.Role, own string, s side) error {
		switch s.Folder {
		case baseFolder:
		case own:
			folders = append(folders, own)
		default:
			return fmt.Errorf("%s: the %s's folder %q is neither %s nor %s", jobFile, role, s.Folder, baseFolder, own)
		}
		switch s.Manifest {
		case "":
		case own + ".yaml":
			manifests = append(manifests, s.Manifest)
		default:
			return fmt.Errorf("%s: the %s's manifest %q is not %s.yaml", jobFile, role, s.Manifest, own)
		}
		return nil
	}
	if err = add(runners.Candidate, headFolder, d.Candidate); err == nil && d.Baseline != nil {
		err = add(runners.Baseline, baselineFolder, *d.Baseline)
	}
	for i := 0; i < len(d.Sides) && err == nil; i++ {
		err = add("commit", commitFolder(i), d.Sides[i])
	}
	return folders, manifests, err
}

// maxSides bounds the states of the kernel in a bisection.
const maxSides = 1000

// commitFolder returns the folder of a state of the kernel in a bisection.
func commitFolder(i int) string { return fmt.Sprintf("commit-%03d", i) }

var commitName = regexp.MustCompile(`^commit-[0-9]{3}$`)

// checkName refuses names that could lead out of the folder into which they are unpacked, or that
// no compiler needs.
func checkName(name string) error {
	odd := func(r rune) bool { return r == '\\' || r == unicode.ReplacementChar || unicode.IsControl(r) }
	if !fs.ValidPath(name) || name == "." || strings.ContainsFunc(name, odd) {
		return usage.Errorf("the kernel's folder cannot be sent to a runner: file name %q is not a plain relative path", name)
	}
	return nil
}

// A quota counts the contents of a bundle.
type quota struct {
	files int
	bytes int64
}

func (q *quota) take(name string, size int64) error {
	q.files++
	q.bytes += size
	if q.files > maxFiles || size < 0 || q.bytes > maxBytes {
		return usage.Errorf("the kernel's folder cannot be sent to a runner: %s is more than a bundle may hold (%d files, %d MiB): keep large or generated files out of the kernel's folder", name, maxFiles, maxBytes>>20)
	}
	return nil
}
