package serve_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/policies/usage"
)

const tooOld = `kernelgate v0.2.0 wrote an event of the kind "tuned", and this version, v0.1.0, does not know it: nothing of it was applied (upgrade this bot to v0.2.0 or a later version, or restore the backup of the journal from before the upgrade)`

// writeNewer stores an event as a newer version would.
func (w *world) writeNewer(o journal.Options, id change.ID) {
	w.Helper()
	o.Version = "v0.2.0"
	j, err := journal.Open(w.ctx, o)
	w.no(err)
	_, err = j.Append(w.ctx, id.String(), 0, "tuned", map[string]string{"variant": "fast"})
	w.no(errors.Join(err, j.Close()))
}

// A bot that reads an event of a newer version gives up the lead, says why it is not ready, stores webhooks and publishes
// nothing. A newer bot does the work.
func TestOutdatedBotStoresWebhooks(t *testing.T) {
	t.Parallel()
	nats, w := natsServer(t), newWorld(t)
	o := w.options()
	o.Data, o.NATS, o.LeadFor, o.Version = t.TempDir(), serve.Words{nats.ClientURL()}, time.Second, "kernelgate v0.1.0 4f1c0de"
	old, _ := w.start(o)
	w.no(old.Ready(w.ctx))
	w.writeNewer(journal.Options{URL: nats.ClientURL()}, change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: 7})
	for {
		status, text := w.get(old.URL() + "/readyz")
		if status == http.StatusServiceUnavailable && text == tooOld+"\n" && !old.Journal.Leads() {
			break
		}
		if w.ctx.Err() != nil {
			t.Fatalf("/readyz answers %d %q; it leads: %v", status, text, old.Journal.Leads())
		}
	}
	w.app.SetHook(old.URL()+"/webhook", secret)
	handled := old.Bot.Counts().Handled
	pr := w.propose("README.md", "Kernels, and nothing else.\n")
	w.no(w.hub.Quiet(w.ctx))
	for _, d := range w.app.Hook().Deliveries() {
		if d.StatusCode/100 != 2 {
			t.Errorf("the webhook %s was answered with %d", d.Event, d.StatusCode)
		}
	}
	if n := old.Bot.Counts().Handled; n != handled || len(w.repo.Checks(pr.HeadSHA())) > 0 {
		t.Errorf("the outdated bot has handled %d deliveries, and published %v", n-handled, w.repo.Checks(pr.HeadSHA()))
	}
}

// A bot with an embedded server exits with a message and the status of bad input, because a restart would read the same event.
func TestOutdatedBotEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.Version = "kernelgate v0.1.0"
	w.writeNewer(journal.Options{Dir: filepath.Join(o.Data, "journal")}, change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: 7})
	s, err := serve.Start(w.ctx, o)
	w.no(err)
	err = s.Wait()
	var mistake usage.Error
	if !errors.As(err, &mistake) || !strings.Contains(err.Error(), tooOld) {
		t.Errorf("%v", err)
	}
}
