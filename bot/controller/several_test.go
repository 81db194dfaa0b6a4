package controller_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// botKills is how often a bot is killed or stopped; KERNELGATE_BOT_KILLS asks for more, and
// has the journal on a cluster, of which servers are killed too.
func botKills(t *testing.T) (n int, long bool) {
	text := os.Getenv("KERNELGATE_BOT_KILLS")
	if text == "" {
		return 2, false
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("KERNELGATE_BOT_KILLS: %v", err)
	}
	return n, true
}

// Of several bots on one journal any takes webhooks and one works, for runners that know the addresses of all. Whichever is
// killed, or stopped and let go on, every delivery is handled, every change ends right and was judged once, a bot that was
// stopped writes nothing once another leads, and no runner is idle for long while there is work for it (see watch).
func TestSeveralBots(t *testing.T) {
	kills, long := botKills(t)
	nodes, members, crew := 1, 2, []runnerSetup{{Name: "one", Label: "cpu"}, {Name: "two", Label: "l4"}}
	if long {
		nodes, members = 3, 3
		crew = append(crew, runnerSetup{Name: "three", Label: "cpu"}, runnerSetup{Name: "four", Label: "l4"})
		for i := range crew {
			crew[i].Takes = 2*time.Second + time.Duration(i)*400*time.Millisecond
		}
	}
	b := newBots(newWorld(t, worldOptions{apart: true, watchful: true, lease: 10 * time.Second, beat: 500 * time.Millisecond, retold: true}), members, nodes, crew...)
	_, err := b.repo.Push("l4", map[string]string{".github/kernelgate.yaml": strings.Replace(policyYAML, "[cpu]", "[l4]", 1)}, "Another GPU")
	b.no(err)
	for _, m := range b.all {
		b.begin(m)
	}
	b.leader(nil)
	f := &faults{bots: b, hands: b.crew(crew), lost: map[string]int{}, count: map[string]int{}}
	seen := b.watch(f.hands)
	f.watch = seen
	all := append(b.crowd(2, "main"), b.crowd(2, "l4")...)
	for i := range kills {
		if long && i%20 == 19 {
			t.Logf("%d faults, %d pull requests; %d jobs wait", i, len(all), seen.waits("main")+seen.waits("l4"))
		}
		for _, branch := range []string{"main", "l4"} {
			if long && seen.waits(branch) < len(crew) { // it takes a while until they wait
				all = append(all, b.crowd(4, branch)...)
			}
		}
		if long {
			<-time.After(time.Duration(b.dice(600)) * time.Millisecond)
			f.any()
			seen.mended()
		} else {
			f.each(i)
		}
		for _, m := range b.all {
			if bytes.Contains(m.log.Bytes(), []byte("panic")) {
				t.Fatalf("%s: %s", m.Name, m.log)
			}
		}
	}
	seen.end()
	for range kills / 10 { // faster than any of them can be mended: how long runners wait then is not bounded
		f.any()
	}
	f.resume()
	b.rightInTheEnd(all)
	// What is right must stay so: nothing that was lost may turn up late.
	b.no(b.hub.Quiet(b.ctx))
	<-time.After(leadFor)
	b.rightInTheEnd(all)
	b.handled()
	finished := map[string]int{}
	b.events(func(e journal.Event) {
		if e.Kind == "finished" {
			var f change.Finished
			b.no(json.Unmarshal(e.Data, &f))
			finished[f.Job]++
		}
	})
	for job, n := range finished {
		if n != 1 {
			t.Errorf("%s was judged %d times", job, n)
		}
	}
	failed := 0
	for _, d := range b.app.Hook().Deliveries() {
		if d.StatusCode/100 != 2 {
			failed++
		}
	}
	t.Logf("%d faults: %v; %d pull requests, %d verdicts; the longest time without a bot that leads %v; %d webhooks failed",
		kills, f.count, len(all), len(finished), f.late.Round(10*time.Millisecond), failed)
}

// dice is a number below n.
func (b *bots) dice(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rng.IntN(n)
}

// faults are what happens to bots, servers and runners.
type faults struct {
	*bots
	watch  *watch
	hands  []*hand
	paused *hand
	lost   map[string]int // jobs, by how often their runner was lost on purpose, or would have been
	count  map[string]int
	late   time.Duration // the longest time without a bot that leads
}

// any is one of all kinds, and most often at the bot that works. A runner that may not be lost is left, and another thing happens.
func (f *faults) any() {
	f.Helper()
	for happened := false; !happened; {
		happened = f.one()
	}
}

// one tells whether it happened.
func (f *faults) one() bool {
	f.Helper()
	m := f.all[f.dice(len(f.all))]
	if f.dice(3) > 0 {
		m = f.leader(nil)
	}
	switch f.dice(10) {
	case 0, 1:
		f.killBot(m)
	case 2, 3:
		f.stopBot(m)
	case 4, 5:
		f.killServer(f.dice(f.nats.Len()))
	case 6, 7, 8:
		return f.killRunner(f.hands[f.dice(len(f.hands))])
	default:
		return f.stopRunner(f.hands[f.dice(len(f.hands))])
	}
	return true
}

