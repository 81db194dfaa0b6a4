package results

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	file := at("file")
	if err := os.WriteFile(file, []byte("12345"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"zero": "/dev/zero", "link": file, "loop": at("loop")} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(at("pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "", at("zero"): "is a link", at("link"): "is a link", at("loop"): "is a link", "/dev/zero": "is no regular file",
		at("pipe"): "is no regular file", dir: "is no regular file",
	} {
		data, err := Read(path)
		switch {
		case want == "" && (err != nil || string(data) != "12345"):
			t.Errorf("%s: %q, %v", path, data, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if _, err := ReadAtMost(file, 4); err == nil || !strings.Contains(err.Error(), "more than 4 bytes") {
		t.Errorf("a file that is too long: %v", err)
	}
	if _, err := Read(at("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
