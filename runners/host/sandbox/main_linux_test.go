package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain gives the test binary four roles: the tests, the sandbox's inner parts, the program that
// runs inside and tries to escape, and a caller of Start that a test kills.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "attack" {
		if os.Args[2] == "in turn" {
			syscall.Exit(attackInTurn(os.Args[3:]))
		}
		// Not os.Exit, which takes a second under the race detector.
		syscall.Exit(attack(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) == 2 && os.Args[1] == "caller" {
		exe, err := os.Executable()
		if err == nil {
			s := selfSpec(exe, "attack", "outlive", "deadline")
			s.Limits.Wall, s.ExtraFiles, s.Stderr = time.Hour, []*os.File{os.NewFile(3, "out")}, os.Stderr
			_, err = Run(context.Background(), s)
		}
		fmt.Fprintln(os.Stderr, "not killed:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var support = sync.OnceValue(Probe)

// needSandbox skips the test if the kernel refuses the sandbox, except in CI, where nobody would
// notice the skip.
func needSandbox(t testing.TB) {
	t.Helper()
	if support().Works() {
		return
	}
	text := fmt.Sprintf("no sandbox here: %+v", support().Checks)
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Skip(text)
}

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// self is a Spec that runs this test binary with the given arguments.
func self(t testing.TB, args ...string) Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return selfSpec(exe, args...)
}

func selfSpec(exe string, args ...string) Spec {
	return Spec{
		Args: append([]string{exe}, args...),
		Read: append(SystemPaths(), exe),
		// The race detector maps terabytes that it never touches.
		Limits: Limits{Wall: 2 * time.Minute, Overcommit: raceEnabled()},
	}
}

// run runs the Spec and returns what the program printed.
func run(t testing.TB, s Spec) (Result, string) {
	t.Helper()
	var out bytes.Buffer
	s.Stdout, s.Stderr = &out, &out
	r, err := Run(t.Context(), s)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return r, out.String()
}

// shell is a Spec that runs a shell script.
func shell(script string) Spec {
	return Spec{Args: []string{"sh", "-c", script}, Read: SystemPaths(), Limits: Limits{Wall: 2 * time.Minute}}
}

// TestAsOrdinaryUser runs the other tests again without root's privileges, which takes different
// paths through the kernel.
func TestAsOrdinaryUser(t *testing.T) {
	needSandbox(t)
	if os.Geteuid() != 0 {
		t.Skip("already an ordinary user")
	}
	t.Parallel()
	// Other users cannot read the directories of the user who runs the tests.
	dir, err := os.MkdirTemp("", "sandbox-user")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "test")
	// Not in this process: if it had the file open for writing while it forks a child, the file
	// could not be executed.
	if out, err := exec.Command("cp", exe, copied).CombinedOutput(); err != nil {
		t.Fatalf("copy the test binary: %v\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(dir, "home"), 0o755); err != nil {
		t.Fatal(err)
	}
	const user = 12345
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), copied, "-test.run=^(TestConformance|TestTalk|TestRunCompiler|TestRunTight|TestWritePaths)$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+filepath.Join(dir, "home"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS") {
		t.Fatalf("as user %d: %v\n%s", user, err, out)
	}
}
