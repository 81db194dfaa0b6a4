package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// Read unpacks a bundle below dir, an empty folder, and returns the job with its folders there. It
// refuses anything that Write would not have written. Files that it had unpacked until then stay;
// the caller removes them with dir.
//
// The files are readable by everybody, because a sandbox's programs read them as a different user.
func Read(r io.Reader, dir string) (runners.Job, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return runners.Job{}, fmt.Errorf("unpacking a bundle: %w", err)
	}
	defer root.Close()
	u := unpacker{root: root, texts: map[string][]byte{}, folders: map[string]bool{}}
	if err := u.unpack(r, u.entry); err != nil {
		return runners.Job{}, fmt.Errorf("unpacking a bundle: %w", err)
	}
	j, err := u.job(dir)
	if err != nil {
		return runners.Job{}, fmt.Errorf("reading a bundle: %w", err)
	}
	return j, nil
}

// Peek reads a bundle's description without unpacking its sources: the job has no folders.
func Peek(r io.Reader) (runners.Job, error) {
	u := unpacker{texts: map[string][]byte{}, folders: map[string]bool{}}
	var j runners.Job
	err := u.unpack(r, u.entry)
	if err == nil {
		j, err = u.job("")
	}
	if err != nil {
		return runners.Job{}, fmt.Errorf("looking into a bundle: %w", err)
	}
	return j, nil
}

type unpacker struct {
	root    *os.Root // nil unpacks nothing
	quota   quota
	last    string
	texts   map[string][]byte // files that are read, not unpacked
	folders map[string]bool   // top folders that have a file
	made    string            // the folder that was made last: files come sorted
}

// headers is more than the tar's blocks and long names need. A longer stream is an attack with
// headers without files.
const headers = maxFiles * 4096

// unpack passes every file that a bundle may contain to take.
func (u *unpacker) unpack(r io.Reader, take func(*tar.Header, io.Reader) error) error {
	zip, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return err
	}
	archive := tar.NewReader(io.LimitReader(zip, maxBytes+headers))
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := u.check(h); err != nil {
			return err
		}
		if err := take(h, archive); err != nil {
			return err
		}
	}
}

func (u *unpacker) check(h *tar.Header) error {
	if err := checkName(h.Name); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("%s is not a regular file", h.Name)
	}
	for key := range h.PAXRecords {
		if key != "path" { // written for long names; others could change what the file is
			return fmt.Errorf("%s has the attribute %q, which no bundle needs", h.Name, key)
		}
	}
	if h.Name <= u.last {
		return fmt.Errorf("%s comes after %s: a bundle is sorted and holds each name once", h.Name, u.last)
	}
	u.last = h.Name
	return u.quota.take(h.Name, h.Size)
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", h.Name, err)
		}
	}()
	top, _, nested := strings.Cut(h.Name, "/")
	if !nested {
		if !slices.Contains([]string{jobFile, policyFile, headManifest, baselineManifest}, top) && !isCommitManifest(top) {
			return errors.New("no bundle has such a file")
		}
		u.texts[top], err = io.ReadAll(content)
		return err
	}
	if !slices.Contains([]string{baseFolder, headFolder, baselineFolder, recordedFolder}, top) && !commitName.MatchString(top) {
		return errors.New("no bundle has such a folder")
	}
	u.folders[top] = true
	// The description in job.json says which of them applies.
	if path.Dir(h.Name) == baseFolder && manifest.IsManifest(h.Name) {
		if u.texts[h.Name], err = io.ReadAll(content); err != nil {
			return err
		}
		content = bytes.NewReader(u.texts[h.Name])
	}
	if u.root == nil {
		return nil
	}
	if err := u.folder(path.Dir(h.Name)); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if top == recordedFolder {
		mode = 0o600 // no program of a sandbox reads recordings
	} else if h.Mode&0o100 != 0 {
		mode = 0o755
	}
	return u.file(h.Name, mode, content)
}

func (u *unpacker) file(name string, mode os.FileMode, content io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(mode), f.Close()) // regardless of the umask
}

