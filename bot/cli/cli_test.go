package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kernelgate/kernelgate/bot/cli/clitest"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

func TestMain(m *testing.M) {
	natstest.Main()
	clitest.Main(m, "../..", Run)
}

// TestScripts runs the program as users do: commands, exact messages, exit codes and files.
func TestScripts(t *testing.T) { runScripts(t, "bot/cli/testdata/script") }

// TestLongScripts runs those that measure many rounds.
func TestLongScripts(t *testing.T) {
	long.Test(t)
	runScripts(t, "bot/cli/testdata/script/long")
}

func runScripts(t *testing.T, dir string) {
	t.Helper()
	cuda, noCUDA := toolchain.FindCUDA(t.Context(), os.Getenv)
	python, noPython := pyref.Find(t.Context(), os.Getenv)
	testscript.Run(t, testscript.Params{
		Dir:           dir,
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			env.Setenv("GIT_TEMPLATE_DIR", "") // no hooks from a template
			env.Setenv("GIT_CONFIG_COUNT", "1")
			env.Setenv("GIT_CONFIG_KEY_0", "maintenance.auto")
			env.Setenv("GIT_CONFIG_VALUE_0", "false")
			env.Setenv("GIT_AUTHOR_NAME", "someone")
			env.Setenv("GIT_AUTHOR_EMAIL", "someone@example.org")
			env.Setenv("GIT_COMMITTER_NAME", "someone")
			env.Setenv("GIT_COMMITTER_EMAIL", "someone@example.org")
			if noCUDA == nil { // the CUDA cache is in the home folder, which scripts do not have
				env.Setenv("CUDA_HOME", cuda.Home)
			}
			if noPython == nil && python.Fetched() != "" { // likewise: scripts that need it name this as their cache
				cache := filepath.Join(env.WorkDir, ".python-cache")
				env.Setenv("PYTHON_CACHE", cache)
				if err := os.MkdirAll(filepath.Join(cache, "kernelgate"), 0o755); err != nil {
					return err
				}
				if err := os.Symlink(python.Fetched(), filepath.Join(cache, "kernelgate", filepath.Base(python.Fetched()))); err != nil {
					return err
				}
			}
			cwd, err := os.Getwd()
			env.Setenv("SOURCE", cwd)
			return err
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "cuda":
				return noCUDA == nil, nil
			case "numpy":
				return noPython == nil, nil
			}
			return false, fmt.Errorf("there is no condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

// status N COMMAND… runs a command and checks its exit code.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit status %d, want %d", code, want)
	}
}
