package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/serve"
)

func TestWebhookLeadsToACheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.start(w.options())
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	pr := w.propose("README.md", "Kernels, and nothing else.\n")
	c := w.completed(pr.HeadSHA())
	if c.Conclusion != "success" || !strings.Contains(strings.ToLower(c.Title), "no kernel changed") {
		t.Errorf("the check concludes %s %q", c.Conclusion, c.Title)
	}
	w.no(w.hub.Quiet(w.ctx))
	for _, d := range w.app.Hook().Deliveries() {
		if d.StatusCode/100 != 2 {
			t.Errorf("%s %s was answered %d", d.Event, d.Action, d.StatusCode)
		}
	}
	// A publication is counted once GitHub's answer is here, which is after GitHub shows it.
	w.no(w.hub.WaitFor(w.ctx, func() bool { return w.figures(s)["kernelgate_publications_total"] > 0 }))
	figures := w.figures(s)
	for _, name := range []string{"kernelgate_deliveries_accepted_total", "kernelgate_deliveries_handled_total", "kernelgate_publications_total", "kernelgate_changes", "kernelgate_ready"} {
		if figures[name] < 1 {
			t.Errorf("%s is %v", name, figures[name])
		}
	}
}

// TestMissedWebhook: a pull request that nobody told of is found at the start.
func TestMissedWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pr := w.propose("README.md", "Kernels, and nothing else.\n")
	w.start(w.options())
	if c := w.completed(pr.HeadSHA()); c.Conclusion != "success" {
		t.Errorf("the check concludes %s %q", c.Conclusion, c.Title)
	}
}

func TestTokenPublishesAStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.CreateUser("gatekeeper")
	w.no(w.repo.Grant("gatekeeper", "write"))
	o := w.options()
	o.GitHub.AppID, o.GitHub.Repositories = 0, []string{"olga/kernels"}
	o.Secrets.Token = w.hub.CreateToken("gatekeeper")
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	w.repo.CreateHook(s.URL()+"/webhook", secret, "*")
	pr := w.propose("README.md", "Kernels, and nothing else.\n")
	w.no(w.hub.WaitFor(w.ctx, func() bool {
		list := w.repo.Statuses(pr.HeadSHA())
		return len(list) == 1 && list[0].Context == "kernelgate" && list[0].State == "success"
	}))
}

func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.start(w.options())
	w.no(s.Ready(w.ctx))
	body := `{"zen": "no"}`
	post := func(signature, path string) func() (int, string) {
		return func() (int, string) {
			r, err := http.NewRequestWithContext(w.ctx, http.MethodPost, s.URL()+path, strings.NewReader(body))
			w.no(err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-GitHub-Event", "push")
			r.Header.Set("X-GitHub-Delivery", "00000000-0000-0000-0000-000000000001")
			r.Header.Set("X-Hub-Signature-256", signature)
			resp, err := http.DefaultClient.Do(r)
			w.no(err)
			defer resp.Body.Close()
			return resp.StatusCode, ""
		}
	}
	get := func(path string) func() (int, string) { return func() (int, string) { return w.get(s.URL() + path) } }
	for _, tt := range []struct {
		name string
		do   func() (int, string)
		want int
		text string
	}{
		{"alive", get("/healthz"), 200, "ok\n"},
		{"ready", get("/readyz"), 200, "ready\n"},
		{"no page", get("/"), 404, ""},
		{"webhook is posted", get("/webhook"), 405, ""},
		{"signature by another secret", post(webhook.Sign([]byte("another"), []byte(body)), "/webhook"), 401, ""},
		{"no signature", post("", "/webhook"), 401, ""},
		{"good signature", post(webhook.Sign([]byte(secret), []byte(body)), "/webhook"), 202, ""},
		{"runner without a token", post("", "/runner/v1/lease"), 401, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, text := tt.do()
			if status != tt.want || tt.text != "" && text != tt.text {
				t.Errorf("answered %d %q, want %d %q", status, text, tt.want, tt.text)
			}
		})
	}
	figures := w.figures(s)
	for code, want := range map[string]float64{"202": 1, "401": 2, "405": 1} {
		if got := figures[`kernelgate_webhooks_total{code="`+code+`"}`]; got != want {
			t.Errorf("%v webhooks were answered %s, want %v", got, code, want)
		}
	}
}

// TestNotReady: a server that GitHub refuses says so, and goes on asking.
func TestNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.GitHub.AppID = 999999
	s, _ := w.start(o)
	var status int
	var text string
	for !strings.Contains(text, "GitHub answers") {
		w.no(w.ctx.Err())
		status, text = w.get(s.URL() + "/readyz")
	}
	if status != http.StatusServiceUnavailable || text != "GitHub answers 404\n" {
		t.Errorf("/readyz answers %d %q", status, text)
	}
	if status, _ := w.get(s.URL() + "/healthz"); status != 200 {
		t.Errorf("/healthz answers %d", status)
	}
}

