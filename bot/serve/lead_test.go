package serve_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/bot/keeper"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// Of two servers on one NATS server one leads, and says so; the other takes webhooks, and refuses runners and every write to
// GitHub until it leads itself.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	w := newWorld(t)
	options := func(data string) serve.Options {
		o := w.options()
		o.Data, o.NATS, o.LeadFor = data, serve.Words{nats.ClientURL()}, 6*time.Second
		o.Config.Runners, o.Secrets.Runners = []serve.RemoteRunner{{Name: "gpu1", Labels: []string{"cpu"}}}, map[string]string{"gpu1": "token"}
		return o
	}
	begin := func(data string) (*serve.Server, func() error) { return w.start(options(data)) }
	says := func(s *serve.Server, role string) {
		t.Helper()
		for {
			status, text := w.get(s.URL() + "/readyz")
			if status == http.StatusOK && strings.HasPrefix(text, "ready\n"+role) {
				return
			}
			if w.ctx.Err() != nil {
				t.Fatalf("/readyz answers %d %q, want %q", status, text, role)
			}
		}
	}
	ask := func(s *serve.Server) (int, string) {
		rq, err := http.NewRequestWithContext(w.ctx, http.MethodPost, s.URL()+"/runner/v1/lease", strings.NewReader(`{"runner": "gpu1", "labels": ["cpu"]}`))
		w.no(err)
		rq.Header.Set("Authorization", "Bearer token")
		return w.do(rq)
	}
	first, stopFirst := begin(t.TempDir())
	says(first, "leads: changes open 0,")
	data := t.TempDir()
	second, _ := begin(data)
	if _, err := serve.Start(w.ctx, options(data)); err == nil || !strings.Contains(err.Error(), "give each bot one of its own: data") {
		t.Errorf("two in one data folder: %v", err)
	}
	says(second, "stands by: another bot leads\n")
	if f := w.figures(second); f["kernelgate_leads"] != 0 || w.figures(first)["kernelgate_leads"] != 1 {
		t.Errorf("kernelgate_leads is %v of the one that stands by", f["kernelgate_leads"])
	}

	w.app.SetHook(second.URL()+"/webhook", secret)
	pr := w.propose("README.md", "Kernels, and nothing else.\n")
	if c := w.completed(pr.HeadSHA()); c.Conclusion != "success" {
		t.Errorf("the check concludes %s %q", c.Conclusion, c.Title)
	}
	if n := second.Bot.Counts().Handled; n != 0 {
		t.Errorf("the one that stands by has handled %d deliveries", n)
	}
	if status, text := ask(second); status != http.StatusServiceUnavailable || !strings.Contains(text, "another one has the jobs") {
		t.Errorf("a runner is answered %d %q", status, text)
	}
	if _, err := second.Client.CreateComment(w.ctx, "olga/kernels", pr.Number(), "Mine."); !errors.Is(err, journal.ErrNotLeading) {
		t.Errorf("a write by the one that stands by: %v", err)
	}

	if err := second.Bot.Press(w.ctx, change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()}, "A", "walt", pr.HeadSHA(), command.Cancel{}); !errors.Is(err, keeper.ErrStandsBy) {
		t.Errorf("a button at the one that stands by: %v", err)
	}

	w.no(stopFirst())
	says(second, "leads: changes open 1, with something left to do 0\n")
	// It may still be reading which jobs there are.
	for status, text := ask(second); status != http.StatusNoContent; status, text = ask(second) {
		if status != http.StatusServiceUnavailable || w.ctx.Err() != nil {
			t.Fatalf("a runner is answered %d %q", status, text)
		}
	}
	_, err = w.repo.Push("change", map[string]string{"README.md": "Kernels.\n\nMore.\n"}, "More")
	w.no(err)
	if c := w.completed(pr.HeadSHA()); c.Conclusion != "success" {
		t.Errorf("the check concludes %s %q", c.Conclusion, c.Title)
	}
}
