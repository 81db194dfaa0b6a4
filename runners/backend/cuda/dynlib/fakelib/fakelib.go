// Package fakelib compiles the C stand-ins for the driver's libraries that tests
// load on machines without a GPU. Only tests import it.
package fakelib

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Builder compiles one fake, and keeps what it compiled for the life of the
// test binary.
type Builder struct {
	Source []byte // C
	dir    string
}

// Main is a package's TestMain.
func (b *Builder) Main(m *testing.M) {
	dir, err := os.MkdirTemp("", "fakelib")
	if err != nil {
		panic(err)
	}
	b.dir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// Compile builds the fake once for each set of flags and returns a copy of it:
// every test that loads one has its state to itself.
func (b *Builder) Compile(t testing.TB, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc) to build the fake library with")
	}
	key := strings.ReplaceAll(strings.Join(append([]string{"fake"}, flags...), " "), "/", "_")
	lib := filepath.Join(b.dir, key+".so")
	if _, err := os.Stat(lib); err != nil {
		src := filepath.Join(b.dir, "fake.c")
		if err := os.WriteFile(src, b.Source, 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"-shared", "-fPIC", "-std=c11", "-Wall", "-Werror", "-o", lib, src}, flags...)
		if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
			t.Fatalf("compiling the fake library: %v\n%s", err, out)
		}
	}
	image, err := os.ReadFile(lib)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "lib-fake.so")
	if err := os.WriteFile(own, image, 0o700); err != nil {
		t.Fatal(err)
	}
	return own
}
