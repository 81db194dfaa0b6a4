package check

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/policies/usage"
)

// TestMistakeLeavesNothingBehind checks that a mistake of the user leaves nothing in the folder for
// temporary files.
func TestMistakeLeavesNothingBehind(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-qm", "x"}} {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@t.invalid"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	err := Run(context.Background(), Options{Dir: dir, Base: "main", Kernels: []string{"absent"}, Now: time.Now}, nil, func(Result) error { return nil })
	if bad := (usage.Error{}); !errors.As(err, &bad) {
		t.Fatalf("got %v", err)
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("%v (%v) are left", left, err)
	}
}
