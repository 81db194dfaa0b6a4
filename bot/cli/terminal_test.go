package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"
)

// openTerminal creates a pseudo-terminal with a number of columns, and returns the user's end and
// the program's.
func openTerminal(t *testing.T, columns uint16) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

// onTerminal runs the program on a pseudo-terminal and returns everything that it wrote. The
// variables in env override the test's environment.
func onTerminal(t *testing.T, dir string, columns uint16, env []string, args ...string) string {
	t.Helper()
	person, program := openTerminal(t, columns)
	cmd := exec.CommandContext(t.Context(), "kernelgate", args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, program, program, program
	cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR="), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	program.Close()
	var written bytes.Buffer
	// Linux returns EIO after the last program has closed its end.
	if _, err := io.Copy(&written, person); err != nil && !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("kernelgate %s: %v\n%s", strings.Join(args, " "), err, written.String())
	}
	return written.String()
}

// changedKernel creates the repository of the script check.txt, with its faster kernel in the work
// tree.
func changedKernel(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile("bot/cli/testdata/script/check.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := txtar.Write(archive, dir); err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(dir, "repo")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-qm", "a kernel"}} {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=someone", "-c", "user.email=someone@example.org"}, args...)...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	faster, err := os.ReadFile(filepath.Join(dir, "faster.c"))
	if err == nil {
		err = os.WriteFile(filepath.Join(repo, "kernels/scale/scale.c"), faster, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

var (
	roundFrame = regexp.MustCompile(`^(scale )?✓ build ✓ correctness ✓ precision [▓░]{8} round [1-6]/6( · .*)?$`)
	timeLeft   = regexp.MustCompile(` · \d+ s left$`)
	styles     = regexp.MustCompile(`\x1b\[[0-9]*m`)
)

// TestCheckOnTerminal checks that on a terminal with 80 columns a check shows one live line, and
// the report below it.
func TestCheckOnTerminal(t *testing.T) {
	repo := changedKernel(t)
	written := onTerminal(t, repo, 80, nil, "check", "--base", "main")
	parts := strings.Split(written, "\r\x1b[2K")
	if parts[0] != "" || len(parts) < 8 {
		t.Fatalf("the line was repainted %d times: %q", len(parts)-1, written)
	}
	live, report := parts[1:len(parts)-1], parts[len(parts)-1]
	rounds, countdowns := 0, 0
	for _, frame := range live {
		if n := ansi.StringWidth(frame); n > 79 || strings.ContainsAny(frame, "\r\n") {
			t.Errorf("a frame of %d columns: %q", n, frame)
		}
		if plain := ansi.Strip(frame); roundFrame.MatchString(plain) {
			rounds++
			if timeLeft.MatchString(plain) {
				countdowns++
			}
		}
	}
	if rounds < 6 || countdowns == 0 {
		t.Errorf("%d frames show a round, and %d of them the time left:\n%q", rounds, countdowns, live)
	}
	if !strings.Contains(live[len(live)-1], "\x1b[32m✓\x1b[39m build") {
		t.Errorf("a finished gate is not green: %q", live[len(live)-1])
	}
	if !strings.Contains(report, "PASS") || !strings.Contains(report, "\x1b[32m") || !strings.Contains(report, "Written to") {
		t.Errorf("the report is\n%s", report)
	}
	for line := range strings.SplitSeq(report, "\r\n") {
		if n := ansi.StringWidth(line); n > 80 && !strings.Contains(line, "Written to") {
			t.Errorf("the report has a line of %d columns: %s", n, line)
		}
	}
}

// TestCheckWithoutStyles checks that the live line also works without colours, and that a dumb
// terminal and a pipe get plain lines.
func TestCheckWithoutStyles(t *testing.T) {
	repo := changedKernel(t)
	policy, err := os.ReadFile(filepath.Join(repo, ".github/kernelgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	untimed := filepath.Join(t.TempDir(), "untimed.yaml")
	text := regexp.MustCompile(`(?s)  performance:.*solo_shift: 100%\n`).ReplaceAll(policy, nil)
	if err := os.WriteFile(untimed, text, 0o644); err != nil {
		t.Fatal(err)
	}
	check := []string{"check", "--base", "main", "--policy", untimed}
	noColour := onTerminal(t, repo, 80, []string{"NO_COLOR=1"}, check...)
	if styles.MatchString(noColour) || !strings.Contains(noColour, "\r\x1b[2K") {
		t.Errorf("NO_COLOR shows %q", noColour)
	}
	if dumb := onTerminal(t, repo, 80, []string{"TERM=dumb"}, check...); strings.Contains(dumb, "\x1b") || !strings.Contains(dumb, "build: compiling the candidate\r\n") {
		t.Errorf("a dumb terminal shows %q", dumb)
	}
	cmd := exec.CommandContext(t.Context(), "kernelgate", check...)
	cmd.Dir = repo
	piped, err := cmd.CombinedOutput()
	if err != nil || bytes.ContainsAny(piped, "\r\x1b") || !bytes.Contains(piped, []byte("build: compiling the candidate\n")) {
		t.Errorf("a pipe gets %q, %v", piped, err)
	}
}

// TestTablesOnTerminal checks that commands align their tables on a terminal and write no Markdown
// there.
func TestTablesOnTerminal(t *testing.T) {
	history := onTerminal(t, ".", 80, nil, "history", "kernels/sdpa_fp8", "--policy", "h200")
	compare := onTerminal(t, "kernels/sdpa_fp8/evidence", 80, nil, "compare", "stage5.json", "stage6_fp8.json", "--policy", "h200")
	for name, text := range map[string]string{"history": history, "compare": compare} {
		if !strings.Contains(text, "\x1b[32m✓\x1b[39m") || strings.ContainsAny(text, "|`") {
			t.Errorf("%s shows\n%s", name, text)
		}
		for line := range strings.SplitSeq(text, "\r\n") {
			if n := ansi.StringWidth(line); n > 80 {
				t.Errorf("%s has a line of %d columns: %s", name, n, line)
			}
		}
	}
	if plain := onTerminal(t, ".", 80, []string{"NO_COLOR=1"}, "history", "kernels/sdpa_fp8", "--policy", "h200"); plain != ansi.Strip(history) {
		t.Errorf("NO_COLOR shows\n%s", plain)
	}
}
