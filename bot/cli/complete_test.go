package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestCompletion checks that kernels, variants and policies are offered, and that every shell has a
// script.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"__complete", "check", ""}, "sdpa_cpu\n"},
		{[]string{"__complete", "check", "sdpa_fp8", "--variant", ""}, "choose\n"},
		{[]string{"__complete", "check", "--policy", ""}, "default\n"},
		{[]string{"__complete", "judge", "e.json", "--format", ""}, "markdown\n"},
		{[]string{"__complete", "check", "--run"}, "--runner"},
		{[]string{"completion", "bash"}, "kernelgate"},
		{[]string{"completion", "zsh"}, "kernelgate"},
		{[]string{"completion", "fish"}, "kernelgate"},
	} {
		var out, errs bytes.Buffer
		if status := Run(c.args, &out, &errs); status != exitPass || !strings.Contains(out.String(), c.want) {
			t.Errorf("%q: status %d, without %q:\n%.300s%s", c.args, status, c.want, out.String(), errs.String())
		}
	}
}
