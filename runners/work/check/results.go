package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/runners"
)

// write writes a result to disk as a whole: the files appear under their final name only when all
// of them exist.
func (c *checker) write(r *Result, several bool) error {
	if r.LeftOut != "" {
		return nil
	}
	root := c.opt.Results
	ours := root == ""
	if ours {
		root = filepath.Join(c.repo.Dir(), "results")
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	if ours {
		if err := Ignore(root); err != nil {
			return err
		}
	}
	part, err := os.MkdirTemp(root, ".part-")
	if err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	defer os.RemoveAll(part)
	if err := WriteResults(part, r.Measured, r.policy, r.Verdict); err != nil {
		return err
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	r.Dir, err = c.place(root, part, r.Kernel, several)
	return err
}

// Ignore keeps the results of a check out of the state that the next check examines. It does not
// touch a file that a user keeps there.
func Ignore(root string) error {
	f, err := os.OpenFile(filepath.Join(root, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = f.WriteString("*\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("keeping the results out of git: %w", err)
	}
	return nil
}

// place moves the finished folder to results/<UTC time>. If there are several kernels, each gets a
// folder below that. Two runs in one second get different folders.
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

// StoredPolicy is the name of the policy next to the evidence that was gathered by it.
const StoredPolicy = "policy.yaml"

// WriteResults writes evidence.json, verdict.json, report.md, build.log, the text of the policy and
// the artifacts into an existing folder. A caller that needs all files or none moves the folder into
// place afterwards.
func WriteResults(dir string, m runners.Measured, policy string, v *gates.Verdict) error {
	if m.Evidence != nil {
		v.Unsteady = facts.Sentences(gates.Unsteady(m.Evidence))
	}
	evidence, err := json.Marshal(m.Evidence)
	if err != nil {
		return fmt.Errorf("writing evidence: %w", err)
	}
	verdict, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the verdict: %w", err)
	}
	for name, text := range map[string][]byte{
		"evidence.json": append(evidence, '\n'),
		"verdict.json":  append(verdict, '\n'),
		"report.md":     []byte(report.Markdown(v, report.Options{})),
		"build.log":     []byte(m.BuildLog),
		StoredPolicy:    []byte(policy),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("writing results: %w", err)
		}
	}
	for _, file := range m.Artifacts {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("keeping %s: %w", filepath.Base(file), err)
		}
	}
	return nil
}
