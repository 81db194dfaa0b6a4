package jobs

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
)

// BenchmarkFleet measures the work of a leader for 1,000 runners, on an embedded journal: it hands out a job while 10,000
// jobs wait, takes a heartbeat, and forecasts when each job begins. Run it with -benchtime 1x.
func BenchmarkFleet(b *testing.B) {
	const runners, waiting = 1000, 10_000
	w := open(b, options{LeaseFor: time.Hour})
	ctx := context.Background()
	all := func(n int, do func(i int) error) time.Duration {
		b.Helper()
		begun := time.Now()
		next := make(chan int)
		var workers sync.WaitGroup
		for range 64 {
			workers.Go(func() {
				for i := range next {
					if err := do(i); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for i := range n {
			next <- i
		}
		close(next)
		workers.Wait()
		return time.Since(begun)
	}
	for round := 0; b.Loop(); round++ {
		enqueued := all(runners+waiting, func(i int) error {
			return w.Enqueue(ctx, Job{Bundle: "bundle", Job: scheduler.Job{
				ID: fmt.Sprintf("job-%d-%d", round, i), Labels: []string{"l4"}, Kernel: "k", Class: scheduler.PullRequest, Repo: fmt.Sprint("owner/", i%100), Author: fmt.Sprint("a", i%37),
			}})
		})
		leases := make([]*Lease, runners)
		leased := all(runners, func(i int) (err error) {
			leases[i], err = w.Lease(ctx, fmt.Sprint("runner-", i), "l4")
			return err
		})
		beaten := all(10*runners, func(i int) error {
			l := leases[i%runners]
			held, err := w.Attach(ctx, l.ID, l.Token, fmt.Sprint("runner-", i%runners))
			if err != nil {
				return err
			}
			return held.Extend(ctx)
		})
		begun := time.Now()
		if n := len(w.Positions()); n == 0 {
			b.Error("no job has a position")
		}
		b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "ms/forecast")
		b.ReportMetric((runners+waiting)/enqueued.Seconds(), "enqueued/s")
		b.ReportMetric(runners/leased.Seconds(), "leases/s")
		b.ReportMetric(10*runners/beaten.Seconds(), "heartbeats/s")
	}
}
