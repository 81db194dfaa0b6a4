package actions

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/runners/agent"
)

// write keeps what a kernel's run leaves behind, for the workflow to upload.
func (s *session) write(kernel string, out agent.Outcome, v *gates.Verdict) error {
	if err := s.makeResults(); err != nil {
		return err
	}
	dir := filepath.Join(s.results, filepath.Base(kernel))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	evidence, err := json.Marshal(out.Evidence)
	if err != nil {
		return fmt.Errorf("writing evidence: %w", err)
	}
	verdict, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the verdict: %w", err)
	}
	files := map[string][]byte{
		"evidence.json": append(evidence, '\n'), "verdict.json": append(verdict, '\n'),
		"report.md": []byte(report.Markdown(v, report.Options{})), "build.log": []byte(out.BuildLog),
	}
	for _, artifact := range out.Artifacts {
		if files[filepath.Base(artifact)], err = os.ReadFile(artifact); err != nil {
			return fmt.Errorf("keeping %s: %w", filepath.Base(artifact), err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("writing results: %w", err)
		}
	}
	return nil
}

// makeResults makes a folder that no earlier job has written to.
func (s *session) makeResults() error {
	if s.results != "" {
		return nil
	}
	root := s.Results
	if root == "" {
		root = s.env.temp
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	dir, err := os.MkdirTemp(root, "kernelgate-results-")
	if err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	s.results, err = filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	return os.Chmod(dir, 0o755)
}
