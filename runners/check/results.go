package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/runners/check/results"
)

// write puts a result on disk whole: the files appear under their final name
// only when all of them are there.
func (c *checker) write(r *Result, several bool) error {
	if r.LeftOut != "" {
		return nil
	}
	root := c.opt.Results
	if root == "" {
		root = filepath.Join(c.repo.Dir(), "results")
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	part, err := os.MkdirTemp(root, ".part-")
	if err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	defer os.RemoveAll(part)
	files := results.Files{Evidence: r.Evidence, Verdict: r.Verdict, BuildLog: c.log, Artifacts: c.artifacts}
	if err := files.Write(part); err != nil {
		return err
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	r.Dir, err = c.place(root, part, r.Kernel, several)
	return err
}

// place moves the finished folder to results/<UTC time>, below which several
// kernels get a folder each. Two runs in one second do not meet.
func (c *checker) place(root, part, kernel string, several bool) (string, error) {
	base := filepath.Join(root, c.started.Format("20060102T150405Z"))
	for n := 1; n < 1000; n++ {
		dir := base
		if n > 1 {
			dir = fmt.Sprintf("%s-%d", base, n)
		}
		if several {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return "", fmt.Errorf("writing results: %w", err)
			}
			dir = filepath.Join(dir, kernel)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Rename(part, dir); err != nil {
			return "", fmt.Errorf("writing results: %w", err)
		}
		return dir, nil
	}
	return "", fmt.Errorf("writing results: %s is taken", base)
}
