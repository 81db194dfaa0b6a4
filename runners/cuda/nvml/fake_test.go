package nvml

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
)

//go:embed testdata/fakenvml.c
var fakeSource []byte

// buildDir keeps the fake libraries that were compiled, for the life of the test
// binary. TestMain alone sets it.
var buildDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fakenvml")
	if err != nil {
		panic(err)
	}
	buildDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// compileFake builds the fake library once for each set of flags and returns a
// copy of it: every test that loads one has its state to itself.
func compileFake(t *testing.T, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc) to build the fake library with")
	}
	key := strings.ReplaceAll(strings.Join(append([]string{"fake"}, flags...), " "), "/", "_")
	lib := filepath.Join(buildDir, key+".so")
	if _, err := os.Stat(lib); err != nil {
		src := filepath.Join(buildDir, "fakenvml.c")
		if err := os.WriteFile(src, fakeSource, 0o600); err != nil {
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
	own := filepath.Join(t.TempDir(), "libnvml-fake.so")
	if err := os.WriteFile(own, image, 0o700); err != nil {
		t.Fatal(err)
	}
	return own
}

// A fake is the fake library, opened, with the side doors that tests use.
type fake struct {
	*Library
	path    string
	fail    func(name string, code int32)
	running func(n int32)
	opened  func() int32
}

func openFake(t *testing.T, flags ...string) *fake {
	t.Helper()
	f := &fake{path: compileFake(t, flags...)}
	l, err := OpenPath(f.path)
	if err != nil {
		t.Fatal(err)
	}
	f.Library = l
	purego.RegisterLibFunc(&f.fail, l.handle, "fake_fail")
	purego.RegisterLibFunc(&f.running, l.handle, "fake_running")
	purego.RegisterLibFunc(&f.opened, l.handle, "fake_opened")
	return f
}
