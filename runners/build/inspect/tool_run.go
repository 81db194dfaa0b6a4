package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A command is one call of a program that may start children.
type command struct {
	Args           []string
	Env            []string
	Stdout, Stderr io.Writer
}

// runTool runs a program in a new process group, and kills the whole group when the context ends.
// Killing only the tool would leave the program under it running.
func runTool(ctx context.Context, c command) error {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroup := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = killGroup
	cmd.WaitDelay = 5 * time.Second // a child that left the group may keep the output open
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", c.Args[0], err)
	}
	err := cmd.Wait()
	_ = killGroup() // kills children that survived a failure; otherwise there are none
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, exec.ErrWaitDelay) { // it succeeded; only its output was kept open
		return nil
	}
	return err
}

// capped keeps the first bytes of a stream, so that no program fills the memory. It does not embed
// a buffer: io.Copy would find the buffer's ReadFrom and bypass the limit.
type capped struct {
	Limit    int
	Overflow bool // there was more
	kept     bytes.Buffer
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.Limit - c.kept.Len(); len(p) > room {
		c.Overflow = true
		c.kept.Write(p[:room])
		return len(p), nil
	}
	return c.kept.Write(p)
}

func (c *capped) String() string { return c.kept.String() }

// readLog reads the beginning of a tool's log. It returns "" if the tool failed before it could
// write one.
func readLog(path, tool string, limit int64) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading %s's log: %w", tool, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return "", fmt.Errorf("reading %s's log: %w", tool, err)
	}
	return string(text), nil
}
