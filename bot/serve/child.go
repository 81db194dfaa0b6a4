package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/subprocess"
)

// A child is the local runner: a process that gets a socket, a token and a folder,
// and nothing that the bot has.
type child struct {
	program       []string
	dir           string
	server, name  string
	labels        []string
	gpus          string // "" is all
	includes      measure.IncludeSets
	toolchains    []string
	builds        bool
	level, format string
	as            *syscall.Credential // nil is as the bot
	stderr        io.Writer
	log           *slog.Logger
	getenv        func(string) string
	more          []string // of the environment
}

func (c *child) home() string      { return filepath.Join(c.dir, "home") }
func (c *child) state() string     { return filepath.Join(c.dir, "state") }
func (c *child) tokenFile() string { return filepath.Join(c.dir, "token") }

const (
	childGrace = 10 * time.Second // to give its job back
	firstPause = time.Second
	lastPause  = time.Minute
)

// run keeps the runner alive until ctx ends. One that dies at once is started
// again more and more slowly.
func (c *child) run(ctx context.Context) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		begun := time.Now()
		err := c.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(begun) > lastPause {
			pause = firstPause
		}
		if err == nil {
			err = errors.New("it stopped unexpectedly")
		}
		c.log.Error("the local runner died and is restarted", "err", err, "again_in", pause.String())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// once runs the runner to its end, in a process group of its own: a terminal's
// Ctrl-C is the bot's, which asks the runner to stop in its turn.
func (c *child) once(ctx context.Context) error {
	args := append(c.program[1:len(c.program):len(c.program)], "runner",
		"--server", c.server, "--token-file", c.tokenFile(), "--name", c.name, "--labels", strings.Join(c.labels, ","), "--state", c.state())
	if c.gpus != "" && c.gpus != "all" {
		args = append(args, "--gpus", c.gpus)
	}
	if c.level != "" {
		args = append(args, "--log-level", c.level)
	}
	if c.format != "" {
		args = append(args, "--log-format", c.format)
	}
	for _, name := range c.includes.Names() {
		args = append(args, "--include", name+"="+c.includes[name])
	}
	for _, path := range c.toolchains {
		args = append(args, "--toolchain", path)
	}
	if c.builds {
		args = append(args, "--builds")
	}
	cmd := exec.CommandContext(ctx, c.program[0], args...)
	cmd.Dir, cmd.Env = c.dir, c.environment()
	cmd.Stdout, cmd.Stderr = c.stderr, c.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.as}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = childGrace
	if err := subprocess.Start(cmd, syscall.SIGTERM); err != nil {
		return fmt.Errorf("starting %s: %w", c.program[0], err)
	}
	c.log.Info("started the local runner", "pid", cmd.Process.Pid, "labels", c.labels)
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whatever it left behind; usually there is nothing
	return err
}

// environment is what a compiler and a GPU's libraries need, and nothing of the
// bot's.
func (c *child) environment() []string {
	env := []string{"HOME=" + c.home()}
	for _, name := range []string{
		"PATH", "LANG", "TMPDIR", "TZ", "CC", "CUDA_HOME", "KERNELGATE_PYTHON", "CUDA_PATH", "LD_LIBRARY_PATH",
		"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
	} {
		if value := c.getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return append(env, c.more...)
}
