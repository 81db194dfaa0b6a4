package serve_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A journal that is full refuses webhooks, and the bot says so wherever it is asked: load balancers stop sending, and the shipped
// alerts have something to go by.
func TestFullJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.MaxStore = 2 << 20
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	body := fmt.Sprintf(`{"zen": %q}`, strings.Repeat("full ", 40_000))
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte(body))
	refused := false
	for i := range 40 {
		rq, err := http.NewRequestWithContext(w.ctx, http.MethodPost, s.URL()+"/webhook", strings.NewReader(body))
		w.no(err)
		for key, value := range map[string]string{
			"Content-Type": "application/json", "X-GitHub-Event": "check_suite", "X-GitHub-Delivery": fmt.Sprintf("00000000-0000-0000-0000-%012d", i), "X-Hub-Signature-256": fmt.Sprintf("sha256=%x", sum.Sum(nil)),
		} {
			rq.Header.Set(key, value)
		}
		if status, _ := w.do(rq); status == http.StatusServiceUnavailable {
			refused = true
			break
		}
	}
	if !refused {
		t.Fatal("a full journal takes everything")
	}
	for {
		status, text := w.get(s.URL() + "/readyz")
		if status == http.StatusServiceUnavailable && strings.Contains(text, "takes no writes") {
			break
		}
		select {
		case <-w.ctx.Done():
			t.Fatalf("%d %s", status, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
	f := w.figures(s)
	if f["kernelgate_ready"] != 0 || f["kernelgate_journal_writable"] != 0 || f["kernelgate_journal_answers"] != 1 || f[`kernelgate_webhooks_total{code="503"}`] < 1 ||
		f[`kernelgate_journal_used_bytes{server="embedded"}`] < 0.8*f[`kernelgate_journal_limit_bytes{server="embedded"}`] {
		t.Errorf("ready %v, writable %v, answers %v, refused %v, used %v of %v", f["kernelgate_ready"], f["kernelgate_journal_writable"], f["kernelgate_journal_answers"],
			f[`kernelgate_webhooks_total{code="503"}`], f[`kernelgate_journal_used_bytes{server="embedded"}`], f[`kernelgate_journal_limit_bytes{server="embedded"}`])
	}
}
