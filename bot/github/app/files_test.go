package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree reads a folder. Folders in it end with a slash.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			found[name] = "/"
			return nil
		}
		text, err := os.ReadFile(path)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	files := []file{{"a", []byte("new a"), 0o600}, {"b", []byte("new b"), 0o644}, {"c", []byte("new c"), 0o600}}
	type content map[string]string
	for _, tt := range []struct {
		name   string
		before content // a name that ends with a slash is a folder
		dir    string
		force  bool
		after  content // nil: expect an error, and no changes
	}{
		{"an empty folder", nil, ".", false, content{"a": "new a", "b": "new b", "c": "new c"}},
		{"new folders", nil, "x/y", false, content{"x": "/", "x/y": "/", "x/y/a": "new a", "x/y/b": "new b", "x/y/c": "new c"}},
		{"the last is there", content{"c": "old c", "d": "other"}, ".", false, nil},
		{"the first is there", content{"a": "old a"}, ".", false, nil},
		{"the last is a folder", content{"c": "/"}, ".", false, nil},
		{"a file in the way", content{"x": "file"}, "x/y", false, nil},
		{"overwritten", content{"a": "old a", "c": "old c", "d": "other"}, ".", true, content{"a": "new a", "b": "new b", "c": "new c", "d": "other"}},
		{"cannot be overwritten", content{"a": "old a", "b": "old b", "c": "/", "c/in": "it"}, ".", true, nil},
		{"nothing to overwrite before what cannot be", content{"c": "/", "c/in": "it"}, ".", true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for _, folders := range []bool{true, false} {
				for name, text := range tt.before {
					var err error
					switch {
					case folders && text == "/":
						err = os.Mkdir(filepath.Join(root, name), 0o755)
					case !folders && text != "/":
						err = os.WriteFile(filepath.Join(root, name), []byte(text), 0o640)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			err := writeAll(filepath.Join(root, tt.dir), files, tt.force)
			want := tt.after
			if tt.after == nil {
				want = tt.before
			}
			if (err == nil) != (tt.after != nil) {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff(map[string]string(want), tree(t, root)); diff != "" {
				t.Errorf("after %v:\n%s", err, diff)
			}
			if tt.after == nil {
				return
			}
			for _, f := range files {
				info, err := os.Stat(filepath.Join(root, tt.dir, f.name))
				if err != nil || info.Mode().Perm() != f.mode {
					t.Errorf("%s has mode %v: %v", f.name, info.Mode(), err)
				}
			}
		})
	}
}
