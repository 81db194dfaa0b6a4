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

// fetch-cutedsl.sh says why it cannot, and leaves nothing behind then.
func TestFetchCuTeDSL(t *testing.T) {
	bin, cache := t.TempDir(), t.TempDir()
	python := "#!/bin/sh\ncase \"$1 $2 $3\" in\n\"-I -c \"*) echo cp311 ;;\n\"-m pip --version\") ;;\n\"-m venv --without-pip\") mkdir -p \"$4\" ;;\n*) echo 'ERROR: no such host' >&2; exit 1 ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(python), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		env    []string
		args   []string
		status int
		says   string
	}{
		{"wrong usage", nil, []string{"--what"}, 2, "usage: fetch-cutedsl.sh [--check]"},
		{"not there", nil, []string{"--check"}, 3, "no CuTe DSL 4.8.1 in " + cache},
		{"no network", nil, nil, 3, "the wheels could not be installed (ERROR: no such host); check the network and pip's index"},
		{"no Python", []string{"KERNELGATE_PYTHON=/nowhere/python3"}, nil, 3, "/nowhere/python3 not found; install python3 with pip"},
		{"no home", []string{"XDG_CACHE_HOME="}, nil, 3, "neither HOME nor XDG_CACHE_HOME is set"},
	} {
		cmd := exec.Command("bash", append([]string{"fetch-cutedsl.sh"}, c.args...)...)
		cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_CACHE_HOME=" + cache}, c.env...)
		var out, log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &log
		status := 0
		if exit := new(exec.ExitError); errors.As(cmd.Run(), &exit) {
			status = exit.ExitCode()
		}
		if status != c.status || out.Len() > 0 || !strings.Contains(log.String(), c.says) {
			t.Errorf("%s: status %d, stdout %q, want %d and nothing; stderr, which should say %q:\n%s", c.name, status, &out, c.status, c.says, &log)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "kernelgate", "*.partial.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
