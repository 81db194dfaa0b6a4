package shell_test

import (
	"os/exec"
	"testing"

	"github.com/kernelgate/kernelgate/policies/shell"
)

// TestQuote checks that a shell returns a quoted text as one word, and runs none of it.
func TestQuote(t *testing.T) {
	for _, text := range []string{"plain-word_1.0", "", "two words", "x; touch /tmp/gone", "$(id)", "`id`", "a'b\"c", "new\nline", "#c", "*", "~", "!x", "\\"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '[%s]' "+shell.Quote(text)).Output()
		if err != nil || string(out) != "["+text+"]" {
			t.Errorf("%q comes back as %q, %v", text, out, err)
		}
	}
	if got := shell.Quote("kernels/scale"); got != "kernels/scale" {
		t.Errorf("a plain path is quoted: %s", got)
	}
}
