package actions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/check"
)

// write keeps what a kernel's run leaves behind, for the workflow to upload.
func (s *session) write(kernel string, out runners.Measured, v *gates.Verdict) error {
	if err := s.makeResults(); err != nil {
		return err
	}
	dir := filepath.Join(s.results, folderName(kernel))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	return check.WriteResults(dir, out, v)
}

// folderName is a kernel's name as a folder. Where two kernels bear one name, it has the
// path of the kernel in it.
func folderName(kernel string) string {
	return strings.NewReplacer("/", "-", " ", "-").Replace(kernel)
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
