package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
)

// git returns the output of one command.
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

// command prepares a git command, and a function that adds git's messages to its error.
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

// lastWords keeps the end of git's error messages: git may report one for every object of a
// repository.
type lastWords struct{ text []byte }

func (l *lastWords) Write(p []byte) (int, error) {
	const most = 4096
	if l.text = append(l.text, p...); len(l.text) > most {
		l.text = append([]byte(nil), l.text[len(l.text)-most:]...)
	}
	return len(p), nil
}

// Merge merges a file that both sides have changed since the base, as git does. clean is false if
// there are conflicts.
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
		return nil, false, nil // the exit code counts the conflicts
	}
	return merged, err == nil, explain(err)
}

// A memo caches git's answers that can never change. A thousand pull requests to one branch ask the
// same questions about its tip, and starting git takes longer than answering. A nil memo caches
// nothing.
type memo struct{ answers *lru.Cache[string, []byte] }

// A memo holds 4 MiB at most: there is one for each repository.
const (
	maxAnswers = 256
	maxAnswer  = 16 << 10
)

func newMemo() *memo {
	answers, err := lru.New[string, []byte](maxAnswers)
	if err != nil {
		panic(err) // the size is a constant
	}
	return &memo{answers: answers}
}

var wholeHash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// answer returns the cached output of a command, or nil, and the key to store it under. The key is
// empty if the answer may change: a branch moves, a hash does not.
func (m *memo) answer(args []string) (key string, known []byte) {
	revs := args
	if i := slices.Index(args, "--"); i >= 0 {
		revs = args[:i] // paths follow
	}
	if m == nil || !slices.Contains([]string{"rev-parse", "merge-base", "ls-tree"}, args[0]) {
		return "", nil
	}
	for _, arg := range revs[1:] {
		if !strings.HasPrefix(arg, "-") && !wholeHash.MatchString(strings.TrimSuffix(arg, "^{commit}")) {
			return "", nil
		}
	}
	key = strings.Join(args, "\x00")
	return key, m.get(key)
}

func (m *memo) get(key string) []byte {
	if m == nil {
		return nil
	}
	known, _ := m.answers.Get(key)
	return known
}

// keep stores an answer that is not too long. It does not store an empty one, because nil means
// that nothing is stored.
func (m *memo) keep(key string, answer []byte) {
	if m != nil && key != "" && len(answer) > 0 && len(answer) <= maxAnswer {
		m.answers.Add(key, slices.Clone(answer))
	}
}
