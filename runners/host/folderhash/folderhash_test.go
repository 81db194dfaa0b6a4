package folderhash_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/runners/host/folderhash"
)

// A folder has another hash after everything that a program in it could see.
func TestSum(t *testing.T) {
	sum := func(t *testing.T, edit func(dir string) error) string {
		t.Helper()
		dir := t.TempDir()
		for name, text := range map[string]string{"k.py": "one", "sub/more.py": "two"} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := edit(dir); err != nil {
			t.Fatal(err)
		}
		got, err := folderhash.Sum(dir)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	nothing := func(string) error { return nil }
	first := sum(t, nothing)
	if sum(t, nothing) != first {
		t.Error("the same files in another folder have another hash")
	}
	for name, edit := range map[string]func(dir string) error{
		"contents":       func(dir string) error { return os.WriteFile(filepath.Join(dir, "k.py"), []byte("two"), 0o644) },
		"executable bit": func(dir string) error { return os.Chmod(filepath.Join(dir, "k.py"), 0o755) },
		"name":           func(dir string) error { return os.Rename(filepath.Join(dir, "k.py"), filepath.Join(dir, "l.py")) },
		"folder":         func(dir string) error { return os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "bus")) },
		"empty folder":   func(dir string) error { return os.Mkdir(filepath.Join(dir, "empty"), 0o755) },
		"link":           func(dir string) error { return os.Symlink("k.py", filepath.Join(dir, "link.py")) },
		"link for file": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "k.py")), os.Symlink("sub/more.py", filepath.Join(dir, "k.py")))
		},
	} {
		if sum(t, edit) == first {
			t.Errorf("%s: the hash is the same", name)
		}
	}
}
