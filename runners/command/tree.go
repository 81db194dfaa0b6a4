package command

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// copyTree makes a private copy of a folder in place of whatever was there.
func copyTree(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("clearing %s: %w", to, err)
	}
	// The sandbox's programs read it as another user.
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("making room for a copy of %s: %w", from, err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

// hashTree is one hash over every file of a folder: names, executable bits and
// contents. Links are hashed as links, never followed.
func hashTree(dir string, salt ...string) (string, error) {
	sum := sha256.New()
	for _, s := range salt {
		fmt.Fprintf(sum, "%q\n", s)
	}
	tree := os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch d.Type() {
		case 0:
			fmt.Fprintf(sum, "file %q %o %d\n", name, info.Mode().Perm()&0o111, info.Size())
			f, err := tree.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(sum, f)
			return err
		case fs.ModeSymlink:
			target, err := fs.ReadLink(tree, name)
			fmt.Fprintf(sum, "link %q %q\n", name, target)
			return err
		}
		fmt.Fprintf(sum, "%v %q\n", d.Type(), name)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("hashing what was built in %s: %w", dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
