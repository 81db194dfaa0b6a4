package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestArchiveDependsOnContentsAlone archives two checkouts with different modes and times.
func TestArchiveDependsOnContentsAlone(t *testing.T) {
	var archives []string
	for _, mask := range []os.FileMode{0o077, 0} {
		dir := t.TempDir()
		write := func(name string, mode os.FileMode) string {
			file := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(file, []byte(name), 0o600), os.Chmod(file, mode&^mask), os.Chtimes(file, time.Time{}, time.Unix(int64(mask), 0))); err != nil {
				t.Fatal(err)
			}
			return file
		}
		out := filepath.Join(dir, "out.tar.gz")
		if err := run(out, []string{"kernelgate=" + write("program", 0o777), write("LICENSE", 0o666), "install/=" + write("a.service", 0o666)}, "1700000000"); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, string(content))
	}
	if archives[0] != archives[1] {
		t.Error("two archives of the same contents differ")
	}

	type entry struct {
		Name, Owner, Content string
		Mode, Time           int64
	}
	var got []entry
	compressed, err := gzip.NewReader(bytes.NewReader([]byte(archives[0])))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(compressed); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry{h.Name, h.Uname + ":" + h.Gname, string(content), h.Mode, h.ModTime.Unix()})
	}
	want := []entry{
		{"kernelgate", "root:root", "program", 0o755, 1700000000},
		{"LICENSE", "root:root", "LICENSE", 0o644, 1700000000},
		{"install/a.service", "root:root", "a.service", 0o644, 1700000000},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the archive (-want +got):\n%s", diff)
	}
}

func TestArchiveRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, try := range map[string][2]string{
		"a file that is not there": {filepath.Join(dir, "none"), "1700000000"},
		"no time":                  {dir, ""},
	} {
		if err := run(filepath.Join(dir, "out"), []string{try[0]}, try[1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
