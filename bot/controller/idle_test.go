package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/jobs"
)

// idleAtMost is how long a runner may be idle while work waits for it. An election in NATS takes up to 9 s, and an election among
// the bots may follow; 200 faults on a busy machine once took 10.6 s.
const idleAtMost = 15 * time.Second

// A watch sees how long runners have nothing to do while there is work for them. That is: the runner's process runs and is not
// stopped, it is not measuring, and the bot that leads has a job of its label that no runner has. Fetching a bundle and
// bringing a result are idle time too, for the GPU is. That its process has just been started is no excuse, nor is what
// happens to other runners. While no bot leads, what the last one said holds. What counts is one such time without a break,
// less what this process itself was kept waiting by the machine.
type watch struct {
	bots  *bots
	hands []*hand

	mu      sync.Mutex
	waiting map[string]int    // jobs by label, as was last heard
	held    map[string]string // jobs by runner
	asleep  time.Duration     // by which ticks came late
	faults  []fault           // of bots and servers
	longest spell
	over    bool                     // nothing counts any more
	worked  map[string]time.Duration // while there was work: how long runners have measured
	stood   map[string]time.Duration // and how long they have not
}

// A fault is something that was done to a bot or a server.
type fault struct {
	at   time.Time
	what string
}

// A spell is a time in which a runner was idle.
type spell struct {
	long  time.Duration
	whose string
	until time.Time
}

func (s *spell) reach(long time.Duration, h *hand) {
	if long > s.long {
		*s = spell{long, h.Name, time.Now()}
	}
}

// after says how long a spell was, and what was done in it and shortly before.
func (s spell) after(all []fault) string {
	text := fmt.Sprintf("%v (%s", s.long.Round(10*time.Millisecond), s.whose)
	for _, f := range all {
		if before := s.until.Sub(f.at); before > 0 && before < s.long+5*time.Second {
			text += fmt.Sprintf(", %s %.1f s before its end", f.what, before.Seconds())
		}
	}
	return text + ")"
}

// fault notes what is done to a bot or a server.
func (w *watch) fault(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fault{time.Now(), what})
}

// mended waits until no runner is idle for which there is work, and of each label one has begun with some that it was given after a
// fault.
func (w *watch) mended() {
	w.bots.Helper()
	since := time.Now().Add(time.Second) // what was on its way to a runner has come by then
	w.bots.poll("runners to work again", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		begun := map[string]bool{}
		for _, h := range w.hands {
			idle := false
			h.is(func() {
				idle = h.live && h.at == "" && w.waiting[h.Label] > 0
				begun[h.Label] = begun[h.Label] || h.began.After(since)
			})
			if idle {
				return false
			}
		}
		for label, n := range w.waiting {
			if n > 0 && !begun[label] {
				return false
			}
		}
		return time.Now().After(since)
	})
}

const lookEvery = 100 * time.Millisecond

func (b *bots) watch(hands []*hand) *watch {
	w := &watch{bots: b, hands: hands, waiting: map[string]int{}, worked: map[string]time.Duration{}, stood: map[string]time.Duration{}}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { w.look(ctx) })
	for _, m := range b.all {
		all.Go(func() { w.ask(ctx, m) })
	}
	b.Cleanup(func() { cancel(); all.Wait() })
	return w
}

// queues is what a bot that leads tells of its jobs.
type queues struct {
	Queues []jobs.Backlog
	Held   map[string]string // by the runner's name
}

// ask hears what waits, from one bot while it leads.
func (w *watch) ask(ctx context.Context, m *member) {
	client := http.Client{Timeout: time.Second}
	for tick := time.NewTicker(lookEvery); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
		resp, err := client.Get("http://" + m.Addr + "/queues")
		if err != nil {
			continue
		}
		var all queues
		err = json.NewDecoder(resp.Body).Decode(&all)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			continue
		}
		waiting := map[string]int{}
		for _, q := range all.Queues {
			waiting[q.Label] = q.Waiting
		}
		w.mu.Lock()
		w.waiting, w.held = waiting, all.Held
		w.mu.Unlock()
	}
}

// look adds up how long each runner was idle.
func (w *watch) look(ctx context.Context) {
	last := time.Now()
	for tick := time.NewTicker(lookEvery); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
		now := time.Now()
		passed := min(now.Sub(last), lookEvery) // the rest is this process's own
		w.mu.Lock()
		w.asleep += now.Sub(last) - passed
		for _, h := range w.hands {
			h.is(func() {
				work := h.live && w.waiting[h.Label] > 0
				switch {
				case work && h.at == "":
					h.idle += passed
					w.stood[h.Label] += passed
				case work:
					w.worked[h.Label] += passed
					fallthrough
				default:
					h.idle = 0
				}
				if !w.over {
					w.longest.reach(h.idle, h)
				}
			})
		}
		w.mu.Unlock()
		last = now
	}
}

// waits is how many jobs do that come from a branch.
func (w *watch) waits(branch string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if branch == "main" {
		return w.waiting["cpu"]
	}
	return w.waiting[branch]
}

// end says what was seen.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.bots.Logf("the longest time that a runner was idle while work waited: %s; this process was held up for %v", w.longest.after(w.faults), w.asleep.Round(time.Second))
	for label := range w.worked {
		w.bots.Logf("%s: while work waited, runners measured for %v and did not for %v", label, w.worked[label].Round(time.Second), w.stood[label].Round(time.Second))
	}
	if w.longest.long > idleAtMost {
		w.bots.Errorf("a runner was idle for %s while work waited, which is more than %v", w.longest.after(w.faults), idleAtMost)
	}
}
