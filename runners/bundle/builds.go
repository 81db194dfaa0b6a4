package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
)

// buildName is a file of one build: builds are named by a hash, and their files lie flat.
var buildName = regexp.MustCompile(`^[0-9a-f]{64}/[a-z][a-z.]{0,31}$`)

// PackBuilds writes what a host has compiled of a job (see toolchain.Handover) to a file, and tells whether there was anything.
func PackBuilds(dir, file string) (bool, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	c := collector{entries: map[string]entry{}}
	if err := c.folder("builds", dir); err != nil {
		return false, fmt.Errorf("packing builds: %w", err)
	}
	if len(c.entries) == 0 {
		return false, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return false, fmt.Errorf("packing builds: %w", err)
	}
	defer f.Close()
	zip := gzip.NewWriter(f)
	archive := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(c.entries)) {
		inside := name[len("builds/"):]
		if !buildName.MatchString(inside) {
			return false, fmt.Errorf("packing builds: %s is no file of a build", inside)
		}
		if err := c.entries[name].write(archive, inside); err != nil {
			return false, fmt.Errorf("packing builds: %w", err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close(), f.Close()); err != nil {
		return false, fmt.Errorf("packing builds: %w", err)
	}
	return true, nil
}

// UnpackBuilds is the way back, into dir, an empty folder. It refuses whatever PackBuilds would not have written; what it had
// unpacked until then stays, for the caller to remove with dir.
func UnpackBuilds(r io.Reader, dir string) error {
	if err := unpackBuilds(r, dir); err != nil {
		return fmt.Errorf("unpacking builds: %w", err)
	}
	return nil
}

func unpackBuilds(r io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := unpacker{root: root}
	return u.unpack(r, func(h *tar.Header, content io.Reader) error {
		if !buildName.MatchString(h.Name) {
			return fmt.Errorf("%.100q is no file of a build", h.Name)
		}
		if err := u.folder(path.Dir(h.Name)); err != nil {
			return err
		}
		return u.file(h.Name, 0o644, content)
	})
}