// TestAllowList: an installation that refuses this machine's address is named where people
// look, and the server is ready for all others.
func TestAllowList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.start(w.options())
	w.no(s.Ready(w.ctx))
	refused := func() bool {
		status, text := w.get(s.URL() + "/readyz")
		if status != 200 || !strings.HasPrefix(text, "ready\n") {
			t.Fatalf("/readyz answers %d %q", status, text)
		}
		line := fmt.Sprintf("installation %d: an IP allow list refuses this machine (add", w.inst.ID())
		figure := w.figures(s)[fmt.Sprintf(`kernelgate_hub_shut{identity="installation %d"}`, w.inst.ID())]
		return strings.Contains(text, line) && figure == 1
	}
	ask := func() { _, _ = s.Client.Permission(w.ctx, "olga/kernels", "olga") }
	if ask(); refused() {
		t.Error("refused before anybody has")
	}
	for _, on := range []bool{true, false} {
		w.hub.SetAllowList("olga", on)
		for ask(); refused() != on; ask() { // the bot asks too, and an answer may be late
			w.no(w.ctx.Err())
		}
	}
}

// TestStop: after Wait nothing is left of the server, and it can be started
// again on the same data, without the scratch of one that was killed.
func TestStop(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	w.no(os.MkdirAll(filepath.Join(o.Data, "scratch", "kernelgate-plan-1"), 0o700)) // a killed server's
	before := runtime.NumGoroutine()
	for range 2 {
		s, stop := w.start(o)
		w.no(s.Ready(w.ctx))
		if left, err := os.ReadDir(filepath.Join(o.Data, "scratch")); err != nil || len(left) > 0 {
			t.Errorf("scratch of the server before: %v, %v", left, err)
		}
		address := strings.TrimPrefix(s.URL(), "http://")
		w.no(stop())
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			t.Error("somebody listens after the stop")
		}
		if _, err := os.Stat(filepath.Join(o.Data, "runner.sock")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for runtime.NumGoroutine() > before+5 { // the embedded GitHub's idle connections go in their own time
		if w.ctx.Err() != nil {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}

func TestStartRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	w.no(err)
	defer taken.Close()
	for _, tt := range []struct {
		name   string
		change func(*serve.Options)
		want   string
	}{
		{"no data folder", func(o *serve.Options) { o.Data = "" }, "set data"},
		{"data is a file", func(o *serve.Options) {
			o.Data = filepath.Join(o.Data, "file")
			w.no(os.WriteFile(o.Data, nil, 0o600))
		}, "choose one that this user may write"},
		{"address taken", func(o *serve.Options) { o.Listen = taken.Addr().String() }, "choose a free address"},
		{"long socket", func(o *serve.Options) { o.Runner.Socket = "/" + strings.Repeat("x", 120) }, "set a shorter runner.socket"},
		{"socket is a file", func(o *serve.Options) {
			o.Runner.Socket = filepath.Join(o.Data, "sock")
			w.no(os.WriteFile(o.Runner.Socket, nil, 0o600))
		}, "is not a socket"},
		{"runner without a token", func(o *serve.Options) {
			o.Config.Runners = []serve.RemoteRunner{{Name: "gpu1", Labels: []string{"l4"}}}
		}, "gpu1 has no token"},
		{"broken key", func(o *serve.Options) { o.Secrets.PrivateKey = []byte("key") }, "key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := w.options()
			tt.change(&o)
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			s, err := serve.Start(ctx, o)
			if err == nil {
				t.Fatalf("it started at %s", s.URL())
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error %q does not say %q", err, tt.want)
			}
		})
	}
}

// figures reads /metrics as a monitor would.
func (w *world) figures(s *serve.Server) map[string]float64 {
	w.Helper()
	status, text := w.get(s.URL() + "/metrics")
	if status != 200 {
		w.Fatalf("/metrics answers %d: %s", status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	w.no(err)
	figures := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			key := name
			if l := m.GetLabel(); len(l) > 0 {
				var pairs []string
				for _, p := range l {
					pairs = append(pairs, fmt.Sprintf("%s=%q", p.GetName(), p.GetValue()))
				}
				key += "{" + strings.Join(pairs, ",") + "}"
			}
			figures[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return figures
}

func TestMetricNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.start(w.options())
	w.no(s.Ready(w.ctx))
	figures := w.figures(s)
	page, err := os.ReadFile("../../docs/operate/monitor.md")
	w.no(err)
	for key := range figures {
		name, _, _ := strings.Cut(key, "{")
		if strings.HasPrefix(name, "kernelgate_") && !strings.Contains(string(page), "`"+name) {
			t.Errorf("docs/operate/monitor.md does not say what %s means", name)
		}
	}
	for _, name := range []string{
		"kernelgate_deliveries_dead", "kernelgate_deliveries_failed_total", "kernelgate_publication_retries_total", "kernelgate_publications_unseen_total", "kernelgate_ledger_lag_events", "kernelgate_ledger_seq",
		"kernelgate_hub_retries_total", "kernelgate_hub_cache_hits_total", "kernelgate_hub_cache_bytes", "process_resident_memory_bytes", "go_goroutines",
		`kernelgate_hub_requests_total{class="read",outcome="ok"}`,
	} {
		if _, ok := figures[name]; !ok {
			t.Errorf("/metrics lacks %s", name)
		}
	}
	if lag := figures["kernelgate_ledger_lag_events"]; lag != 0 {
		t.Errorf("the ledger lags by %v events with nothing to do", lag)
	}
}
