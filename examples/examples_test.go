// Package examples tests the examples as a reader tries them: in a repository of their own, with the changes that they bring.
package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kernelgate/kernelgate/bot/cli"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kernelgate": func() { os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr)) }})
}

// triton are the examples that need it to compile.
var triton = map[string]bool{"layernorm-triton": true}

// here are the examples that run on a host without a GPU. The others are compiled; gpu.sh runs them.
var here = map[string]bool{"rmsnorm-simd": true, "harness": true}

func TestExamples(t *testing.T) {
	changes, err := filepath.Glob("*/changes/*.patch")
	if err != nil || len(changes) < 10 {
		t.Fatalf("only %d changes (%v)", len(changes), err)
	}
	for _, change := range changes {
		example, name, _ := strings.Cut(strings.TrimSuffix(filepath.ToSlash(change), ".patch"), "/changes/")
		t.Run(example+" "+name, func(t *testing.T) {
			t.Parallel()
			if err := missing(t, example); err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			r := newRepository(t, example)
			r.must("git", "checkout", "-q", "-b", name)
			r.must("git", "apply", "changes/"+name+".patch")
			r.must("git", "commit", "-qam", name)
			args := []string{"check", "--rounds", "6"}
			want, status := "PASS · ", 0
			switch {
			case triton[example] && name == "faster":
				long.Test(t) // the other change compiles the same
				fallthrough
			case triton[example]: // one architecture: Triton takes seconds for each of its configurations
				args = []string{"check", "--static", "--arch", "sm_90"}
			case !here[example]:
				args = []string{"check", "--static"} // it compiles, whatever it computes
			case name == "wrong":
				want, status = "the output is wrong in", 1
			case example == "rmsnorm-simd":
				long.Test(t) // a busy machine does not let it measure
			case example == "harness":
				args = []string{"check"} // its rounds are short, and other tests make noise
			}
			out, got := r.run("kernelgate", args...)
			if got != status || !strings.Contains(out, want) {
				t.Errorf("status %d, want %d and %q:\n%s", got, status, want, out)
			}
		})
	}
}

// missing is the compiler that an example needs and this host lacks.
func missing(t *testing.T, example string) error {
	var err error
	switch {
	case triton[example]:
		_, err = toolchain.FindTriton(t.Context(), os.Getenv)
	case !here[example]:
		_, err = toolchain.FindCUDA(t.Context(), os.Getenv)
	}
	return err
}

// Every example lints without a warning, and the list names it.
func TestExamplesAreClean(t *testing.T) {
	list, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	policies, err := filepath.Glob("*/.github/kernelgate.yaml")
	if err != nil || len(policies) < 5 {
		t.Fatalf("only %d examples (%v)", len(policies), err)
	}
	for _, policy := range policies {
		example, _, _ := strings.Cut(filepath.ToSlash(policy), "/")
		if !bytes.Contains(list, []byte("| ["+example+"]("+example+") |")) {
			t.Errorf("README.md does not list %s", example)
		}
		out, status := newRepository(t, example).run("kernelgate", "policy", "lint", ".")
		manifests, err := filepath.Glob(filepath.Join(example, "kernels", "*", "*kernel.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if status != 0 || strings.Contains(out, "warning") || strings.Count(out, ": ok: ") != max(1+len(manifests), 2) {
			t.Errorf("%s: status %d:\n%s", example, status, out)
		}
	}
}

type repository struct {
	t   *testing.T
	dir string
}

// newRepository is a copy of an example as the first commit of main.
func newRepository(t *testing.T, example string) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	if err := os.CopyFS(r.dir, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	r.must("git", "init", "-q", "-b", "main")
	r.must("git", "add", "-A")
	r.must("git", "commit", "-qm", "Add the kernel")
	return r
}

func (r repository) run(program string, args ...string) (string, int) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), program, args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TEMPLATE_DIR=",
		"GIT_AUTHOR_NAME=someone", "GIT_AUTHOR_EMAIL=someone@example.org", "GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=someone@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (r repository) must(program string, args ...string) {
	r.t.Helper()
	if out, status := r.run(program, args...); status != 0 {
		r.t.Fatalf("%s %s: status %d\n%s", program, strings.Join(args, " "), status, out)
	}
}
