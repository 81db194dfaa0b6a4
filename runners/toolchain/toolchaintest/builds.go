// Package toolchaintest is what tests of several packages share that compile CUDA.
package toolchaintest

import (
	"os"
	"path/filepath"
	"testing"
)

// Builds is the folder in which the tests keep what they compiled, from one run to the next, beside the compilers that
// make setup fetched: the same sources for the same compiler are compiled once.
func Builds(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "kernelgate", "test-builds")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
