package toolchaintest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Kept returns a compiler's output, cached between runs of the tests next to [Builds]. The words
// name everything that it depends on: the compiler with its version, its flags and the source.
func Kept(t testing.TB, compile func() []byte, words ...string) []byte {
	t.Helper()
	dir := filepath.Join(Builds(t), "..", "test-objects")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q", words))
	file := filepath.Join(dir, hex.EncodeToString(key[:]))
	if made, err := os.ReadFile(file); err == nil {
		return made
	}
	made := compile()
	// It appears as a whole or not at all: other tests may run at the same time, and any may be
	// killed.
	temp, err := os.CreateTemp(dir, "unfinished-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(temp.Name())
	if _, err = temp.Write(made); err == nil {
		err = temp.Close()
	}
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}
