// Package results writes what one kernel's way through the gates leaves behind. It
// does not choose the folder, and asks nothing of it: a caller who wants all files
// or none moves the folder into place afterwards.
package results

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Files are the contents of a results folder.
type Files struct {
	Evidence  *gates.Evidence
	Verdict   *gates.Verdict
	BuildLog  string
	Artifacts []string // files to copy; their base names are their names
}

// Write fills a folder that is there: evidence.json, verdict.json, report.md,
// build.log and the artifacts.
func (f Files) Write(dir string) error {
	evidence, err := json.Marshal(f.Evidence)
	if err != nil {
		return fmt.Errorf("writing evidence: %w", err)
	}
	verdict, err := json.MarshalIndent(f.Verdict, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the verdict: %w", err)
	}
	for name, text := range map[string][]byte{
		"evidence.json": append(evidence, '\n'),
		"verdict.json":  append(verdict, '\n'),
		"report.md":     []byte(report.Markdown(f.Verdict, report.Options{})),
		"build.log":     []byte(f.BuildLog),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("writing results: %w", err)
		}
	}
	for _, file := range f.Artifacts {
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
