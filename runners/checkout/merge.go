package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

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
