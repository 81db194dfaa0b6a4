package serve_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// until asks until an answer is right.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for !ok() {
		select {
		case <-w.ctx.Done():
			w.Fatal(what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A key that is revoked while the bot runs makes it unready, within two questions.
func TestKeyIsRevokedLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.AskEvery = 20 * time.Millisecond
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	w.no(w.app.ReplaceKey())
	w.until("the bot stays ready with a key that GitHub refuses", func() bool {
		status, text := w.get(s.URL() + "/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "does not accept the bot's credentials any more")
	})
	if f := w.figures(s); f["kernelgate_ready"] != 0 {
		t.Errorf("kernelgate_ready is %v", f["kernelgate_ready"])
	}
}

// A GitHub that fails leaves the bot ready to store webhooks. Its figures show the pull request that has no check, and for how
// long GitHub has been silent. Both end with the trouble.
func TestGitHubFailsLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.AskEvery = 20 * time.Millisecond
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	w.until("GitHub was not listed", func() bool { return w.figures(s)["kernelgate_last_reconciled_timestamp_seconds"] > 0 })
	w.hub.SetFaults(embedded.Faults{Rate: 1, Seed: 1, Kinds: []embedded.FaultKind{embedded.ServerError}})
	w.propose("kernels/scale/scale.c", "/* a comment */\n")
	w.until("a pull request without a check is not counted", func() bool {
		f := w.figures(s)
		return f["kernelgate_changes_unchecked_oldest_seconds"] > 0 && f["kernelgate_hub_silent_seconds"] > 0
	})
	if status, text := w.get(s.URL() + "/readyz"); status != http.StatusOK || !strings.Contains(text, "GitHub does not answer since") {
		t.Errorf("%d %s", status, text)
	}
	if f := w.figures(s); f["kernelgate_hub_last_write_timestamp_seconds"] != 0 || f["kernelgate_reconcile_interval_seconds"] != 300 {
		t.Errorf("last write %v, interval %v", f["kernelgate_hub_last_write_timestamp_seconds"], f["kernelgate_reconcile_interval_seconds"])
	}
	w.hub.SetFaults(embedded.Faults{})
	w.until("the figures stay after GitHub works again", func() bool {
		f := w.figures(s)
		return f["kernelgate_changes_unchecked_oldest_seconds"] == 0 && f["kernelgate_hub_silent_seconds"] == 0 && f["kernelgate_hub_last_write_timestamp_seconds"] > 0
	})
}
