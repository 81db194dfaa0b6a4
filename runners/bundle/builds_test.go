package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var aBuild = strings.Repeat("a0", 32)

func packed(t testing.TB, files map[string]string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "builds.tar.gz")
	if ok, err := PackBuilds(fill(t, t.TempDir(), files), file); err != nil || !ok {
		t.Fatal(ok, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestBuildsTravel(t *testing.T) {
	files := map[string]string{aBuild + "/kernel.cubin": "code", aBuild + "/sums": "sums"}
	data := packed(t, files)
	if again := packed(t, files); !bytes.Equal(data, again) {
		t.Error("the same builds are packed otherwise the second time")
	}
	dir := t.TempDir()
	if err := UnpackBuilds(bytes.NewReader(data), dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, none := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		if ok, err := PackBuilds(none, filepath.Join(t.TempDir(), "f")); ok || err != nil {
			t.Errorf("of nothing: %v, %v", ok, err)
		}
	}
	if _, err := PackBuilds(fill(t, t.TempDir(), map[string]string{"notes.txt": "x"}), filepath.Join(t.TempDir(), "f")); err == nil {
		t.Error("a file of no build was packed")
	}
}

func TestForeignBuildsAreRefused(t *testing.T) {
	entry := func(h tar.Header, content string) []byte {
		var b bytes.Buffer
		zip := gzip.NewWriter(&b)
		archive := tar.NewWriter(zip)
		h.Size = int64(len(content))
		if err := archive.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, data := range map[string][]byte{
		"outside":      entry(tar.Header{Typeflag: tar.TypeReg, Name: "../" + aBuild + "/sums", Mode: 0o644}, "x"),
		"absolute":     entry(tar.Header{Typeflag: tar.TypeReg, Name: "/etc/passwd", Mode: 0o644}, "x"),
		"a link":       entry(tar.Header{Typeflag: tar.TypeSymlink, Name: aBuild + "/sums", Linkname: "/etc/passwd"}, ""),
		"another name": entry(tar.Header{Typeflag: tar.TypeReg, Name: "key/sums", Mode: 0o644}, "x"),
		"deeper":       entry(tar.Header{Typeflag: tar.TypeReg, Name: aBuild + "/a/sums", Mode: 0o644}, "x"),
		"no archive":   []byte("hello"),
		"cut off":      packed(t, map[string]string{aBuild + "/sums": strings.Repeat("x", 5000)})[:60],
	} {
		dir := t.TempDir()
		if err := UnpackBuilds(bytes.NewReader(data), dir); err == nil || !strings.HasPrefix(err.Error(), "unpacking builds: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzUnpackBuilds checks that nothing that arrives as builds leaves the folder, and that only
// plain files arrive there.
func FuzzUnpackBuilds(f *testing.F) {
	f.Add(packed(f, map[string]string{aBuild + "/kernel.cubin": "code", aBuild + "/sums": "sums"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		_ = UnpackBuilds(bytes.NewReader(data), dir)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(dir, path)
				if !d.Type().IsRegular() || !buildName.MatchString(filepath.ToSlash(rel)) {
					t.Errorf("it left %s", rel)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
