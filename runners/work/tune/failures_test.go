package tune

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// TestFailuresTables shows what kernelgate history prints: one line for each machine code on each
// device, of one kernel.
func TestFailuresTables(t *testing.T) {
	file := filepath.Join(t.TempDir(), FailuresFile)
	add := func(kernel, device, same, name, why string) {
		t.Helper()
		f, err := OpenFailures(file, "problem")
		if err != nil {
			t.Fatal(err)
		}
		f.Kernel = kernel
		if err := f.Add(device, same, name, &arm.Refusal{Gate: gates.GateCorrectness, Text: why}); err != nil {
			t.Fatal(err)
		}
	}
	add("scale", "NVIDIA H200 sm_90", "0123456789abcdef", "default,TILE=64", "an early finding")
	add("scale", "NVIDIA L4 sm_89", "0123456789abcdef", "default,TILE=64", "wrong | at \x1b[31mN=7")
	add("other", "NVIDIA L4 sm_89", "0123456789abcdef", "default,TILE=64", "a different kernel")
	add("scale", "NVIDIA H200 sm_90", "0123456789abcdef", "default,TILE=64", "the last finding")
	add("scale", "NVIDIA H200 sm_90", "fedcba9876543210", "fast,FAST_EXP=1", "it hangs")
	all, err := ReadFailures(file)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "failures.txt", FailuresText(OfKernel(all, "scale"), 0))
	golden(t, "failures.md", FailuresMarkdown(OfKernel(all, "scale")))
	if FailuresText(nil, 0) != "" || FailuresMarkdown(nil) != "" {
		t.Error("no failures have a table")
	}
	// A line that was being written when a search was killed is left out.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, `{"kernel":"sc`...), 0o644); err != nil {
		t.Fatal(err)
	}
	if again, err := ReadFailures(file); err != nil || len(again) != len(all) {
		t.Errorf("%d failures of %d: %v", len(again), len(all), err)
	}
}