// folder makes name and its parents, readable by everybody regardless of the umask.
func (u *unpacker) folder(name string) error {
	if name == u.made {
		return nil
	}
	if err := u.root.MkdirAll(name, 0o755); err != nil {
		return err
	}
	u.made = name
	for ; name != "."; name = path.Dir(name) {
		if err := u.root.Chmod(name, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// job builds the job from the unpacked files.
func (u *unpacker) job(dir string) (runners.Job, error) {
	d, err := u.description()
	if err != nil {
		return runners.Job{}, err
	}
	if err := checkName(d.Key); err != nil {
		return runners.Job{}, err
	}
	manifestYAML, ok := u.texts[d.manifest()]
	if !ok {
		return runners.Job{}, fmt.Errorf("%s is missing", d.manifest())
	}
	at := func(s side) runners.Side {
		if dir == "" {
			return runners.Side{Variant: s.Variant, Sources: s.Sources, Toolchains: s.Toolchains, Differs: s.Differs}
		}
		return runners.Side{Dir: filepath.Join(dir, s.Folder), Variant: s.Variant, Sources: s.Sources, Toolchains: s.Toolchains, Differs: s.Differs}
	}
	j := runners.Job{
		Key: d.Key, ManifestText: string(manifestYAML), PolicyFile: d.PolicyFile, PolicyText: string(u.texts[policyFile]),
		Change: d.Change, Trusted: at(side{Folder: baseFolder}).Dir, Candidate: at(d.Candidate),
		Provenance: d.Provenance, Notes: d.Notes, Noise: d.Noise,
		Shapes: d.Shapes, Seeds: d.Seeds, Rounds: d.Rounds, Profile: d.Profile,
	}
	if d.Recorded && dir != "" {
		j.Recorded = filepath.Join(dir, recordedFolder)
	}
	file := manifest.FileOf(d.Key)
	if j.Manifest, err = manifest.Parse(file, manifestYAML); err != nil {
		return runners.Job{}, err
	}
	own := func(from side, to *runners.Side) (err error) {
		if from.Manifest != "" {
			to.ManifestText = string(u.texts[from.Manifest])
			to.Manifest, err = manifest.Join(file, manifestYAML, u.texts[from.Manifest])
		}
		return err
	}
	if err := own(d.Candidate, &j.Candidate); err != nil {
		return runners.Job{}, fmt.Errorf("%s: %w", d.Candidate.Manifest, err)
	}
	if d.Baseline != nil {
		baseline := at(*d.Baseline)
		if err := own(*d.Baseline, &baseline); err != nil {
			return runners.Job{}, fmt.Errorf("%s: %w", d.Baseline.Manifest, err)
		}
		j.Baseline = &baseline
	}
	if j.Search = d.Search; j.Search != nil && j.Search.Bisect != nil {
		for _, s := range d.Sides {
			one := at(s)
			if err := own(s, &one); err != nil {
				return runners.Job{}, fmt.Errorf("%s: %w", s.Manifest, err)
			}
			j.Search.Bisect.Sides = append(j.Search.Bisect.Sides, one)
		}
	}
	if err := j.Search.Check(); err != nil {
		return runners.Job{}, fmt.Errorf("%s: %w", jobFile, err)
	}
	if j.Policy, err = policy.Parse(d.PolicyFile, u.texts[policyFile]); err != nil {
		return runners.Job{}, err
	}
	if err := j.Ask(d.Part); err != nil {
		return runners.Job{}, fmt.Errorf("%s: %w", jobFile, err)
	}
	return j, checkVariants(j)
}

// description parses job.json, and checks that the bundle has exactly what it names.
func (u *unpacker) description() (description, error) {
	var d description
	dec := json.NewDecoder(bytes.NewReader(u.texts[jobFile]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, fmt.Errorf("%s: %w (is the runner older than the bot? update it)", jobFile, err)
	}
	if dec.More() {
		return d, fmt.Errorf("%s: goes on after its end", jobFile)
	}
	if d.Schema != schema {
		return d, fmt.Errorf("%s: schema is %q (this program reads %q; run the bot and the runner in the same version)", jobFile, d.Schema, schema)
	}
	if len(d.Sides) > 0 && (d.Search == nil || d.Search.Bisect == nil) {
		return d, fmt.Errorf("%s: sides are for a bisection, and it asks for none", jobFile)
	}
	if d.Rounds < 0 {
		return d, fmt.Errorf("%s: rounds is %d", jobFile, d.Rounds)
	}
	folders, manifests, err := d.contents()
	if err != nil {
		return d, err
	}
	for _, name := range folders {
		if !u.folders[name] {
			return d, fmt.Errorf("the folder %s is missing", name)
		}
	}
	if len(folders) != len(u.folders) {
		return d, fmt.Errorf("there are folders that %s does not name", jobFile)
	}
	for _, name := range append(manifests, policyFile) {
		if _, ok := u.texts[name]; !ok {
			return d, fmt.Errorf("%s is missing", name)
		}
	}
	for name := range u.texts {
		if own := name == headManifest || name == baselineManifest || isCommitManifest(name); own && !slices.Contains(manifests, name) {
			return d, fmt.Errorf("there is %s, which %s does not name", name, jobFile)
		}
	}
	return d, nil
}

// isCommitManifest reports whether a file is the manifest of a state in a bisection.
func isCommitManifest(name string) bool {
	folder, ok := strings.CutSuffix(name, ".yaml")
	return ok && commitName.MatchString(folder)
}

func checkVariants(j runners.Job) error {
	sides := []runners.Side{j.Candidate}
	if j.Baseline != nil {
		sides = append(sides, *j.Baseline)
	}
	if j.Search != nil && j.Search.Bisect != nil {
		sides = append(sides, j.Search.Bisect.Sides...)
	}
	for _, s := range sides {
		if _, err := j.Of(s).Variant(s.Variant); err != nil {
			return err
		}
		if err := s.Toolchains.Check(); err != nil {
			return err
		}
	}
	return nil
}
