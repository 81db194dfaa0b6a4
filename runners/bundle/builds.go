package bundle

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
)

// buildName matches the name of a file of one build: builds are named by a hash, and have no
// subfolders.
var buildName = regexp.MustCompile(`^[0-9a-f]{64}/[a-z][a-z.]{0,31}$`)

// PackBuilds writes what a host has compiled for a job (see toolchain.Handover) to a file, and
// reports whether there was anything.
func PackBuilds(dir, file string) (bool, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	builds, err := collectBuilds(dir)
	if err == nil && len(builds) == 0 {
		return false, nil
	}
	var f *os.File
	if err == nil {
		f, err = os.Create(file)
	}
	if err == nil {
		err = errors.Join(writeAll(f, builds), f.Close())
	}
	if err != nil {
		return false, fmt.Errorf("packing builds: %w", err)
	}
	return true, nil
}

func collectBuilds(dir string) (map[string]entry, error) {
	c, builds := collector{entries: map[string]entry{}}, map[string]entry{}
	if err := c.folder("builds", dir); err != nil {
		return nil, err
	}
	for name, e := range c.entries {
		inside := strings.TrimPrefix(name, "builds/")
		if !buildName.MatchString(inside) {
			return nil, fmt.Errorf("%s is no file of a build", inside)
		}
		builds[inside] = e
	}
	return builds, nil
}

// UnpackBuilds unpacks builds into dir, an empty folder. It refuses anything that PackBuilds would
// not have written. Files that it had unpacked until then stay; the caller removes them with dir.
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
