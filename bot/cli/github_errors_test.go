package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// GitHub's runner follows commands on standard error, too. What a job cannot do is said without
// following words from outside.
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
