// Package toolchaintest is what tests of several packages share that compile CUDA.
package toolchaintest

import (
	"os"
	"path/filepath"
	"testing"
)

// Builds is the folder in which the tests of this machine keep what they compiled, from one run to the next: the same sources
// for the same compiler are compiled once.
func Builds(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "kernelgate-cuda-test-builds")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
