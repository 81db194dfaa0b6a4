package controller_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// A poster sends signed deliveries of 20 KB over loopback. They are of a kind that
// leads to nothing, so that what is measured is taking them in.
type poster struct {
	client    *http.Client
	url       string
	body      []byte
	signature string
	next      atomic.Int64
}

func newPoster(b *testing.B) *poster {
	w := newWorld(b, worldOptions{})
	var text strings.Builder
	for i := 0; text.Len() < 20<<10; i++ {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		text.WriteString(hex.EncodeToString(sum[:]))
	}
	p := &poster{url: "http://" + w.addr + "/webhook", body: []byte(`{"action":"completed","x":"` + text.String()[:20<<10] + `"}`)}
	p.signature = webhook.Sign([]byte(secret), p.body)
	p.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(p.client.CloseIdleConnections)
	return p
}

func (p *poster) send() error {
	r, err := http.NewRequest(http.MethodPost, p.url, bytes.NewReader(p.body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", "check_suite")
	r.Header.Set("X-GitHub-Delivery", fmt.Sprintf("00000000-0000-0000-0000-%012d", p.next.Add(1)))
	r.Header.Set("X-Hub-Signature-256", p.signature)
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusAccepted {
		return fmt.Errorf("answered %d", answer.StatusCode)
	}
	return nil
}

// BenchmarkDeliveries is signed deliveries that are answered once they are on
// disk, while the bot handles them.
func BenchmarkDeliveries(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			p := newPoster(b)
			var n atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for range callers {
				all.Go(func() {
					for n.Add(1) <= int64(b.N) {
						if err := p.send(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
			b.StopTimer()
		})
	}
}

// BenchmarkDeliveriesSteady sends 200 a second, whatever the answers do.
func BenchmarkDeliveriesSteady(b *testing.B) {
	p := newPoster(b)
	took := make([]time.Duration, b.N)
	tick := time.NewTicker(time.Second / 200)
	defer tick.Stop()
	var all sync.WaitGroup
	b.ResetTimer()
	for i := range b.N {
		due := <-tick.C
		all.Go(func() {
			if err := p.send(); err != nil {
				b.Error(err)
			}
			took[i] = time.Since(due)
		})
	}
	all.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
}

// BenchmarkWebhookToCheck is from opening a pull request at GitHub to the check
// that says that it is being looked at.
func BenchmarkWebhookToCheck(b *testing.B) {
	w := newWorld(b, worldOptions{})
	var took []time.Duration
	for i := range b.N {
		b.StopTimer()
		branch := fmt.Sprintf("b%d", i)
		_, err := w.repo.Push(branch, map[string]string{"kernels/scale/scale.c": fmt.Sprintf("// speed 1.%03d\n", i)}, branch)
		w.no(err)
		b.StartTimer()
		start := time.Now()
		pr, err := w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: branch, Head: branch})
		w.no(err)
		w.until("a check", func() bool {
			_, ok := w.repo.Check(pr.HeadSHA(), "kernelgate")
			return ok
		})
		took = append(took, time.Since(start))
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(took[len(took)-1].Seconds()*1e3, "max-ms")
}

// stopped is when a held measurement was last told to end.
var stopped atomic.Int64

// BenchmarkCancel is from a /cancel on GitHub to the moment at which the runner
// stops measuring, with the heartbeat of two seconds that servers have.
func BenchmarkCancel(b *testing.B) {
	w := newWorld(b, worldOptions{beat: 2 * time.Second})
	var worst time.Duration
	for i := range b.N {
		pr := w.propose(fmt.Sprintf("held%d", i), fmt.Sprintf("// HOLD speed 1.%03d\n", i), embedded.PROptions{})
		w.until("a running check", func() bool {
			c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
			return c.Status == "in_progress" && strings.Contains(c.Title, "round")
		})
		before := stopped.Load()
		start := time.Now()
		w.comment(pr, "walt", "/cancel")
		for stopped.Load() == before {
			<-time.After(time.Millisecond)
		}
		worst = max(worst, time.Since(start))
	}
	b.ReportMetric(worst.Seconds(), "worst-s")
}
