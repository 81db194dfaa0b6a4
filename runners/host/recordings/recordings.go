// Package recordings gets the files of recorded inputs that a manifest names: from the repository, from the Git LFS objects
// beside it, or from an https address. Every file is checked against the manifest's digest before anybody reads it. The
// manifest must be the base's: nobody else may choose an address. The package does not interpret the files.
package recordings

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 64 << 20

// NotHere means that a recording cannot be had, and says what to do. Neither side of a change is at fault.
type NotHere struct{ Why string }

func (n NotHere) Error() string { return n.Why }

func notHere(r manifest.Recording, format string, args ...any) error {
	return NotHere{fmt.Sprintf("the recording %s (%s): %s", r.Name, r.File, fmt.Sprintf(format, args...))}
}

// A Source is where the recordings of one kernel come from.
type Source struct {
	Repo    *checkout.Repo
	Rev     string
	Folder  string   // of the kernel
	Fetcher *Fetcher // nil fetches nothing
}

// Get writes a recording to a file that only this user can read.
func (s Source) Get(ctx context.Context, r manifest.Recording, to string) error {
	data, err := s.read(ctx, r)
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != r.SHA256 {
		return notHere(r, "it has the SHA-256 %s, and the manifest says %s (write the right digest, or restore the file)", got, r.SHA256)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return fmt.Errorf("writing the recording %s: %w", r.Name, err)
	}
	return nil
}

func (s Source) read(ctx context.Context, r manifest.Recording) ([]byte, error) {
	if r.Remote() {
		if s.Fetcher == nil {
			return nil, notHere(r, "this command fetches nothing (put the file into the kernel's folder)")
		}
		data, err := s.Fetcher.Get(ctx, r.File, r.SHA256)
		if err != nil && ctx.Err() == nil {
			return nil, notHere(r, "%v", err)
		}
		return data, err
	}
	data, err := s.file(ctx, r)
	if err != nil || !bytes.HasPrefix(data, []byte(pointerStart)) {
		return data, err
	}
	return s.large(r, data)
}

// file reads a file of the repository.
func (s Source) file(ctx context.Context, r manifest.Recording) ([]byte, error) {
	dir, err := os.MkdirTemp("", "kernelgate-recording-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the recording %s: %w", r.Name, err)
	}
	defer os.RemoveAll(dir)
	if err := s.Repo.Export(ctx, s.Rev, s.Folder, dir, func(rel string) bool { return rel == r.File }); err != nil {
		return nil, fmt.Errorf("reading the recording %s: %w", r.Name, err)
	}
	data, err := readUpTo(filepath.Join(dir, filepath.FromSlash(r.File)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notHere(r, "%s has no such file (commit it, or its Git LFS pointer)", path.Clean(s.Folder))
	case errors.Is(err, errLarge):
		return nil, notHere(r, "%v", err)
	}
	return data, err
}

var errLarge = fmt.Errorf("it has more than %d MiB (record fewer inputs, or a smaller shape)", MaxBytes>>20)

func readUpTo(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxBytes {
		return nil, errLarge
	}
	return os.ReadFile(name)
}

const pointerStart = "version https://git-lfs.github.com/spec/v1\n"

var pointerDigest = regexp.MustCompile(`(?m)^oid sha256:([0-9a-f]{64})$`)

// large reads the object that a Git LFS pointer names, from those that git lfs has fetched. It asks no server.
func (s Source) large(r manifest.Recording, pointer []byte) ([]byte, error) {
	m := pointerDigest.FindSubmatch(pointer)
	if m == nil || len(pointer) > 1024 {
		return nil, notHere(r, "it is no whole Git LFS pointer")
	}
	digest := string(m[1])
	if digest != r.SHA256 {
		return nil, notHere(r, "its Git LFS pointer is to %s, and the manifest says %s (write the pointer's digest)", digest, r.SHA256)
	}
	for _, git := range []string{filepath.Join(s.Repo.Dir(), ".git"), s.Repo.Dir()} {
		data, err := readUpTo(filepath.Join(git, "lfs", "objects", digest[:2], digest[2:4], digest))
		if err == nil {
			return data, nil
		}
		if errors.Is(err, errLarge) {
			return nil, notHere(r, "%v", err)
		}
	}
	return nil, notHere(r, "Git LFS has not fetched it here (in a checkout: git lfs fetch; a bot fetches no Git LFS objects: commit the file itself, or give an https address)")
}
