// Package toolchaintest is for tests of several packages that compile CUDA.
package toolchaintest

import (
	"os"
	"path/filepath"
	"testing"
)

// Builds is the folder in which tests keep their builds between runs, next to the compilers that
// make setup fetched: the same sources are compiled once for each compiler.
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
