package controller_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A tally is of the writes that GitHub got, by what they were.
type tally struct {
	mu   sync.Mutex
	kept []string // what must be said
	live int      // how far a measurement is, which can be left out
}

// count takes a request for what it is, and refuses none.
func (c *tally) count(rq *http.Request) *http.Response {
	if rq.Method == http.MethodGet || !strings.Contains(rq.URL.Path, "/repos/") {
		return nil // a new token is no content
	}
	var body struct{ Name, Status string }
	if rq.GetBody != nil {
		if text, err := rq.GetBody(); err == nil {
			data, err := io.ReadAll(text)
			if err == nil {
				_ = json.Unmarshal(data, &body) // a comment's has other fields
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if rq.Method == http.MethodPatch && body.Status == "in_progress" {
		c.live++
		return nil
	}
	c.kept = append(c.kept, strings.Join([]string{rq.Method, rq.URL.Path[strings.Index(rq.URL.Path, "/repos/"):], body.Name, body.Status}, " "))
	return nil
}

func (c *tally) read() (kept []string, live int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.kept), c.live
}

// A verdict on a kernel is five writes at most, however long it was measured: the check
// that says that it is, its conclusion, the kernel's own check, the comment, and one to
// spare. A second kernel is one more check.
func TestWritesOfAVerdict(t *testing.T) {
	for _, kernels := range []int{1, 2} {
		t.Run(fmt.Sprintf("kernels=%d", kernels), func(t *testing.T) {
			var writes tally
			w := newWorld(t, worldOptions{retold: true, refuse: writes.count})
			source := map[string]string{"kernels/scale/scale.c": "// HOLD speed 1.3\n"}
			if kernels == 2 {
				_, err := w.repo.Push("main", map[string]string{
					"kernels/shift/kernel.yaml": strings.ReplaceAll(manifestYAML, "scale", "shift"), "kernels/shift/shift.c": "// speed 1.0\n", "kernels/shift/reference.c": "// the truth\n",
				}, "Shift")
				w.no(err)
				source["kernels/shift/shift.c"] = "// speed 1.4\n"
			}
			w.settle()
			if kept, _ := writes.read(); len(kept) > 0 {
				t.Fatalf("before anything was proposed:\n%s", strings.Join(kept, "\n"))
			}
			_, err := w.repo.Push("faster", source, "Faster")
			w.no(err)
			pr, err := w.repo.OpenPR(embedded.PROptions{Title: "Faster", Head: "faster", Author: "walt"})
			w.no(err)
			w.until("three words on how far it is", func() bool { _, live := writes.read(); return live >= 3 })
			close(w.hold)
			w.concluded(pr.HeadSHA(), "success")
			kept, live := writes.read()
			t.Logf("%d writes, and %d on how far it was:\n%s", len(kept), live, strings.Join(kept, "\n"))
			if want := kernels + 3; len(kept) != want || want > 5 {
				t.Errorf("%d writes for a verdict on %d kernels, want %d:\n%s", len(kept), kernels, want, strings.Join(kept, "\n"))
			}
			if checks := w.repo.Checks(pr.HeadSHA()); len(checks) != kernels+1 {
				t.Errorf("checks %+v", checks)
			}
			w.said(pr, "PASS")
			pushed := len(kept)
			_, err = w.repo.Push("faster", map[string]string{"kernels/scale/scale.c": "// speed 1.5\n"}, "Faster still")
			w.no(err)
			w.concluded(pr.HeadSHA(), "success")
			kept, _ = writes.read()
			if n := len(kept) - pushed; n > kernels+4 { // the comment's word that it is of another commit, at most
				t.Errorf("%d writes for a second verdict:\n%s", n, strings.Join(kept[pushed:], "\n"))
			}
		})
	}
}
