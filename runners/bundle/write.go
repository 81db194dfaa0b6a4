package bundle

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

// Write packs the job, with the manifest and the policy as text, and returns the SHA-256 of what it
// wrote in hex.
func Write(w io.Writer, j runners.Job) (digest string, err error) {
	sum := sha256.New()
	entries, err := collect(j)
	if err == nil {
		err = writeAll(io.MultiWriter(w, sum), entries)
	}
	if err != nil {
		return "", fmt.Errorf("packing the job of %s: %w", j.Key, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeAll writes files in the order of their names.
func writeAll(w io.Writer, entries map[string]entry) error {
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := entries[name].write(archive, name); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

// An entry is one file of the bundle, on disk or in memory.
type entry struct {
	path       string // where to read it from; "" means data
	data       []byte
	size       int64
	executable bool
}

func (e entry) write(archive *tar.Writer, name string) error {
	mode := int64(0o644)
	if e.executable {
		mode = 0o755
	}
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: e.size, Mode: mode}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if e.path == "" {
		_, err := archive.Write(e.data)
		return err
	}
	f, err := os.Open(e.path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(archive, f)
	if err == nil && n != e.size {
		err = fmt.Errorf("%s changed while it was packed", e.path)
	}
	return err
}

// collect lists the contents of the bundle, by name.
func collect(j runners.Job) (map[string]entry, error) {
	if err := j.Search.Check(); err != nil {
		return nil, err
	}
	d, folders, manifests := describe(j)
	if len(d.Sides) > maxSides {
		return nil, usage.Errorf("the range has %d different states of the kernel, and at most %d are searched (name commits that are nearer to each other)", len(d.Sides), maxSides)
	}
	c := collector{entries: map[string]entry{}}
	for name, dir := range folders {
		if err := c.folder(name, dir); err != nil {
			return nil, err
		}
	}
	if manifest := d.manifest(); c.entries[manifest].path == "" {
		return nil, fmt.Errorf("%s has no %s", j.Trusted, path.Base(manifest))
	}
	for name, text := range manifests {
		if err := c.add(name, entry{data: []byte(text)}); err != nil {
			return nil, err
		}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", jobFile, err)
	}
	return c.entries, errors.Join(c.add(jobFile, entry{data: text}), c.add(policyFile, entry{data: []byte(j.PolicyText)}))
}

// describe maps the job's folders and manifests to the bundle's.
func describe(j runners.Job) (d description, folders, manifests map[string]string) {
	folders, manifests = map[string]string{baseFolder: j.Trusted}, map[string]string{}
	place := func(s runners.Side, own string) side {
		out := side{Folder: own, Variant: s.Variant, Sources: s.Sources, Toolchains: s.Toolchains, Differs: s.Differs}
		if s.Manifest != nil {
			out.Manifest = own + ".yaml"
			manifests[out.Manifest] = s.ManifestText
		}
		if filepath.Clean(s.Dir) == filepath.Clean(j.Trusted) {
			out.Folder = baseFolder
		} else {
			folders[own] = s.Dir
		}
		return out
	}
	d = description{
		Schema: schema, Key: j.Key, PolicyFile: j.PolicyFile, Candidate: place(j.Candidate, headFolder),
		Change: j.Change, Provenance: j.Provenance, Notes: j.Notes, Noise: j.Noise,
		Rounds: j.Rounds, Shapes: j.Shapes, Seeds: j.Seeds, Profile: j.Profile, Part: j.Part, Recorded: j.Recorded != "",
	}
	if d.Recorded {
		folders[recordedFolder] = j.Recorded
	}
	if j.Baseline != nil {
		baseline := place(*j.Baseline, baselineFolder)
		d.Baseline = &baseline
	}
	if d.Search = j.Search; d.Search != nil && d.Search.Bisect != nil {
		for i, s := range d.Search.Bisect.Sides {
			d.Sides = append(d.Sides, place(s, commitFolder(i)))
		}
	}
	return d, folders, manifests
}

type collector struct {
	entries map[string]entry
	quota   quota
}

func (c *collector) add(name string, e entry) error {
	if e.path == "" {
		e.size = int64(len(e.data))
	}
	if err := errors.Join(checkName(name), c.quota.take(name, e.size)); err != nil {
		return err
	}
	c.entries[name] = e
	return nil
}

// folder adds every file below dir. It refuses a link, which could mean something different on
// another host.
func (c *collector) folder(name, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file: replace it by one, or remove it", path)
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return c.add(name+"/"+filepath.ToSlash(rel), entry{path: path, size: info.Size(), executable: info.Mode()&0o100 != 0})
	})
}
