package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/work/tune"
)

// TestServeSearch checks that the page of a search is at the printed address, and that it shows the log as
// far as it is written.
func TestServeSearch(t *testing.T) {
	text, err := os.ReadFile("runners/backend/cuda/testdata/h200/tune/matmul-search.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(share float64) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, tune.LogFile), text[:int(share*float64(len(text)))], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(0.5)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := lineWriter{make(chan string, 1)}
	if err := serveSearch(ctx, "127.0.0.1:0", dir, out); err != nil {
		t.Fatal(err)
	}
	_, address, found := strings.Cut(strings.TrimSpace(<-out.line), "the search is at ")
	if !found {
		t.Fatal("nothing says where the page is")
	}
	for share, want := range map[float64]string{0.5: "Not ended.", 1: "Nothing is proven better than the incumbent"} {
		write(share)
		answer, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s answers %s, without %q (%v)", address, answer.Status, want, err)
		}
	}
	if err := serveSearch(ctx, "127.0.0.1:0", t.TempDir(), io.Discard); err == nil {
		t.Error("a folder without a log has a page")
	}
}
