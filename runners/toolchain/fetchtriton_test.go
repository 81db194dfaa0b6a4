package toolchain

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeTriton stands in for Python: its pip downloads an empty wheel, its zipfile unpacks what Triton's wheel holds.
const fakeTriton = `#!/bin/sh
case "$1 $2 $3" in
"-I -c "*) echo cp311 ;;
"-m pip --version") ;;
"-m pip download")
	echo x >>"$FAKE_DOWNLOADS"
	if [ -n "$FAKE_PIP_FAILS" ]; then echo "ERROR: no such host" >&2; exit 1; fi
	while [ $# -gt 0 ]; do if [ "$1" = --dest ]; then mkdir -p "$2"; : >"$2/triton.whl"; fi; shift; done ;;
"-m zipfile -e")
	umask 077
	mkdir -p "$5/triton/backends/nvidia/bin" "$5/triton/backends/amd/lib" "$5/triton/profiler"
	printf '#!/bin/sh\n' >"$5/triton/backends/nvidia/bin/ptxas"; : >"$5/triton/__init__.py" ;;
"-I -m compileall") ;;
*) exit 1 ;;
esac
`

// Both versions come once, whole and for everybody, and what is missing is said.
func TestFetchTriton(t *testing.T) {
	bin, cache := t.TempDir(), filepath.Join(t.TempDir(), "with space")
	python := filepath.Join(bin, "python3")
	if err := os.WriteFile(python, []byte(fakeTriton), 0o755); err != nil {
		t.Fatal(err)
	}
	downloads := filepath.Join(bin, "downloads")
	run := func(env []string, args ...string) (string, string, int) {
		t.Helper()
		cmd := exec.Command("bash", append([]string{"fetch-triton.sh"}, args...)...)
		cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_CACHE_HOME=" + cache, "FAKE_DOWNLOADS=" + downloads}, env...)
		var out, log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &log
		status := 0
		if exit := new(exec.ExitError); errors.As(cmd.Run(), &exit) {
			status = exit.ExitCode()
		}
		return out.String(), log.String(), status
	}
	for _, c := range []struct {
		name   string
		env    []string
		args   []string
		status int
		says   string
	}{
		{"wrong usage", nil, []string{"--what"}, 2, "usage: fetch-triton.sh [--check]"},
		{"not there", nil, []string{"--check"}, 3, "no Triton 3.6.0 in " + cache},
		{"no network", []string{"FAKE_PIP_FAILS=1"}, nil, 3, "the wheel could not be downloaded (ERROR: no such host); check the network and pip's index"},
		{"no Python", []string{"KERNELGATE_PYTHON=/nowhere/python3"}, nil, 3, "/nowhere/python3 not found; install python3 with pip"},
		{"no home", []string{"XDG_CACHE_HOME="}, nil, 3, "neither HOME nor XDG_CACHE_HOME is set"},
	} {
		if out, log, status := run(c.env, c.args...); status != c.status || out != "" || !strings.Contains(log, c.says) {
			t.Errorf("%s: status %d, stdout %q, want %d and nothing; stderr, which should say %q:\n%s", c.name, status, out, c.status, c.says, log)
		}
	}
	root := filepath.Join(cache, "kernelgate")
	want := filepath.Join(root, "triton-3.6.0-cp311") + "\n" + filepath.Join(root, "triton-3.9.0-cp311") + "\n"
	for range 2 {
		if out, log, status := run(nil); status != 0 || out != want {
			t.Fatalf("status %d, stdout %q, want %q; stderr:\n%s", status, out, want, log)
		}
	}
	if out, _, status := run(nil, "--check"); status != 0 || out != want {
		t.Errorf("--check: status %d, %q", status, out)
	}
	if log, err := os.ReadFile(downloads); err != nil || bytes.Count(log, []byte("\n")) != 3 {
		t.Errorf("%q was downloaded (%v), want one that failed and two", log, err)
	}
	tool, err := os.Stat(filepath.Join(root, "triton-3.6.0-cp311", "triton", "backends", "nvidia", "bin", "ptxas"))
	if err != nil || tool.Mode().Perm()&0o555 != 0o555 {
		t.Errorf("ptxas is not for everybody: %v %v", tool, err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "*.partial.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
