package pyref

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakePip stands in for Python: its pip downloads an empty wheel, its zipfile unpacks what NumPy's wheel holds.
const fakePip = `#!/bin/sh
case "$1 $2 $3" in
"-I -c "*) echo cp311 ;;
"-m pip --version") ;;
"-m pip download")
	echo x >>"$FAKE_DOWNLOADS"
	if [ -n "$FAKE_PIP_FAILS" ]; then echo "ERROR: no such host" >&2; exit 1; fi
	while [ $# -gt 0 ]; do if [ "$1" = --dest ]; then mkdir -p "$2"; : >"$2/numpy.whl"; fi; shift; done ;;
"-m zipfile -e")
	umask 077
	mkdir -p "$5/numpy"; : >"$5/numpy/__init__.py" ;;
"-I -m compileall") ;;
*) exit 1 ;;
esac
`

// NumPy comes once, whole and for everybody, and what is missing is said.
func TestFetchNumPy(t *testing.T) {
	bin, cache := t.TempDir(), filepath.Join(t.TempDir(), "with space")
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(fakePip), 0o755); err != nil {
		t.Fatal(err)
	}
	downloads := filepath.Join(bin, "downloads")
	run := func(env []string, args ...string) (string, string, int) {
		t.Helper()
		cmd := exec.Command("bash", append([]string{"fetch-numpy.sh"}, args...)...)
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
		{"wrong usage", nil, []string{"--what"}, 2, "usage: fetch-numpy.sh [--check]"},
		{"not there", nil, []string{"--check"}, 3, "no NumPy 2.4.6 in " + cache},
		{"no network", []string{"FAKE_PIP_FAILS=1"}, nil, 3, "the wheel could not be downloaded (ERROR: no such host); check the network and pip's index"},
		{"no Python", []string{"KERNELGATE_PYTHON=/nowhere/python3"}, nil, 3, "/nowhere/python3 not found; install python3 with pip"},
	} {
		if out, log, status := run(c.env, c.args...); status != c.status || out != "" || !strings.Contains(log, c.says) {
			t.Errorf("%s: status %d, stdout %q, want %d and nothing; stderr, which should say %q:\n%s", c.name, status, out, c.status, c.says, log)
		}
	}
	want := filepath.Join(cache, "kernelgate", "numpy-2.4.6-cp311") + "\n"
	for range 2 {
		if out, log, status := run(nil); status != 0 || out != want {
			t.Fatalf("status %d, stdout %q, want %q; stderr:\n%s", status, out, want, log)
		}
	}
	if log, err := os.ReadFile(downloads); err != nil || bytes.Count(log, []byte("\n")) != 2 {
		t.Errorf("%q was downloaded (%v), want one that failed and one", log, err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "kernelgate", "*.partial.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
