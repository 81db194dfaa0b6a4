package measure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// IncludeSets are header libraries of the host: folders by the names that manifests include them
// by, such as <cutlass>.
type IncludeSets map[string]string

// Check returns the first problem with the sets.
func (s IncludeSets) Check() error {
	for _, name := range s.Names() {
		folder := s[name]
		if !manifest.IsIncludeSet(name) {
			return fmt.Errorf("%q is no name for a set of headers (write letters, digits, '.', '_', '+' and '-')", name)
		}
		if !filepath.IsAbs(folder) {
			return fmt.Errorf("the set %s: %q is no absolute path (write e.g. /opt/%s/include)", name, folder, name)
		}
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return fmt.Errorf("the set %s: there is no folder %s (install the headers, or correct the path)", name, folder)
		}
	}
	return nil
}

// Names lists the names in order.
func (s IncludeSets) Names() []string { return slices.Sorted(maps.Keys(s)) }

// layIn copies the sets that a job's sides include into their folders, where the compiler sees them
// read-only. It returns the version and content of each, by its name in a manifest. runner names
// the runner in the message if a set is missing.
func (s IncludeSets) layIn(job runners.Job, runner string) (map[string]string, error) {
	sides := []runners.Side{job.Candidate}
	if job.Baseline != nil {
		sides = append(sides, *job.Baseline)
	}
	for _, side := range sides { // whatever the repository has there is not a set
		if err := os.RemoveAll(filepath.Join(side.Dir, manifest.SetsFolder)); err != nil {
			return nil, fmt.Errorf("making room for include sets: %w", err)
		}
	}
	were, laid := map[string]string{}, map[string]bool{}
	for _, side := range sides {
		for _, name := range job.Of(side).IncludeSets() {
			folder, ok := s[name]
			if !ok {
				return nil, s.lacks(job, name, runner)
			}
			to := filepath.Join(side.Dir, manifest.SetsFolder, name)
			if laid[to] { // both sides are built in one folder
				continue
			}
			laid[to] = true
			set, err := lay(folder, to)
			if err != nil {
				return nil, fmt.Errorf("the include set <%s> of %s: %w", name, runner, err)
			}
			if was, known := were["<"+name+">"]; known && was != set.String() {
				return nil, fmt.Errorf("the include set <%s> of %s was %s and then %s: it was changed while it was read (run it again)", name, runner, was, set)
			}
			were["<"+name+">"] = set.String()
		}
	}
	return were, nil
}

// lacks says what to add, and where.
func (s IncludeSets) lacks(job runners.Job, name, runner string) error {
	has := "none"
	if names := s.Names(); len(names) > 0 {
		has = strings.Join(names, ", ")
	}
	if why := missingFound[name]; why != "" {
		return fmt.Errorf("%s includes the set <%s>, which %s does not have: %s", manifest.FileOf(job.Key), name, runner, why)
	}
	return fmt.Errorf("%s includes the set <%s>, which %s does not have (it has %s): install the headers there and add --include %[2]s=FOLDER to its command, or in the bot's configuration runner: {includes: {%[2]s: FOLDER}}",
		manifest.FileOf(job.Key), name, runner, has)
}

// Limits of a set. The largest header libraries have a tenth of that.
const (
	maxSetFiles = 50_000
	maxSetBytes = 1 << 30
)

// An IncludeSet describes the content of a folder of headers.
type IncludeSet struct {
	Version string // from its VERSION file or from git; "" if neither has one
	Hash    string // of names and contents
	Files   int
}

func (s IncludeSet) String() string {
	if s.Version == "" {
		return "sha256 " + s.Hash
	}
	return s.Version + ", sha256 " + s.Hash
}

// ReadIncludeSet reads a folder.
func ReadIncludeSet(folder string) (IncludeSet, error) { return lay(folder, "") }

// lay copies a folder and describes what it copied. If to is "" it only reads. A link may only lead
// to another file of the folder.
func lay(folder, to string) (IncludeSet, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return IncludeSet{}, err
	}
	defer root.Close()
	set, sum, bytes := IncludeSet{Version: versionOf(folder)}, sha256.New(), int64(0)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := root.Stat(name)
		if err != nil {
			return fmt.Errorf("%s: %w (put the file itself there)", name, err)
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a link to a folder (put the folder itself there)", name)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", name)
		}
		if set.Files, bytes = set.Files+1, bytes+info.Size(); set.Files > maxSetFiles || bytes > maxSetBytes {
			return fmt.Errorf("it has more than %d files or %d MiB (name only the folder of the headers)", maxSetFiles, maxSetBytes>>20)
		}
		content, err := copyFile(root, name, to)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %x\n", name, content)
		return nil
	})
	if err == nil && set.Files == 0 {
		err = errors.New("the folder is empty")
	}
	set.Hash = hex.EncodeToString(sum.Sum(nil))
	return set, err
}

// copyFile returns the hash of what it copied. The copy is readable by everybody, because a
// sandbox's programs read it as a different user.
func copyFile(root *os.Root, name, to string) ([]byte, error) {
	from, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	sum := sha256.New()
	if to == "" {
		_, err = io.Copy(sum, from)
		return sum.Sum(nil), err
	}
	target := filepath.Join(to, filepath.FromSlash(name))
	if err := makeFolders(to, filepath.Dir(target)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.MultiWriter(f, sum), from)
	return sum.Sum(nil), errors.Join(err, f.Chmod(0o644), f.Close())
}

// makeFolders makes dir, and makes it and its parents readable, up to the folder that holds all
// sets.
func makeFolders(to, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for ; ; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil || dir == filepath.Dir(to) {
			return err
		}
	}
}

// pythonVersion is the line of a package's version.py.
var pythonVersion = regexp.MustCompile(`(?m)^__version__ *= *['"]([^'"]+)['"]`)

// versionOf returns the version of a folder of headers, from the folder or its parent.
func versionOf(folder string) string {
	for _, dir := range []string{folder, filepath.Dir(folder)} {
		text, err := os.ReadFile(filepath.Join(dir, "VERSION"))
		if line, _, _ := strings.Cut(string(text), "\n"); err == nil && plain(line) != "" {
			return plain(line)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "version.py")); err == nil {
			if found := pythonVersion.FindSubmatch(text); found != nil {
				return plain(string(found[1]))
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if out, err := exec.CommandContext(ctx, "git", "-C", dir, "describe", "--tags", "--always", "--dirty").Output(); err == nil {
			return plain(string(out))
		}
	}
	return ""
}

// plain returns a version in the form for a record, or "" if the text is unsuitable.
func plain(text string) string {
	text = strings.TrimSpace(text)
	const most = 100
	if len(text) > most || strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) }) {
		return ""
	}
	return text
}
