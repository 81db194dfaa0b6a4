package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// A bundle that the store does not find becomes no verdict: the job is handed out again, to be measured once the bundle is there,
// and the runner takes another one meanwhile.
func TestMissingBundleIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Second)
	content := exampleBundle(t)
	digest := fmt.Sprintf("%x", sha256.Sum256(content))
	w.put("early", digest, "cpu")
	w.run("ann", quick, func(c *agent.Config) { c.Labels = []string{"cpu"} })
	for w.server.BundlesMissing() == 0 {
		if w.ctx().Err() != nil {
			t.Fatal("nobody asked for the bundle")
		}
		<-time.After(time.Millisecond)
	}
	if _, err := w.journal.Bundles.Put(w.ctx(), digest, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	got := next(t, w.results.finished, "the result")
	if got.job != "early" || got.token < 2 || got.evidence.Fault != "" {
		t.Errorf("%+v: %s", got, got.evidence.Fault)
	}
	if w.unfinished() > 1 || len(w.results.finished) > 0 {
		t.Errorf("%d jobs are left, and %d more results", w.unfinished(), len(w.results.finished))
	}
}

// A bundle that was kept as long as bundles are is gone for good: the runner is told so.
func TestExpiredBundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.server.Now = func() time.Time { return time.Now().Add(journal.KeepBundles) }
	w.put("expired", "none", "cpu")
	w.run("ann", func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error) {
		return runners.Measured{}, fmt.Errorf("%d: was measured all the same", http.StatusTeapot)
	}, func(c *agent.Config) { c.Labels = []string{"cpu"} })
	if got := next(t, w.results.finished, "the result"); got.evidence.Fault != "fetching the bundle: the server answers 404: the bundle of the job is no longer stored (rebench to create it again)" {
		t.Errorf("fault %q", got.evidence.Fault)
	}
}
