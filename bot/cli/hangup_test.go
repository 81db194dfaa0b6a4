package cli

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHangup sends SIGHUP to a bot and to a runner: both go on, and stop in order at SIGTERM.
func TestHangup(t *testing.T) {
	dir := t.TempDir()
	config, secret := filepath.Join(dir, "kernelgate.yaml"), filepath.Join(dir, "secret")
	write := func(more string) {
		t.Helper()
		text := "data: " + filepath.Join(dir, "data") + "\nlisten: 127.0.0.1:0\ngithub: {token_file: " + secret + ", webhook_secret_file: " + secret + ", repositories: [a/b], api_url: 'http://127.0.0.1:1'}\nrunner: {local: false}\n" + more
		if err := errors.Join(os.WriteFile(config, []byte(text), 0o600), os.WriteFile(secret, []byte("a-long-secret-of-the-test"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	bot := startLogged(t, "serve", "--config", config)
	bot.wait("kernelgate listens")
	bot.signal(syscall.SIGHUP)
	bot.wait("the configuration has not changed")
	write("reconcile: 7m\n")
	bot.signal(syscall.SIGHUP)
	bot.wait("restart the bot to use it")
	write("reconcile: soon\n")
	bot.signal(syscall.SIGHUP)
	bot.wait("would not start with the new one")
	bot.signal(syscall.SIGTERM)
	bot.wait("kernelgate has stopped")
	bot.ends()

	runner := startLogged(t, "runner", "--server", "http://127.0.0.1:1", "--token-file", secret, "--name", "r", "--gpus", "none", "--state", filepath.Join(dir, "state"))
	runner.wait("runner starts")
	runner.signal(syscall.SIGHUP)
	runner.wait("nothing to read again")
	runner.signal(syscall.SIGTERM)
	runner.ends()
}

// A bot that crashes ends by a signal, and not with the exit status of a mistake, after which systemd does not start it again.
// SIGQUIT makes the runtime of Go crash like a panic.
func TestCrashIsNoMistake(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startLogged(t, "runner", "--server", "http://127.0.0.1:1", "--token-file", token, "--name", "r", "--gpus", "none", "--state", filepath.Join(dir, "state"))
	p.wait("runner starts")
	p.signal(syscall.SIGQUIT)
	for p.lines.Scan() { // the stacks
	}
	_ = p.cmd.Wait() // the status says how it ended
	if is := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !is.Signaled() || is.Signal() != syscall.SIGABRT {
		t.Errorf("it ended with %v", p.cmd.ProcessState)
	}
}

// A logged program is one whose log a test reads line by line.
type logged struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	seen  strings.Builder
}

func startLogged(t *testing.T, args ...string) *logged {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kernelgate", args...)
	out, err := cmd.StderrPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	return &logged{t: t, cmd: cmd, lines: bufio.NewScanner(out)}
}

func (p *logged) wait(words string) {
	p.t.Helper()
	for p.lines.Scan() {
		p.seen.WriteString(p.lines.Text() + "\n")
		if strings.Contains(p.lines.Text(), words) {
			return
		}
	}
	p.t.Fatalf("it does not say %q:\n%s%v", words, &p.seen, p.cmd.Wait())
}

func (p *logged) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end of a program that was stopped in order.
func (p *logged) ends() {
	p.t.Helper()
	for p.lines.Scan() {
		p.seen.WriteString(p.lines.Text() + "\n")
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("%v\n%s", err, &p.seen)
	}
}
