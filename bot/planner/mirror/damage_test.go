package mirror_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/bot/planner/mirror"
)

// TestDamagedMirror checks that a mirror with empty files, as after a power cut, is fetched again
// as a whole.
func TestDamagedMirror(t *testing.T) {
	_, repo, o := world(t)
	for name, pattern := range map[string]string{"HEAD": "HEAD", "a ref": "refs/heads/main", "its objects": "objects/*/*"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := (&mirror.Store{Dir: dir, Origin: o}).Fetch(t.Context(), "olga/kernels"); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "olga/kernels.git", pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("%v, %v", files, err)
			}
			for _, file := range files {
				if err := os.Chmod(file, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(file, 0); err != nil {
					t.Fatal(err)
				}
			}
			got, err := (&mirror.Store{Dir: dir, Origin: o}).Fetch(t.Context(), "olga/kernels")
			if err != nil {
				t.Fatal(err)
			}
			if text, err := got.Read(t.Context(), repo.Head("main"), "a.cu"); err != nil || string(text) != "one\n" {
				t.Errorf("a.cu is %q: %v", text, err)
			}
		})
	}
}
