package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// page is a scrape target whose metrics a test sets.
type page struct{ text atomic.Pointer[string] }

func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, *p.text.Load()) }

const (
	healthy = `kernelgate_deliveries_oldest_seconds 0
kernelgate_webhooks_total{code="503"} 3
kernelgate_leads 1
kernelgate_ready 1
kernelgate_queue_jobs{label="l4",state="waiting"} 2
kernelgate_runners{label="l4",state="idle"} 1
kernelgate_runners{label="l4",state="quarantined"} 0
kernelgate_data_free_bytes 50
kernelgate_data_size_bytes 100
kernelgate_journal_used_bytes{server="n1"} 10
kernelgate_journal_limit_bytes{server="n1"} 100
kernelgate_journal_server_answers{server="n1"} 1
kernelgate_journal_copies{state="behind",stream="EVENTS"} 0
kernelgate_bundles_missing_total 1
kernelgate_deliveries_dead 0
kernelgate_hub_shut{identity="olga"} 0
kernelgate_changes_unchecked_oldest_seconds 0
kernelgate_publications_waiting 0
kernelgate_hub_last_write_timestamp_seconds 1e10
kernelgate_hub_requests_total{class="write",outcome="refused"} 3
kernelgate_last_reconciled_timestamp_seconds 1e10
kernelgate_reconcile_interval_seconds 300
kernelgate_hub_silent_seconds 0
kernelgate_certificate_expiry_timestamp_seconds{key="nats_certificate_file",serial="1",subject="CN=bot"} 1e10
`
	troubled = `kernelgate_deliveries_oldest_seconds 400
kernelgate_webhooks_total{code="503"} %d
kernelgate_leads 0
kernelgate_ready 0
kernelgate_queue_jobs{label="l4",state="waiting"} 2
kernelgate_runners{label="l4",state="idle"} 0
kernelgate_runners{label="l4",state="quarantined"} 1
kernelgate_data_free_bytes 5
kernelgate_data_size_bytes 100
kernelgate_journal_used_bytes{server="n1"} 90
kernelgate_journal_limit_bytes{server="n1"} 100
kernelgate_journal_server_answers{server="n1"} 0
kernelgate_journal_copies{state="behind",stream="EVENTS"} 1
kernelgate_bundles_missing_total %d
kernelgate_deliveries_dead 1
kernelgate_hub_shut{identity="olga"} 1
kernelgate_changes_unchecked_oldest_seconds 1000
kernelgate_publications_waiting 0
kernelgate_hub_last_write_timestamp_seconds 0
kernelgate_hub_requests_total{class="write",outcome="refused"} %d
kernelgate_last_reconciled_timestamp_seconds 1
kernelgate_reconcile_interval_seconds 300
kernelgate_hub_silent_seconds 700
kernelgate_certificate_expiry_timestamp_seconds{key="nats_certificate_file",serial="1",subject="CN=bot"} 1e9
`
)

