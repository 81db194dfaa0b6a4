package toolchain

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
)

// fakePip stands in for Python: its pip downloads an empty wheel, its zipfile unpacks a little of what the wheels of Triton and
// NumPy hold, and its environments have a program that imports everything.
const fakePip = `#!/bin/sh
fails() { if [ -n "$FAKE_PIP_FAILS" ]; then echo "ERROR: no such host" >&2; exit 1; fi; }
case "$1 $2 $3" in
"-I -c "*) echo cp311 ;;
"-m pip --version") ;;
"-m pip download")
	echo x >>"$FAKE_DOWNLOADS"
	fails
	while [ $# -gt 0 ]; do if [ "$1" = --dest ]; then mkdir -p "$2"; : >"$2/package.whl"; fi; shift; done ;;
"-m zipfile -e")
	umask 077
	mkdir -p "$5/triton/backends/nvidia/bin" "$5/triton/backends/amd/lib" "$5/triton/profiler" "$5/numpy"
	printf '#!/bin/sh\n' >"$5/triton/backends/nvidia/bin/ptxas"; : >"$5/triton/__init__.py"; : >"$5/numpy/__init__.py" ;;
"-I -m compileall") ;;
"-m venv --without-pip") mkdir -p "$4/bin"; printf '#!/bin/sh\n' >"$4/bin/python"; chmod +x "$4/bin/python" ;;
"-m pip install") echo x >>"$FAKE_DOWNLOADS"; fails ;;
*) exit 1 ;;
esac
`

// Every version of a package comes once, whole and for everybody, and what is missing is said.
func TestFetchPython(t *testing.T) {
	for _, c := range []struct {
		name, called string
		versions     []string
		offline      string // what is said without network
		program      string // that everybody may run
	}{
		{"triton", "Triton", []string{"3.6.0", "3.9.0"}, "the wheel could not be downloaded", "triton/backends/nvidia/bin/ptxas"},
		{"numpy", "NumPy", []string{"2.4.6"}, "the wheel could not be downloaded", ""},
		{"cutedsl", "CuTe DSL", []string{"4.8.1"}, "the wheels could not be installed", "bin/python"},
		{"schemathesis", "Schemathesis", []string{"4.32.5"}, "the wheels could not be installed", "bin/python"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newPythonFetch(t)
			for _, r := range []struct {
				name   string
				env    []string
				args   []string
				status int
				says   string
			}{
				{"wrong usage", nil, []string{c.name, "--what"}, 2, "usage: fetch-python.sh triton|numpy|cutedsl|schemathesis [--check]"},
				{"no package", nil, nil, 2, "usage: fetch-python.sh triton|numpy|cutedsl|schemathesis [--check]"},
				{"a package that is not known", nil, []string{"torch"}, 2, "usage: fetch-python.sh triton|numpy|cutedsl|schemathesis [--check]"},
				{"not there", nil, []string{c.name, "--check"}, 3, "no " + c.called + " " + c.versions[0] + " in " + f.cache},
				{"no network", []string{"FAKE_PIP_FAILS=1"}, []string{c.name}, 3, c.offline + " (ERROR: no such host); check the network and pip's index"},
				{"no Python", []string{"KERNELGATE_PYTHON=/nowhere/python3"}, []string{c.name}, 3, "/nowhere/python3 not found; install python3 with pip"},
				{"no home", []string{"XDG_CACHE_HOME="}, []string{c.name}, 3, "neither HOME nor XDG_CACHE_HOME is set"},
			} {
				if out, log, status := f.run(r.env, r.args...); status != r.status || out != "" || !strings.Contains(log, r.says) {
					t.Errorf("%s: status %d, stdout %q, want %d and nothing; stderr, which should say %q:\n%s", r.name, status, out, r.status, r.says, log)
				}
			}
			root, want := filepath.Join(f.cache, "kernelgate"), ""
			for _, version := range c.versions {
				want += filepath.Join(root, c.name+"-"+version+"-cp311") + "\n"
			}
			for _, args := range [][]string{{c.name}, {c.name}, {c.name, "--check"}} {
				if out, log, status := f.run(nil, args...); status != 0 || out != want {
					t.Fatalf("%v: status %d, stdout %q, want %q; stderr:\n%s", args, status, out, want, log)
				}
			}
			if log, err := os.ReadFile(f.downloads); err != nil || bytes.Count(log, []byte("\n")) != 1+len(c.versions) {
				t.Errorf("%q was downloaded (%v), want one that failed and %d", log, err, len(c.versions))
			}
			if c.program != "" {
				program, err := os.Stat(filepath.Join(root, c.name+"-"+c.versions[0]+"-cp311", c.program))
				if err != nil || program.Mode().Perm()&0o555 != 0o555 {
					t.Errorf("%s is not for everybody: %v %v", c.program, program, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(root, "*.partial.*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A pythonFetch runs fetch-python.sh with a Python that stands in for the real one.
type pythonFetch struct {
	*testing.T
	bin, cache, downloads string
}

func newPythonFetch(t *testing.T) pythonFetch {
	f := pythonFetch{T: t, bin: t.TempDir(), cache: filepath.Join(t.TempDir(), "with space")}
	f.downloads = filepath.Join(f.bin, "downloads")
	if err := runnable.Write(filepath.Join(f.bin, "python3"), []byte(fakePip)); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f pythonFetch) run(env []string, args ...string) (out, log string, status int) {
	f.Helper()
	cmd := exec.Command("bash", append([]string{"fetch-python.sh"}, args...)...)
	cmd.Env = append([]string{"PATH=" + f.bin + ":" + os.Getenv("PATH"), "XDG_CACHE_HOME=" + f.cache, "FAKE_DOWNLOADS=" + f.downloads}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if exit := new(exec.ExitError); errors.As(cmd.Run(), &exit) {
		status = exit.ExitCode()
	}
	return stdout.String(), stderr.String(), status
}
