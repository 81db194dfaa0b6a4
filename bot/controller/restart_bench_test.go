package controller_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/internal/runnable"
)

// BenchmarkRestart is from the start of a bot that was away while 1,000 pull requests
// were opened to the moment at which all of them are in the queue, with GitHub's own
// limits and 100,000 events of earlier changes in the journal. Run it with
// -benchtime 1x. On a machine that others use too, the CPU's time tells more than the
// clock's; it has GitHub's own share in it, and git's.
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
	gits := w.countGit()
	b.ResetTimer()
	start, busy := time.Now(), cpu()
	w.start()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for next := 1; ; <-tick.C {
		n := 0
		for _, q := range w.running.jobs.Backlogs() {
			n += q.Waiting
		}
		if n >= next {
			next = n/250*250 + 250
			b.Logf("%d queued after %v and %v of the CPU", n, time.Since(start).Round(10*time.Millisecond), (cpu() - busy).Round(10*time.Millisecond))
		}
		if n == pulls {
			break
		}
		if time.Since(start) > 4*time.Minute {
			b.Fatalf("%d of %d were queued in 4 minutes", n, pulls)
		}
	}
	took := time.Since(start).Seconds()
	b.ReportMetric(took, "s-to-queued")
	b.ReportMetric(pulls/took, "pulls/s")
	b.ReportMetric((cpu() - busy).Seconds(), "cpu-s")
	b.ReportMetric(float64(gits())/pulls, "gits/pull")
	b.StopTimer()
}

// countGit counts what the bot starts of git from now on. What git starts in its turn is
// not counted, nor GitHub's own.
func (w *world) countGit() func() int {
	w.Helper()
	real, err := exec.LookPath("git")
	w.no(err)
	bin, log := w.TempDir(), filepath.Join(w.TempDir(), "log")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$2\" in %s/*) echo >>%s ;; esac\nexec %s \"$@\"\n", filepath.Join(w.dir, "mirrors"), log, real)
	w.no(runnable.Write(filepath.Join(bin, "git"), []byte(script)))
	w.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return func() int {
		info, err := os.Stat(log)
		if err != nil {
			return 0
		}
		return int(info.Size())
	}
}

// cpu is what this process, those that it waited for, and its children that live have used.
func cpu() time.Duration {
	all := living(os.Getpid())
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err == nil {
			all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return all
}

// living is what the children of a process have used so far.
func living(parent int) time.Duration {
	const tick = 10 * time.Millisecond // Linux has a hundred a second
	var all time.Duration
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		data, _ := os.ReadFile(file) // it may be gone
		_, rest, _ := strings.Cut(string(data), ") ")
		if f := strings.Fields(rest); len(f) > 12 && f[1] == strconv.Itoa(parent) {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			all += time.Duration(user+system) * tick
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
