package serve_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
)

// A side is a bot at work, with a GitHub of its own.
type side struct {
	*world
	server *serve.Server
	took   []time.Duration
}

// BenchmarkCluster holds a bot on a cluster of three, with three copies of everything, against one with the embedded server, in
// turns, so that what else the machine does counts for both. Run it with -benchtime 1x: it has a number of turns of its own.
// The servers are processes on this machine, which share its disk and cores.
func BenchmarkCluster(b *testing.B) {
	begin := func(cluster bool) *side {
		w := newWorld(b)
		o := w.options()
		o.Log = slog.New(slog.DiscardHandler)
		if cluster {
			nats := natstest.New(b, freePorts(b, 6))
			o.NATS, o.Replicas = w.awaitCluster(nats), nats.Len()
		}
		s, _ := w.start(o)
		w.no(s.Ready(w.ctx))
		return &side{world: w, server: s}
	}
	alone, cluster := begin(false), begin(true)
	inTurns := func(b *testing.B, turns int, do func(*side) time.Duration) (alone2, cluster2 time.Duration) {
		alone.took, cluster.took = nil, nil
		for range turns {
			for _, s := range []*side{alone, cluster} {
				s.took = append(s.took, do(s))
			}
		}
		return median(alone.took), median(cluster.took)
	}
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("deliveries/callers=%d", callers), func(b *testing.B) {
			for b.Loop() {
				const each = 128
				a, c := inTurns(b, 9, func(s *side) time.Duration { return s.deliver(each, callers) })
				b.ReportMetric(each/a.Seconds(), "alone/s")
				b.ReportMetric(each/c.Seconds(), "cluster/s")
				b.ReportMetric(a.Seconds()/c.Seconds(), "ratio")
			}
		})
	}
	b.Run("webhook-to-check", func(b *testing.B) {
		for _, s := range []*side{alone, cluster} {
			s.app.SetHook(s.server.URL()+"/webhook", secret)
		}
		for b.Loop() {
			a, c := inTurns(b, 15, (*side).check)
			b.ReportMetric(float64(a.Microseconds())/1000, "alone-ms")
			b.ReportMetric(float64(c.Microseconds())/1000, "cluster-ms")
			b.ReportMetric(c.Seconds()/a.Seconds(), "ratio")
		}
	})
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

var delivered atomic.Int64

// deliver sends webhooks, of a repository that nobody watches, from so many at once.
func (s *side) deliver(n, callers int) time.Duration {
	s.Helper()
	body := append([]byte(`{"ref": "refs/heads/x", "repository": {"id": 1, "full_name": "a/b"}, "padding": "`), bytes.Repeat([]byte("x"), 8<<10)...)
	body = append(body, `"}`...)
	signature := webhook.Sign([]byte(secret), body)
	left := make(chan int, n)
	for i := range n {
		left <- i
	}
	close(left)
	begun := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range left {
				r, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.server.URL()+"/webhook", bytes.NewReader(body))
				if err != nil {
					s.Error(err)
					return
				}
				r.Header = http.Header{"Content-Type": {"application/json"}, "X-Github-Event": {"push"}, "X-Hub-Signature-256": {signature}}
				r.Header.Set("X-GitHub-Delivery", fmt.Sprintf("00000000-0000-0000-0000-%012d", delivered.Add(1)))
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					s.Error(err)
					return
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusAccepted {
					s.Errorf("a delivery is answered %s", resp.Status)
				}
			}
		})
	}
	all.Wait()
	return time.Since(begun)
}

// check opens a pull request that touches no kernel, and waits until its check says so.
func (s *side) check() time.Duration {
	s.Helper()
	branch := fmt.Sprintf("change%d", delivered.Add(1))
	_, err := s.repo.Push(branch, map[string]string{"README.md": branch + "\n"}, "Change")
	s.no(err)
	s.no(s.hub.Quiet(s.ctx))
	begun := time.Now()
	pr, err := s.repo.OpenPR(embedded.PROptions{Author: "olga", Title: "Change", Head: branch})
	s.no(err)
	s.completed(pr.HeadSHA())
	return time.Since(begun)
}

// BenchmarkManyChanges starts a bot with 1,000 open changes and 100,000 past ones, and looks some up. Run it with
// -benchtime 5x: every start is one.
func BenchmarkManyChanges(b *testing.B) {
	const open, past = 1000, 100_000
	w := newWorld(b)
	o := w.options()
	o.Log = slog.New(slog.DiscardHandler)
	b.Logf("made in %v", timed(func() { w.no(fill(o.Data, func(p publisher) error { return manyChanges(p, open, past) })) }).Round(time.Millisecond))
	var took []time.Duration
	var rss float64
	for b.Loop() {
		t, m := w.startOnce(o)
		took, rss = append(took, t), m
	}
	b.ReportMetric(float64(median(took).Microseconds())/1000, "ms/ready")
	b.ReportMetric(rss, "MiB_idle")
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	lookups := map[string]func(n int) error{
		"µs/events": func(n int) error {
			_, err := s.Journal.ReplayRun(w.ctx, pullID(n).String(), func(journal.Event) error { return nil })
			return err
		},
		"µs/change":  func(n int) error { _, err := s.Ledger.Change(w.ctx, pullID(n)); return err },
		"µs/by-head": func(n int) error { _, err := s.Ledger.ByHead(w.ctx, 1, headOf(n)); return err },
	}
	for name, look := range lookups {
		var all []time.Duration
		for i := range 200 {
			all = append(all, timed(func() { w.no(look(1 + i*(open+past)/200)) }))
		}
		b.ReportMetric(float64(median(all).Nanoseconds())/1000, name)
	}
	var all []time.Duration
	for range 20 {
		all = append(all, timed(func() {
			rows, err := s.Ledger.OpenPulls(w.ctx, 1)
			if w.no(err); len(rows) != open {
				w.Fatalf("%d are open", len(rows))
			}
		}))
	}
	b.ReportMetric(float64(median(all).Microseconds())/1000, "ms/all-open")
}

func pullID(n int) change.ID { return change.ID{Kind: change.Pull, Repo: 1, Number: n} }
func headOf(n int) string    { return fmt.Sprintf("%040x", n) }

// manyChanges are of a repository that the bot is not at: it has nothing to do about them. Those that are open were seen, planned
// and published; those that are past have no plan, which would be read no more than the rest.
func manyChanges(publish publisher, open, past int) error {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := 1; n <= open+past; n++ {
		facts := change.Facts{
			Repo: "other/kernels", DefaultBranch: "main", Title: fmt.Sprintf("Change %d", n), Author: "olga", Base: "main", Open: true,
			Head: headOf(n), Updated: at.Add(time.Duration(n) * time.Second),
		}
		events := []change.Event{change.Seen{Facts: facts}, change.Planned{Plan: change.Plan{Key: facts.PlanKey(), Head: facts.Head, Check: "kernelgate", NoPolicy: true}}, change.Published{Complete: true}}
		if n > open {
			facts.Open = false
			events = []change.Event{change.Seen{Facts: facts}, change.Published{Complete: true}}
		}
		for _, e := range events {
			if err := publish(pullID(n), e); err != nil {
				return err
			}
		}
	}
	return nil
}
