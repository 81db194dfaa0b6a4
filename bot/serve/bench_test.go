package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// BenchmarkStart measures from nothing to ready, with no history and with 100,000
// events that the ledger has. Run it with -benchtime=10x: every start is one.
func BenchmarkStart(b *testing.B) {
	w := newWorld(b)
	full := b.TempDir()
	b.Logf("history of 100,000 events made in %v", timed(func() { w.no(fill(full, func(p publisher) error { return closedChanges(p, 100_000) })) }).Round(time.Millisecond))
	var empty time.Duration
	for _, bb := range []struct {
		name string
		data string
	}{{"empty", b.TempDir()}, {"100000", full}} {
		b.Run(bb.name, func(b *testing.B) {
			o := w.options()
			o.Data, o.Log = bb.data, slog.New(slog.DiscardHandler)
			w.startOnce(o) // the first one makes the streams, or the ledger
			var took time.Duration
			var rss float64
			for b.Loop() {
				t, m := w.startOnce(o)
				took, rss = took+t, m
			}
			mean := took / time.Duration(b.N)
			if bb.name == "empty" {
				empty = mean
			} else if empty > 0 {
				b.ReportMetric(float64(mean)/float64(empty), "x_empty")
			}
			b.ReportMetric(float64(mean.Microseconds())/1000, "ms/ready")
			b.ReportMetric(rss, "MiB_idle")
		})
	}
}

func timed(do func()) time.Duration {
	begun := time.Now()
	do()
	return time.Since(begun)
}

// startOnce starts a server, and returns how long it took to be ready and what
// the process then holds.
func (w *world) startOnce(o serve.Options) (time.Duration, float64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begun := time.Now()
	s, err := serve.Start(ctx, o)
	w.no(err)
	w.no(s.Ready(ctx))
	took := time.Since(begun)
	runtime.GC()
	debug.FreeOSMemory()
	rss := residentMiB()
	cancel()
	w.no(s.Wait())
	return took, rss
}

func residentMiB() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// A publisher writes an event down.
type publisher func(change.ID, change.Event) error

// fill makes a journal, and its ledger. The journal's own server would put each event on disk
// before the next, which is not what is measured here.
func fill(data string, write func(publisher) error) error {
	ctx := context.Background()
	dir := filepath.Join(data, "journal")
	j, err := journal.Open(ctx, journal.Options{Dir: dir})
	if err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	srv, err := server.NewServer(&server.Options{ServerName: "kernelgate", DontListen: true, JetStream: true, StoreDir: dir, NoSigs: true})
	if err != nil {
		return err
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		return fmt.Errorf("the server in %s does not start", dir)
	}
	err = publish(ctx, srv, write)
	srv.Shutdown()
	srv.WaitForShutdown()
	if err != nil {
		return err
	}
	if j, err = journal.Open(ctx, journal.Options{Dir: dir}); err != nil {
		return err
	}
	defer j.Close()
	l, err := ledger.Open(ctx, filepath.Join(data, "ledger.db"), ledger.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	following, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Follow(following, j) }()
	err = l.CaughtUp(ctx)
	stop()
	<-ended
	return err
}

func publish(ctx context.Context, srv *server.Server, write func(publisher) error) error {
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1000))
	if err != nil {
		return err
	}
	err = write(func(id change.ID, event change.Event) error {
		data, err := json.Marshal(event)
		if err != nil {
			return err
		}
		m := nats.NewMsg("events." + id.String())
		m.Data = data
		m.Header.Set("Kernelgate-Kind", change.KindOf(event))
		_, err = js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute))
		return err
	})
	if err != nil {
		return err
	}
	select {
	case <-js.PublishAsyncComplete():
		return nil
	case <-time.After(2 * time.Minute):
		return ctx.Err()
	}
}

// closedChanges are so many events about 200 pull requests, of which nothing is left to do.
func closedChanges(publish publisher, events int) error {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range events {
		event := change.Seen{Facts: change.Facts{
			Repo: "olga/kernels", DefaultBranch: "main", Title: fmt.Sprintf("Change %d", i), Author: "olga", Base: "main",
			Head: fmt.Sprintf("%040x", i), Updated: at.Add(time.Duration(i) * time.Second),
		}}
		if err := publish(change.ID{Kind: change.Pull, Repo: 1, Number: i%200 + 1}, event); err != nil {
			return err
		}
	}
	return nil
}
