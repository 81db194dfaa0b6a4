package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeRefusals(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kernelgate.yaml")
	if err := os.WriteFile(file, []byte("github: {app_id: 7, private_key_file: "+dir+"/gone, webhook_secret_file: "+dir+"/gone}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("hidden"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CUDA_HOME", dir)
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no such file", []string{"serve", "--config", filepath.Join(dir, "none.yaml")}, "name a different file with --config"},
		{"secret as a flag", []string{"serve", "--config", file, "--github-token", "hidden"}, "use --github-token-file"},
		{"mistake in a flag", []string{"serve", "--config", file, "--listen", "eighty"}, "--listen: \"eighty\" is not an address"},
		{"secret files that are not there", []string{"serve", "--config", file, "--check-config"}, "github.private_key_file: reading it"},
		{"runner without a server", []string{"runner"}, "--server and --token-file are required"},
		{"runner that builds without a compiler", []string{"runner", "--builds", "--server", "unix:///none", "--token-file", token, "--name", "b"}, "--builds: CUDA_HOME="},
		{"runner without its token", []string{"runner", "--server", "unix:///none", "--token-file", filepath.Join(dir, "none")}, "--token-file: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if status := Run(tt.args, &out, &errs); status != exitInput {
				t.Errorf("the status is %d, want %d", status, exitInput)
			}
			if !strings.Contains(errs.String(), tt.want) || strings.Contains(errs.String(), "hidden") {
				t.Errorf("it says %q, and should say %q", errs.String(), tt.want)
			}
		})
	}
}
