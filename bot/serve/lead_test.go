package serve_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/controller"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// natsServer is one that ends with the test.
func natsServer(t testing.TB) *server.Server {
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	return nats
}

// A runner that knows only a bot which stands by is served by the one that leads, where that says how it is reached: nobody
// else is passed on, nothing is passed on twice, and when that bot is gone the runner is served where it asks.
func TestRunnerIsPassedOn(t *testing.T) {
	t.Parallel()
	nats, w := natsServer(t), newWorld(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	w.no(err)
	at := free.Addr().String()
	w.no(free.Close())
	begin := func(change func(*serve.Options)) (*serve.Server, func() error) {
		o := w.options()
		o.Data, o.NATS, o.LeadFor = t.TempDir(), serve.Words{nats.ClientURL()}, 6*time.Second
		o.Config.Runners, o.Secrets.Runners = []serve.RemoteRunner{{Name: "gpu1", Labels: []string{"cpu"}}}, map[string]string{"gpu1": "token"}
		change(&o)
		return w.start(o)
	}
	first, stopFirst := begin(func(o *serve.Options) { o.Listen, o.Advertise = at, "http://"+at })
	leads := func(s *serve.Server) {
		t.Helper()
		for !s.Journal.Leads() {
			if w.ctx.Err() != nil {
				t.Fatal("it never leads")
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	leads(first)
	second, _ := begin(func(*serve.Options) {})
	ask := func(token, passed string) (int, string) {
		rq, err := http.NewRequestWithContext(w.ctx, http.MethodPost, second.URL()+"/runner/v1/lease", strings.NewReader(`{"protocol": 3, "runner": "gpu1", "labels": ["cpu"], "wait_seconds": 0.1}`))
		w.no(err)
		rq.Header.Set("Authorization", "Bearer "+token)
		if passed != "" {
			rq.Header.Set("Kernelgate-Passed-On", passed)
		}
		return w.do(rq)
	}
	served := func() {
		t.Helper()
		// At first it does not know who leads, or does not know the jobs yet.
		for status, text := ask("token", ""); status != http.StatusNoContent; status, text = ask("token", "") {
			if status != http.StatusServiceUnavailable || w.ctx.Err() != nil {
				t.Fatalf("a runner is answered %d %q", status, text)
			}
		}
	}
	served()
	if second.Journal.Leads() || len(first.Runners.Runners()) == 0 || first.Runners.Runners()[0].LastSeen.IsZero() {
		t.Errorf("the bot that leads has not heard of the runner: %+v", first.Runners.Runners())
	}
	for name, c := range map[string]struct{ token, passed string }{"a stranger": {"another", ""}, "passed on before": {"token", "1"}} {
		if status, text := ask(c.token, c.passed); status != http.StatusServiceUnavailable || !strings.Contains(text, "on standby") {
			t.Errorf("%s is answered %d %q", name, status, text)
		}
	}
	w.no(stopFirst())
	leads(second)
	served()
}

// A request that was passed on to a bot whose host is gone, so that nothing closes the connection, ends when another bot leads.
func TestPassedOnUntilAnotherLeads(t *testing.T) {
	t.Parallel()
	nats, w := natsServer(t), newWorld(t)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	w.no(err)
	defer gone.Close()
	begin := func(advertise string) (*serve.Server, func() error) {
		o := w.options()
		o.NATS, o.LeadFor, o.Advertise = serve.Words{nats.ClientURL()}, 6*time.Second, advertise
		forAgents(&o, filepath.Join(w.TempDir(), "agents"))
		w.no(os.WriteFile(o.MCP.TokensFile, []byte("ann "+secretOf("ann")+" *\n"), 0o600))
		return w.start(o)
	}
	leads := func(s *serve.Server) {
		for !s.Journal.Leads() && w.ctx.Err() == nil {
			<-time.After(10 * time.Millisecond)
		}
	}
	first, stopFirst := begin("http://" + gone.Addr().String())
	leads(first)
	second, _ := begin("")
	for _, address := second.Journal.Leader(); address == "" && w.ctx.Err() == nil; _, address = second.Journal.Leader() {
		<-time.After(10 * time.Millisecond)
	}
	answered := make(chan int, 1)
	go func() {
		rq, err := toAgents(w.ctx, second.URL(), secretOf("ann"), []byte("{}"))
		if err != nil {
			t.Error(err)
			return
		}
		status, _ := w.do(rq)
		answered <- status
	}()
	c, err := gone.Accept()
	w.no(err)
	defer c.Close()
	w.no(stopFirst())
	select {
	case status := <-answered:
		if status != http.StatusServiceUnavailable {
			t.Errorf("it is answered %d", status)
		}
	case <-time.After(30 * time.Second):
		t.Error("it hangs")
	}
}

// Of two servers on one NATS server one leads, and says so; the other takes webhooks, and refuses runners and every write to
// GitHub until it leads itself.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	nats := natsServer(t)
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
		rq, err := http.NewRequestWithContext(w.ctx, http.MethodPost, s.URL()+"/runner/v1/lease", strings.NewReader(`{"protocol": 3, "runner": "gpu1", "labels": ["cpu"]}`))
		w.no(err)
		rq.Header.Set("Authorization", "Bearer token")
		return w.do(rq)
	}
	first, stopFirst := begin(t.TempDir())
	says(first, "leader: open changes 0,")
	data := t.TempDir()
	second, _ := begin(data)
	if _, err := serve.Start(w.ctx, options(data)); err == nil || !strings.Contains(err.Error(), "give each bot a separate folder: data") {
		t.Errorf("two in one data folder: %v", err)
	}
	says(second, "standby: a different bot is the leader\n")
	if f := w.figures(second); f["kernelgate_leads"] != 0 || w.figures(first)["kernelgate_leads"] != 1 {
		t.Errorf("kernelgate_leads is %v of the one that stands by", f["kernelgate_leads"])
	}

	w.app.SetHook(second.URL()+"/webhook", secret)
	pr := w.propose("README.md", "Kernels, and nothing else.\n")
	if c := w.completed(pr.HeadSHA()); c.Conclusion != "success" {
		t.Errorf("the check concludes %s %q", c.Conclusion, c.Title)
	}
	for !first.Bot.Listed() && w.ctx.Err() == nil {
		<-time.After(10 * time.Millisecond)
	}
	if second.Bot.Listed() {
		t.Error("the bot that stands by has listed the repositories")
	}
	if n := second.Bot.Counts().Handled; n != 0 {
		t.Errorf("the one that stands by has handled %d deliveries", n)
	}
	if status, text := ask(second); status != http.StatusServiceUnavailable || !strings.Contains(text, "a different bot is the leader") {
		t.Errorf("a runner is answered %d %q", status, text)
	}
	if _, err := second.Client.CreateComment(w.ctx, "olga/kernels", pr.Number(), "Mine."); !errors.Is(err, journal.ErrNotLeading) {
		t.Errorf("a write by the one that stands by: %v", err)
	}

	if err := second.Bot.SubmitCommand(w.ctx, change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()}, "A", "walt", pr.HeadSHA(), grammar.Cancel{}); !errors.Is(err, controller.ErrNotLeader) {
		t.Errorf("a button at the one that stands by: %v", err)
	}

	w.no(stopFirst())
	if first.Bot.Listed() {
		t.Error("the bot that does not lead any more still knows all repositories")
	}
	says(second, "leader: open changes 1, with work left 0\n")
	// It may still be reading which jobs there are.
	for status, text := ask(second); status != http.StatusNoContent; status, text = ask(second) {
		if status != http.StatusServiceUnavailable || w.ctx.Err() != nil {
			t.Fatalf("a runner is answered %d %q", status, text)
		}
	}
	_, err := w.repo.Push("change", map[string]string{"README.md": "Kernels.\n\nMore.\n"}, "More")
	w.no(err)
	if c := w.completed(pr.HeadSHA()); c.Conclusion != "success" {
		t.Errorf("the check concludes %s %q", c.Conclusion, c.Title)
	}
}