// each is the one after the other, where there is no time for many: a kill of the bot that leads and of a runner, and a stop
// of both.
func (f *faults) each(i int) {
	f.Helper()
	if i%2 == 0 {
		f.killRunner(f.hands[0])
		f.killBot(f.leader(nil))
		return
	}
	f.stopRunner(f.hands[1])
	f.stopBot(f.leader(nil))
}

func (f *faults) killBot(m *member) {
	f.Helper()
	f.count["bots killed"]++
	f.watch.fault(m.Name + " killed")
	start := time.Now()
	m.kill()
	f.leader(m)
	f.late = max(f.late, time.Since(start))
	f.begin(m)
}

func (f *faults) stopBot(m *member) {
	f.Helper()
	f.count["bots stopped"]++
	f.watch.fault(m.Name + " stopped")
	f.stopped(m)
}

func (f *faults) killServer(i int) {
	f.Helper()
	f.count["NATS servers killed"]++
	f.watch.fault(fmt.Sprintf("server %d killed", i))
	f.nats.Kill(i)
	f.nats.Start(i)
	f.listens(i)
}

func (f *faults) killRunner(h *hand) bool {
	f.Helper()
	if h == f.paused || !f.mayLose(h) {
		return false
	}
	f.count["runners killed"]++
	h.kill()
	f.hire(h)
	return true
}

// stopRunner stops one until the next is.
func (f *faults) stopRunner(h *hand) bool {
	f.Helper()
	f.resume()
	if !f.mayLose(h) {
		return false
	}
	f.count["runners stopped"]++
	f.no(h.pause(true))
	f.paused = h
	return true
}

func (f *faults) resume() {
	f.Helper()
	if f.paused != nil {
		f.no(f.paused.pause(false))
		f.paused = nil
	}
}

// mayLose tells whether what a runner is at can stand it. A job that has lost three is given up, and rightly: so each loses one
// on purpose, and may lose others to what happens to bots.
func (f *faults) mayLose(h *hand) bool {
	f.watch.mu.Lock()
	job := f.watch.held[h.Name]
	f.watch.mu.Unlock()
	if job == "" {
		return true
	}
	f.lost[job]++
	return f.lost[job] < 2
}

// stopped stops a bot until another leads, and lets it go on.
func (b *bots) stopped(m *member) {
	b.Helper()
	leads, err := m.leads()
	b.no(err)
	b.stop(m)
	if !leads {
		b.goOn(m)
		return
	}
	b.leader(m)
	since := time.Now()
	b.goOn(m)
	b.poll("the bot that was stopped to know", func() bool {
		leads, err := m.leads()
		return err == nil && !leads
	})
	if late := b.wrote(m, since); len(late) > 0 {
		b.Errorf("%s was stopped, and wrote when another led: %v", m.Name, late)
	}
}

// A bot is stopped between its look at the lead and its write to GitHub. When it goes on, that
// one is sent, and spoils what its successor has said: the bot tells of it, and it is put right.
// Whatever would come after it is not sent.
func TestStoppedBeforeAWrite(t *testing.T) {
	for name, c := range map[string]struct {
		at     string
		checks int // of one name that there are in the end; GitHub counts the newest
	}{
		"a new check":   {"POST /check-runs", 2},
		"a new comment": {"POST /issues/1/comments", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBots(newWorld(t, worldOptions{apart: true, lease: 3 * time.Second, retold: true}), 2, 1)
			first, second := b.all[0], b.all[1]
			first.StopAt = c.at
			b.begin(first)
			pr := b.propose("faster", "// speed 1.5\n", embedded.PROptions{Title: "Faster"})
			b.standsStill(first)
			b.begin(second)
			b.leader(first)
			all := []expectation{{pr: pr, conclusion: "success"}}
			b.rightInTheEnd(all)
			since := time.Now()
			b.goOn(first)
			b.poll("the late write", func() bool { return len(b.wrote(first, since)) > 0 })
			b.poll("the bot that was stopped to have told what it was at", func() bool {
				leads, err := first.leads()
				return err == nil && !leads && b.doubted() > 0
			})
			b.rightInTheEnd(all)
			late := b.wrote(first, since)
			if len(late) != 1 || !is(late[0].what, c.at) || late[0].status != http.StatusCreated {
				t.Errorf("the first bot has written %v", late)
			}
			same := 0
			for _, check := range b.repo.Checks(pr.HeadSHA()) {
				if check.Name == "kernelgate" {
					same++
				}
			}
			if same != c.checks {
				t.Errorf("%d checks of one name, want %d", same, c.checks)
			}
		})
	}
}

// doubted is how often a change was to be published again.
func (b *bots) doubted() (n int) {
	b.events(func(e journal.Event) {
		if e.Kind == "republish_asked" {
			n++
		}
	})
	return n
}
