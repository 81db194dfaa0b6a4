package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// payload is 20 KB that compresses about as well as hex does: no better than GitHub's.
func payload() []byte {
	var b strings.Builder
	for i := 0; b.Len() < 20<<10; i++ {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		fmt.Fprintf(&b, `{"sha":"%s"}`, hex.EncodeToString(sum[:]))
	}
	return []byte(b.String()[:20<<10])
}

func BenchmarkAccept(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			j := open(b, Options{})
			ctx, body := b.Context(), payload()
			b.SetBytes(int64(len(body)))
			var n atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						if _, err := j.Accept(ctx, webhook.Delivery{ID: fmt.Sprint("d", i), Event: "push", Body: body}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "accepts/s")
		})
	}
}

// BenchmarkAcceptSteady sends at a fixed rate, whatever the answers do, and reports how long they took.
func BenchmarkAcceptSteady(b *testing.B) {
	for _, rate := range []int{200, 1000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			j := open(b, Options{})
			ctx, body := b.Context(), payload()
			took := make([]time.Duration, b.N)
			var wg sync.WaitGroup
			tick := time.NewTicker(time.Second / time.Duration(rate))
			defer tick.Stop()
			b.ResetTimer()
			for i := range b.N {
				due := <-tick.C
				wg.Go(func() {
					if _, err := j.Accept(ctx, webhook.Delivery{ID: fmt.Sprint("d", i), Event: "push", Body: body}); err != nil {
						b.Error(err)
					}
					took[i] = time.Since(due)
				})
			}
			wg.Wait()
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
			b.ReportMetric(took[len(took)-1].Seconds()*1e3, "max-ms")
		})
	}
}

func BenchmarkProcess(b *testing.B) {
	j := open(b, Options{})
	ctx, body := b.Context(), payload()
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			for i := g; i < b.N; i += 64 {
				if _, err := j.Accept(ctx, webhook.Delivery{ID: fmt.Sprint("d", i), Event: "push", Body: body}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 0
	b.ResetTimer()
	err := j.Process(ctx, func(context.Context, webhook.Delivery) error {
		if n++; n == b.N {
			cancel()
		}
		return nil
	})
	if err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}

// BenchmarkOpen opens and replays a journal of 100,000 events of 1 KB.
func BenchmarkOpen(b *testing.B) {
	const events = 100_000
	dir, ctx := b.TempDir(), b.Context()
	j, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	fillEvents(b, dir, events)
	for _, replay := range []bool{false, true} {
		b.Run(fmt.Sprintf("replay=%v", replay), func(b *testing.B) {
			for b.Loop() {
				j, err := Open(ctx, Options{Dir: dir})
				if err != nil {
					b.Fatal(err)
				}
				if replay {
					n := 0
					last, err := j.Replay(ctx, 0, func(Event) error { n++; return nil })
					if err != nil || n != events || last != events {
						b.Fatal(n, last, err)
					}
				}
				b.StopTimer()
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// fillEvents writes without fsync, which would take most of a minute.
func fillEvents(b *testing.B, dir string, n int) {
	srv, err := startServer(dir, false, 0, serverLog{log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	data := []byte(`"` + strings.Repeat("x", 1022) + `"`)
	for i := range n {
		m := nats.NewMsg(fmt.Sprint("events.run", i/8)) // a run has a handful of events
		m.Data = data
		m.Header.Set(headerKind, "measured")
		if _, err := js.PublishMsgAsync(m); err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
}

// BenchmarkReplayRun reads one run among many.
func BenchmarkReplayRun(b *testing.B) {
	for _, events := range []int{8, 120, 1000} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			j, ctx := open(b, Options{}), b.Context()
			last := uint64(0)
			for i := range events {
				var err error
				if last, err = j.Append(ctx, "run", last, "measured", strings.Repeat("x", 1000)); err != nil {
					b.Fatal(err)
				}
				if _, err := j.Append(ctx, fmt.Sprint("other", i), 0, "measured", strings.Repeat("x", 1000)); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				n := 0
				if _, err := j.ReplayRun(ctx, "run", func(Event) error { n++; return nil }); err != nil || n != events {
					b.Fatal(n, err)
				}
			}
		})
	}
}
