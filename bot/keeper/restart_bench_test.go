package keeper_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// BenchmarkRestart is from the start of a bot that was away while 1,000 pull requests
// were opened to the moment at which all of them are in the queue, with GitHub's own
// limits and 100,000 events of earlier changes in the journal. Run it with
// -benchtime 1x.
func BenchmarkRestart(b *testing.B) {
	const pulls, events = 1000, 100_000
	w := newWorld(b, worldOptions{limits: embedded.Limits{PerHour: -1}, absent: true, patient: true})
	w.settle()
	w.no(w.running.stop())
	w.fillJournal(events)
	w.app.SetHook("", "")
	for i := range pulls {
		w.propose(fmt.Sprintf("away%d", i), fmt.Sprintf("// speed 1.%04d\n", i), embedded.PROptions{})
	}
	if name := os.Getenv("KERNELGATE_PROFILE"); name != "" {
		f, err := os.Create(name)
		w.no(err)
		w.no(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	b.ResetTimer()
	start, busy := time.Now(), cpu()
	w.start()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for said := time.Now(); ; <-tick.C {
		n := 0
		for _, q := range w.running.journal.Queues() {
			n += q.Waiting
		}
		if time.Since(said) > 5*time.Second || n == pulls {
			said = time.Now()
			b.Logf("%d queued after %v", n, time.Since(start).Round(10*time.Millisecond))
		}
		if n == pulls {
			break
		}
		if time.Since(start) > 4*time.Minute {
			b.Fatalf("%d of %d were queued in 4 minutes", n, pulls)
		}
	}
	b.ReportMetric(time.Since(start).Seconds(), "s-to-queued")
	b.ReportMetric((cpu() - busy).Seconds(), "cpu-s") // with GitHub's own share, and git's
	b.StopTimer()
}

// cpu is what this process and those that it waited for have used.
func cpu() time.Duration {
	var all time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err == nil {
			all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return all
}

// fillJournal writes events of pull requests that are closed, without fsync, which
// would take minutes.
func (w *world) fillJournal(n int) {
	w.Helper()
	srv, err := natsserver.NewServer(&natsserver.Options{ServerName: "kernelgate", DontListen: true, JetStream: true, StoreDir: filepath.Join(w.dir, "journal"), NoSigs: true})
	w.no(err)
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	w.no(err)
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(2*n))
	w.no(err)
	for i := range n {
		id := change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: 100_000 + i/10} // a change has a handful of events
		var event change.Event = change.Seen{Facts: change.Facts{Repo: "olga/kernels", Title: fmt.Sprint("Earlier ", i), Head: fmt.Sprintf("%040x", i), Base: "main"}}
		if i%10 == 9 {
			event = change.Published{Complete: true}
		}
		data, err := json.Marshal(event)
		w.no(err)
		m := nats.NewMsg("events." + id.String())
		m.Data = data
		m.Header.Set("Kernelgate-Kind", change.KindOf(event))
		_, err = js.PublishMsgAsync(m)
		w.no(err)
	}
	<-js.PublishAsyncComplete()
}
