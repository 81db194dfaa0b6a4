package serve_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	natsio "github.com/nats-io/nats.go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"gopkg.in/yaml.v3"

	dto "github.com/prometheus/client_model/go"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
)

// freePorts are for servers that are about to listen.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports
}

// awaitCluster returns when a cluster has its first leaders, which takes seconds: before that a
// server refuses to start on it.
func (w *world) awaitCluster(nats *natstest.Servers) serve.Words {
	w.Helper()
	o := journal.Options{URL: nats.URLs, Replicas: nats.Len()}
	if nats.PEM != "" {
		o.NATS = append(o.NATS, natsio.RootCAs(nats.PEM))
	}
	for {
		j, err := journal.Open(w.ctx, o)
		if err == nil {
			w.no(j.Close())
			return strings.Split(nats.URLs, ",")
		}
		select {
		case <-w.ctx.Done():
			w.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// served is what /metrics has now, as a monitor stores it.
func (w *world) served(s *serve.Server) series {
	w.Helper()
	_, text := w.get(s.URL() + "/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	w.no(err)
	all := series{"up": {"instance", "job", "namespace"}}
	for name, family := range families {
		labels := []string{"instance", "job", "namespace"} // by Prometheus itself, and by Kubernetes
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
		}
		slices.Sort(labels)
		labels = slices.Compact(labels)
		if family.GetType() == dto.MetricType_HISTOGRAM {
			all[name+"_bucket"], all[name+"_sum"], all[name+"_count"] = append(labels, "le"), labels, labels
			continue
		}
		all[name] = labels
	}
	return all
}

// Every series and label that the dashboard and the alerts ask for is one that a bot on a
// cluster serves, with a runner that has measured, a job that nobody takes, and an account that
// is shut.
func TestWatching(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nats := natstest.NewTLS(t, freePorts(t, 6))
	o := w.options()
	o.NATSRoots, o.NATSCert, o.NATSKey = nats.PEM, nats.PEM, nats.PEM
	o.Config.Runners = []serve.RemoteRunner{{Name: "cpu1", Labels: []string{"cpu"}}}
	o.Secrets.Runners = map[string]string{"cpu1": "a token of sixteen or more"}
	o.NATS, o.Replicas = w.awaitCluster(nats), nats.Len()
	o.LeadFor = time.Minute // on a busy machine a lead of 4 s is lost, and with it the figures since it was taken
	monitor := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, `{"storage": 8, "config": {"max_storage": 10}}`)
	}))
	defer monitor.Close()
	o.Monitors = serve.Words{monitor.URL}
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	w.runScripted(s, "cpu1", o.Secrets.Runners["cpu1"])
	w.app.SetHook(s.URL()+"/webhook", secret)
	pr := w.propose("kernels/scale/scale.c", "/* other */ void scale();\n")
	w.completed(pr.HeadSHA())
	_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": strings.Replace(policy, "devices: [cpu]", "devices: [h200]", 1)}, "Elsewhere")
	w.no(err)
	_, err = w.repo.Push("change", map[string]string{"kernels/scale/scale.c": "/* another */ void scale(int);\n"}, "Once more")
	w.no(err)
	await := func(what string, ok func(map[string]float64) bool) {
		t.Helper()
		for f := w.figures(s); !ok(f); f = w.figures(s) {
			select {
			case <-w.ctx.Done():
				t.Fatalf("%s: %v", what, f)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	await("a job waits that no runner takes", func(f map[string]float64) bool {
		return f[`kernelgate_queue_jobs{label="h200",state="waiting"}`] == 1 && f[`kernelgate_runners{label="cpu",state="idle"}`] == 1
	})
	await("all deliveries are handled, and all copies there", func(f map[string]float64) bool {
		return f["kernelgate_deliveries_oldest_seconds"] == 0 && f[`kernelgate_journal_copies{state="current",stream="EVENTS"}`] == 3
	})
	if f := w.figures(s); f["kernelgate_data_free_bytes"] <= 0 || f["kernelgate_data_size_bytes"] <= f["kernelgate_data_free_bytes"] || f["kernelgate_journal_answers"] != 1 {
		t.Errorf("free %v of %v, the journal answers: %v", f["kernelgate_data_free_bytes"], f["kernelgate_data_size_bytes"], f["kernelgate_journal_answers"])
	}
	for _, key := range []string{"nats", "nats_ca_file", "nats_certificate_file"} {
		at := w.figures(s)[`kernelgate_certificate_expiry_timestamp_seconds{key="`+key+`",serial="1",subject="CN=natstest"}`]
		if left := time.Until(time.Unix(int64(at), 0)); left < 50*time.Minute || left > time.Hour {
			t.Errorf("the certificate of %s expires in %s, not in an hour", key, left)
		}
	}
	all := w.served(s) // before the account is shut: then GitHub tells nothing more
	w.hub.SetAllowList("olga", true)
	for all["kernelgate_hub_shut"] == nil {
		_, _ = s.Client.Permission(w.ctx, "olga/kernels", "olga") // it is refused
		if now := w.served(s); now["kernelgate_hub_shut"] != nil {
			all["kernelgate_hub_shut"] = now["kernelgate_hub_shut"]
		}
		w.no(w.ctx.Err())
	}
	for where, expr := range askedFor(t) {
		if err := all.check(expr); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// askedFor is every expression of the dashboard and the alerts, by where it stands. The alerts are
// held to their own rules: each waits before it calls anybody, and says what to do.
func askedFor(t *testing.T) map[string]string {
	t.Helper()
	asked := map[string]string{}
	file, err := os.Open("../install/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var alerts struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr string
				For         model.Duration
				Labels      struct{ Severity string }
				Annotations struct{ Summary, Description string }
			}
		}
	}
	strictly := yaml.NewDecoder(file)
	strictly.KnownFields(true)
	if err := strictly.Decode(&alerts); err != nil {
		t.Fatal(err)
	}
	for _, group := range alerts.Groups {
		for _, r := range group.Rules {
			if r.Alert == "" || asked[r.Alert] != "" || time.Duration(r.For) < time.Minute || r.Labels.Severity != "page" && r.Labels.Severity != "ticket" || r.Annotations.Summary == "" || r.Annotations.Description == "" {
				t.Errorf("the alert %+v lacks something", r)
			}
			asked[r.Alert] = r.Expr
		}
	}
	text, err := os.ReadFile("../install/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range board.Panels {
		if seen[p.ID] || len(p.Targets) == 0 {
			t.Errorf("the panel %q has the id of another, or shows nothing", p.Title)
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			asked[p.Title+": "+target.Expr] = target.Expr
		}
	}
	// One Prometheus may watch several installations: the one must not hide the other's trouble.
	aggregates := regexp.MustCompile(`\b(sum|max|min|avg|count)\b( by \(job, namespace\b)?`)
	for where, expr := range asked {
		for _, m := range aggregates.FindAllStringSubmatch(expr, -1) {
			if m[2] == "" {
				t.Errorf("%s: %q adds up several installations", where, expr)
			}
		}
	}
	if len(asked) < 30 {
		t.Errorf("they ask for %d things in all", len(asked))
	}
	return asked
}
