package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// Merge is what a file becomes where both sides have changed it since the base, as git
// merges it; clean is false where a person has to.
func (r *Repo) Merge(ctx context.Context, base, ours, theirs []byte) (merged []byte, clean bool, err error) {
	dir, err := os.MkdirTemp("", "kernelgate-merge-")
	if err != nil {
		return nil, false, fmt.Errorf("making a scratch folder: %w", err)
	}
	defer os.RemoveAll(dir)
	names := []string{"ours", "base", "theirs"}
	for i, text := range [][]byte{ours, base, theirs} {
		names[i] = filepath.Join(dir, names[i])
		if err := os.WriteFile(names[i], text, 0o600); err != nil {
			return nil, false, fmt.Errorf("merging a file: %w", err)
		}
	}
	cmd, explain := r.command(ctx, append([]string{"merge-file", "--stdout"}, names...)...)
	merged, err = cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128 {
		return nil, false, nil // as many conflicts
	}
	return merged, err == nil, explain(err)
}
