package profile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// A command is one call of a program that may have children of its own.
type command struct {
	args           []string
	env            []string
	dir            string
	stdout, stderr io.Writer
}

// runGroup runs a program in a process group of its own, and kills the whole group when the context ends: ncu
// alone would leave the program that it profiles running.
func runGroup(ctx context.Context, c command) error {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.env, c.dir, c.stdout, c.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroup := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = killGroup
	cmd.WaitDelay = 5 * time.Second // a child that left the group may hold the output open
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", c.args[0], err)
	}
	err := cmd.Wait()
	_ = killGroup() // what ncu left behind when it failed; there is nothing to kill otherwise
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well; only its output was held open
		return nil
	}
	return err
}

// capped keeps the first bytes of a stream, so that no program fills the memory. It embeds no buffer: io.Copy would
// find the buffer's ReadFrom and pass the limit by.
type capped struct {
	limit    int
	kept     bytes.Buffer
	overflow bool
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.limit - c.kept.Len(); len(p) > room {
		c.overflow = true
		c.kept.Write(p[:room])
		return len(p), nil
	}
	return c.kept.Write(p)
}

func (c *capped) String() string { return c.kept.String() }