// TestOperateAlerts runs a real Prometheus with the shipped rules, accelerated to one second per
// minute. It watches two installations with made-up metrics, one that is away, and a real bot whose
// disk is filled. Each alert must fire only for the installation that is in trouble, and end with
// the trouble.
func TestOperateAlerts(t *testing.T) {
	ctx := operating(t)
	program := os.Getenv("KERNELGATE_PROMETHEUS")
	if program == "" {
		t.Fatal("KERNELGATE_PROMETHEUS is not the path of a Prometheus")
	}
	dir := t.TempDir()
	rules := string(slurp(t, "bot/install/alerts.yaml"))
	var names []string
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		names = append(names, m[1])
	}
	rules = regexp.MustCompile(`for: (\d+)m`).ReplaceAllString(rules, "for: ${1}s")
	rules = strings.NewReplacer("[5m]", "[5s]", "[15m]", "[15s]", "[1h]", "[20s]").Replace(rules)
	put(t, []byte(rules), dir, "alerts.yaml")

	var sick, well page
	set := func(p *page, text string) { p.text.Store(&text) }
	set(&sick, healthy)
	set(&well, healthy)
	sickServer, wellServer := httptest.NewServer(&sick), httptest.NewServer(&well)
	defer sickServer.Close()
	defer wellServer.Close()
	away, real := "127.0.0.1:"+freePort(t), freePort(t)
	var scrape strings.Builder
	for job, target := range map[string]string{"kernelgate-sick": sickServer.Listener.Addr().String(), "kernelgate-well": wellServer.Listener.Addr().String(), "kernelgate-away": away, "kernelgate-real": "127.0.0.1:" + real} {
		fmt.Fprintf(&scrape, "  - {job_name: %s, static_configs: [{targets: ['%s']}]}\n", job, target)
	}
	port := freePort(t)
	config := put(t, []byte("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yaml]\nscrape_configs:\n"+scrape.String()), dir, "prometheus.yml")
	prometheus := exec.CommandContext(ctx, program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:"+port, "--log.level=warn")
	prometheus.Stderr = os.Stderr
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = prometheus.Process.Kill() // it may have already ended
		_ = prometheus.Wait()         // it was killed
	}()
	api := "http://127.0.0.1:" + port + "/api/v1/alerts"

	// The real bot, on a disk of 64 MB.
	w, disk := newHub(t), filepath.Join(t.TempDir(), "disk")
	mount(t, "small", disk, "tmpfs", "size=64m")
	p := serveBotAt(t, real, w, disk, "")
	p.ready(ctx)
	quiet(ctx, t, api, "sick", "well", "real")

	begun := time.Now()
	stop := make(chan struct{})
	go func() { // keeps the counters of refusals growing
		for n := 3; ; n++ {
			set(&sick, fmt.Sprintf(troubled, n, n, n))
			select {
			case <-stop:
				set(&sick, healthy)
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	var accepted atomic.Int32
	var flood sync.WaitGroup
	for sender := range 12 { // a 503 takes five seconds, and the rule evaluates the rate over as long
		flood.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(sender) * 50 * time.Millisecond):
				}
				if sendLargeWebhook(p.url, fmt.Sprintf("large-%d-%d", sender, n)) == http.StatusAccepted {
					accepted.Add(1)
				}
			}
		})
	}
	synthetic := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "KernelgateScrapeFails" })
	fired(ctx, t, api, "sick", synthetic...)
	fired(ctx, t, api, "away", "KernelgateScrapeFails")
	bot := []string{"KernelgateWebhooksRefused", "KernelgateDown", "KernelgateNotReady", "KernelgateJournalFull"}
	fired(ctx, t, api, "real", bot...)
	took := time.Since(begun)
	if is := alerts(ctx, t, api)["well"]; len(is) > 0 {
		t.Errorf("an installation that is well has %v", is)
	}
	close(stop)
	flood.Wait()

	listener, err := net.Listen("tcp", away)
	if err != nil {
		t.Fatal(err)
	}
	back := &http.Server{Handler: &well}
	go back.Serve(listener)
	defer back.Close()
	p.kill()
	if err := syscall.Mount("small", disk, "tmpfs", syscall.MS_REMOUNT, "size=512m"); err != nil {
		t.Fatal(err)
	}
	p = serveBotAt(t, real, w, disk, "")
	p.ready(ctx)
	quiet(ctx, t, api, "sick", "well", "away", "real")
	for _, name := range names {
		where := "made-up figures"
		if slices.Contains(bot, name) {
			where += ", and a real bot on a full disk"
		}
		if name == "KernelgateScrapeFails" {
			where = "an installation that is away"
		}
		result(t, "%s fired and ended (%s)", name, where)
	}
	result(t, "all fired within %.0f s, with a minute of the rules as a second; a second installation next to it, which was well, had no alert; the bot refused webhooks after %d", took.Seconds(), accepted.Load())
	p.stop()
}

// TestOperateAlertRules runs promtool, which comes with Prometheus, on the rules whose time matters.
func TestOperateAlertRules(t *testing.T) {
	ctx := operating(t)
	dir := t.TempDir()
	put(t, slurp(t, "bot/install/alerts.yaml"), dir, "alerts.yaml")
	tests := put(t, slurp(t, "bot/install/testdata/alerts.yaml"), dir, "tests.yaml")
	promtool := filepath.Join(filepath.Dir(os.Getenv("KERNELGATE_PROMETHEUS")), "promtool")
	if out, err := exec.CommandContext(ctx, promtool, "test", "rules", tests).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// alerts returns the firing alerts, by installation.
func alerts(ctx context.Context, t *testing.T, api string) map[string][]string {
	t.Helper()
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, api, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(rq)
	if err != nil {
		return map[string][]string{"starting": nil} // not listening yet
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return map[string][]string{"starting": nil}
	}
	firing := map[string][]string{}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			job := strings.TrimPrefix(a.Labels["job"], "kernelgate-")
			firing[job] = append(firing[job], a.Labels["alertname"])
		}
	}
	return firing
}

// until polls the alerts until ok accepts them.
func until(ctx context.Context, t *testing.T, api, what string, ok func(map[string][]string) bool) {
	t.Helper()
	for {
		now := alerts(ctx, t, api)
		if _, starting := now["starting"]; !starting && ok(now) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: firing are %v", what, now)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// fired waits until each of these alerts has fired for an installation.
func fired(ctx context.Context, t *testing.T, api, job string, names ...string) {
	t.Helper()
	seen := map[string]bool{}
	until(ctx, t, api, fmt.Sprintf("%s should have fired for %s, seen %v", names, job, seen), func(now map[string][]string) bool {
		for _, name := range now[job] {
			seen[name] = true
		}
		return !slices.ContainsFunc(names, func(name string) bool { return !seen[name] })
	})
}

// quiet waits until no alert fires for these installations.
func quiet(ctx context.Context, t *testing.T, api string, jobs ...string) {
	t.Helper()
	until(ctx, t, api, fmt.Sprintf("%v should be quiet", jobs), func(now map[string][]string) bool {
		return !slices.ContainsFunc(jobs, func(job string) bool { return len(now[job]) > 0 })
	})
}
