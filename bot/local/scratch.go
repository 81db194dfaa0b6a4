package local

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// InScratch runs do in a new folder, and removes the folder afterwards. If do failed and was not
// interrupted, it keeps the folder and prints its path.
func InScratch(ctx context.Context, prefix string, t *Teller, do func(dir string) (right bool, err error)) (right bool, err error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return false, fmt.Errorf("making a scratch folder: %w (set TMPDIR to a folder with space)", err)
	}
	right, err = do(dir)
	if ctx.Err() == nil && (err != nil || !right) {
		t.Say("\nThe bot's log, its data and the repositories are kept: %s\n", dir)
		return right, err
	}
	if gone := os.RemoveAll(dir); gone != nil {
		err = errors.Join(err, fmt.Errorf("removing the scratch folder: %w (remove it yourself)", gone))
	}
	return right, err
}
