package keeper_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
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

// Of several bots on one journal any takes webhooks and one works. Whichever is killed, or
// stopped and let go on, every change ends right and was judged once, and one that was
// stopped writes nothing once another leads.
func TestSeveralBots(t *testing.T) {
	kills, long := botKills(t)
	nodes, members := 1, 2
	if long {
		nodes, members = 3, 3
	}
	b := newBots(newWorld(t, worldOptions{apart: true, watchful: true, lease: 3 * time.Second, retold: true}), members, nodes)
	for _, m := range b.all {
		b.begin(m)
	}
	b.leader(nil)
	all := b.crowd(2)
	stops, servers, late := 0, 0, time.Duration(0)
	for i := range kills {
		if long && i%20 == 19 {
			t.Logf("%d faults", i)
		}
		if long && i%5 == 4 {
			all = append(all, b.crowd(4)...)
		}
		b.mu.Lock()
		what, pause, at := b.rng.IntN(4), time.Duration(b.rng.IntN(1000))*time.Millisecond, b.rng.IntN(len(b.all))
		b.mu.Unlock()
		m := b.all[at]
		if what < 3 || !long { // most often the one that works
			m = b.leader(nil)
		}
		if long {
			<-time.After(pause)
		}
		switch {
		case long && what == 3 && i%2 == 0: // a server
			servers++
			b.nats.Kill(i % nodes)
			b.nats.Start(i % nodes)
			b.listens(i % nodes)
		case i%2 == 0:
			start := time.Now()
			m.kill()
			b.leader(m)
			late = max(late, time.Since(start))
			b.begin(m)
		default:
			stops++
			b.stopped(m)
		}
		for _, m := range b.all {
			if bytes.Contains(m.log.Bytes(), []byte("panic")) {
				t.Fatalf("%s: %s", m.Name, m.log)
			}
		}
	}
	b.rightInTheEnd(all)
	// What is right must stay so: nothing that was lost may turn up late.
	b.no(b.hub.Quiet(b.ctx))
	<-time.After(leadFor)
	b.rightInTheEnd(all)
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
	t.Logf("%d faults, %d of them stops and %d of them NATS servers killed; %d pull requests, %d verdicts; the longest time without a bot that leads %v; %d webhooks failed",
		kills, stops, servers, len(all), len(finished), late.Round(10*time.Millisecond), failed)
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

// doubted is how often a change was to be published anew.
func (b *bots) doubted() (n int) {
	b.events(func(e journal.Event) {
		if e.Kind == "doubted" {
			n++
		}
	})
	return n
}
