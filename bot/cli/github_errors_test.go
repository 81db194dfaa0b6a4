package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrorsOfAJobAreNoCommands checks that errors on standard error contain no workflow commands
// from outside texts. GitHub's runner executes commands there, too.
func TestErrorsOfAJobAreNoCommands(t *testing.T) {
	for name, event := range map[string]string{"at the start of a line": "gone\n::error::forged", "within a line": "gone ##[error]forged"} {
		t.Setenv("GITHUB_EVENT_NAME", "pull_request")
		t.Setenv("GITHUB_EVENT_PATH", filepath.Join(t.TempDir(), event))
		t.Setenv("GITHUB_REPOSITORY", "olga/kernels")
		t.Setenv("GITHUB_TOKEN", "ghs_x")
		var stdout, stderr bytes.Buffer
		if code := Run([]string{"check", "--github"}, &stdout, &stderr); code != exitInput {
			t.Errorf("%s: exit status %d, want %d", name, code, exitInput)
		}
		said := stdout.String() + stderr.String()
		if strings.Contains(said, "\n::") || strings.Contains(said, "##[") || !strings.Contains(said, "forged") || !strings.Contains(said, "GITHUB_EVENT_PATH names its file") {
			t.Errorf("%s: it says %q", name, said)
		}
	}
}
