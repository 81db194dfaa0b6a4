package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// cacheVersion changes when entries get another form, or are made in another way than args tells.
const cacheVersion = 2

// cacheKey names everything that the output of a build depends on: the tools, the call, and all of the folder, since
// any file in it can be included.
func (c *CUDA) cacheKey(b NVCCBuild) (string, error) {
	h := sha256.New()
	err := json.NewEncoder(h).Encode(struct {
		Version                int
		Compiler, HostCompiler string
		Digest                 string `json:",omitempty"`
		Cuobjdump              bool
		Memory                 int64
		Source, Markers, Arch  string
		Args                   []string
	}{cacheVersion, c.Version, c.HostVersion, c.Digest, c.Cuobjdump != "", c.memory(), b.Source, b.markers, b.Arch, c.args(b)})
	if err != nil {
		return "", fmt.Errorf("naming the build of %s: %w", b.Source, err)
	}
	if err := hashFolder(h, b.Dir); err != nil {
		return "", fmt.Errorf("reading the sources of %s: %w", b.Source, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashFolder takes names and contents of files, and where links point to. What a link points to counts only where it lies
// in the folder itself: of the rest the compiler sees nothing but the system.
func hashFolder(h hash.Hash, dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(real, path)
		if err != nil {
			return err
		}
		switch d.Type() {
		case 0:
			sum, err := hashFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "file %q %x\n", name, sum)
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "link %q %q\n", name, target)
		}
		return nil
	})
}

func hashFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
