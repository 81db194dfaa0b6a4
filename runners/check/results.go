package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates/report"
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
	evidence, err := json.Marshal(r.Evidence)
	if err != nil {
		return fmt.Errorf("writing evidence: %w", err)
	}
	verdict, err := json.MarshalIndent(r.Verdict, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the verdict: %w", err)
	}
	part, err := os.MkdirTemp(root, ".part-")
	if err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	defer os.RemoveAll(part)
	for name, text := range map[string][]byte{
		"evidence.json": append(evidence, '\n'),
		"verdict.json":  append(verdict, '\n'),
		"report.md":     []byte(report.Markdown(r.Verdict, report.Options{})),
		"build.log":     []byte(c.log),
	} {
		if err := os.WriteFile(filepath.Join(part, name), text, 0o644); err != nil {
			return fmt.Errorf("writing results: %w", err)
		}
	}
	for _, file := range c.artifacts {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(part, filepath.Base(file)), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("keeping %s: %w", filepath.Base(file), err)
		}
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
