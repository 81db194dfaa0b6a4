package pages_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// BenchmarkWatchers lets 500 clients watch one run, over separate connections. The run's progress
// changes with every poll. It reports the share of a core that the server, the clients and the
// transfer use together. The share must stay below a fifth.
func BenchmarkWatchers(b *testing.B) {
	const watchers, news = 500, 4
	w := newWorld(b)
	s := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 8}, "org/kernels", "Under way", "sdpa")
	job := s.Runs[0].Job
	w.write(s, change.Started{Job: job, Token: 1, Runner: "gpu1"})
	w.settle()
	source := &restless{world: w, job: job}
	done := make(chan struct{})
	h, err := (&pages.Server{Source: source, Access: pages.Everybody{}, Done: done}).Handler()
	w.no(err)
	server := httptest.NewServer(h)
	b.Cleanup(func() { close(done); server.Close() })
	client := &http.Client{Transport: &http.Transport{}}
	for b.Loop() {
		ctx, end := context.WithCancel(b.Context())
		var heard atomic.Int64
		var all sync.WaitGroup
		for range watchers {
			all.Go(func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/runs/"+job+"/live", nil)
				if err != nil {
					b.Error(err)
					return
				}
				answer, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				defer answer.Body.Close()
				for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
					if strings.HasPrefix(lines.Text(), "event: ") {
						heard.Add(1)
					}
				}
			})
		}
		until := func(n int64) {
			for heard.Load() < n {
				time.Sleep(5 * time.Millisecond)
			}
		}
		until(watchers) // all clients are connected
		from, before := heard.Load(), spent(b)
		began := time.Now()
		until(from + watchers*news)
		share := (spent(b) - before).Seconds() / time.Since(began).Seconds()
		end()
		all.Wait()
		b.ReportMetric(100*share, "%core")
		if share > 0.2 {
			b.Errorf("%d watchers take %.0f %% of a core", watchers, 100*share)
		}
	}
}

// restless is a source whose run progresses with each poll.
type restless struct {
	*world
	job  string
	step atomic.Int64
}

func (r *restless) Runners() []pages.Runner {
	return []pages.Runner{{Name: "gpu1", Here: true, Job: r.job, Progress: &runners.Event{Gate: gates.GatePerformance, Text: "mission", Done: int(r.step.Add(1)), Total: 1 << 20, Unit: "rounds"}}}
}
