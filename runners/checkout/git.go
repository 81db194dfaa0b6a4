package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// git is what one command says.
func (r *Repo) git(ctx context.Context, args ...string) (string, error) {
	key, known := r.memo.answer(args)
	if known != nil {
		return string(known), nil
	}
	cmd, explain := r.command(ctx, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	err := explain(cmd.Run())
	if err == nil {
		r.memo.keep(key, out.Bytes())
	}
	return out.String(), err
}

// command is git about to run, and what makes its failure say what git said.
func (r *Repo) command(ctx context.Context, args ...string) (cmd *exec.Cmd, explain func(error) error) {
	cmd = exec.CommandContext(ctx, "git", append([]string{"-C", r.dir, "-c", "core.quotepath=off"}, args...)...)
	errs := &lastWords{}
	cmd.Stderr = errs
	return cmd, func(err error) error {
		if err == nil {
			return nil
		}
		if text := strings.TrimSpace(string(errs.text)); text != "" {
			err = errors.New(text)
		}
		return fmt.Errorf("git %s: %w", args[0], err)
	}
}

// lastWords keeps the end of what git complains of: it may do so of every object of a
// repository.
type lastWords struct{ text []byte }

func (l *lastWords) Write(p []byte) (int, error) {
	const most = 4096
	if l.text = append(l.text, p...); len(l.text) > most {
		l.text = append([]byte(nil), l.text[len(l.text)-most:]...)
	}
	return len(p), nil
}
