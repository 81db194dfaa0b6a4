package cli

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A soakFault is one kind of fault. begin makes it happen, and returns what repairs it, or nil if the fault is over at once.
type soakFault struct {
	name        string
	on          []string // what it happens to; nothing else may happen to that until the repair
	least, most time.Duration
	begin       func() (repair func())
}

// soakFaults is the list of what happened.
type soakFaults struct {
	s      *soak
	quit   chan struct{}
	events *os.File
	rng    *rand.Rand
	run    sync.WaitGroup

	mu    sync.Mutex
	busy  map[string]bool
	count map[string]int
	kills int
}

// startFaults has a fault happen again and again. The kinds are drawn from a bag, so that a soak that is long enough has all
// of them.
func (s *soak) startFaults() *soakFaults {
	s.Helper()
	events, err := os.Create(filepath.Join(s.dir, "faults.log"))
	if err != nil {
		s.Fatal(err)
	}
	f := &soakFaults{s: s, quit: make(chan struct{}), events: events, rng: rand.New(rand.NewPCG(s.seed, 2)), busy: map[string]bool{}, count: map[string]int{}}
	f.run.Go(func() {
		var bag []int
		for {
			select {
			case <-f.quit:
				return
			case <-s.ctx.Done():
				return
			case <-time.After(s.every):
			}
			if len(bag) == 0 {
				bag = f.rng.Perm(len(f.kinds()))
			}
			for i, kind := range bag {
				if f.happen(f.kinds()[kind]) {
					bag = slices.Delete(bag, i, i+1)
					break
				}
			}
		}
	})
	return f
}

// end repairs everything.
func (f *soakFaults) end() {
	close(f.quit)
	f.run.Wait()
	f.events.Close()
}

func (f *soakFaults) note(format string, args ...any) {
	fmt.Fprintf(f.events, "%s %s %s\n", time.Now().UTC().Format("15:04:05.000"), f.s.clock(), fmt.Sprintf(format, args...))
}

// happen reports whether the fault could happen: something that is broken already is left alone.
func (f *soakFaults) happen(k soakFault) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, on := range k.on {
		if f.busy[on] {
			return false
		}
	}
	for _, on := range k.on {
		f.busy[on] = true
	}
	f.count[k.name]++
	if strings.Contains(k.name, "killed") || strings.Contains(k.name, "quorum") {
		f.kills++
	}
	lasts := k.least + time.Duration(f.rng.IntN(int((k.most-k.least)/time.Millisecond)+1))*time.Millisecond
	f.note("%s: %v, for %v", k.name, k.on, lasts)
	f.run.Go(func() {
		if repair := k.begin(); repair != nil {
			select {
			case <-time.After(lasts):
			case <-f.quit:
			case <-f.s.ctx.Done():
			}
			repair()
			f.note("%s: %v repaired", k.name, k.on)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, on := range k.on {
			f.busy[on] = false
		}
	})
	return true
}

// kinds returns every kind of fault, each with something that it can happen to.
func (f *soakFaults) kinds() []soakFault {
	s := f.s
	bot, runner := f.anyBot(), s.runners[f.rng.IntN(len(s.runners))]
	server := f.rng.IntN(3)
	other := (server + 1 + f.rng.IntN(2)) % 3
	onBot, onRunner, onServer := []string{bot.name}, []string{runner.name}, []string{fmt.Sprint("nats", server)}
	const least, most = 5 * time.Second, 30 * time.Second
	return []soakFault{
		{"bot killed", onBot, least, most, func() func() { bot.kill(); return bot.start }},
		{"bot restarted", onBot, 0, 0, func() func() { bot.stop(); bot.start(); return nil }},
		{"bot got SIGHUP", onBot, 0, 0, func() func() { bot.signal(syscall.SIGHUP); return nil }},
		{"bot stopped (SIGSTOP)", onBot, 6 * time.Second, most, func() func() {
			bot.signal(syscall.SIGSTOP)
			return func() { bot.signal(syscall.SIGCONT) }
		}},
		{"bot's disk full", onBot, least, most, func() func() { return bot.fill(s, bot.data) }},
		{"NATS server killed", onServer, least, most, func() func() {
			s.nats.set(server, true, false)
			s.nats.Kill(server)
			return func() { s.nats.Start(server); s.nats.set(server, false, false) }
		}},
		{"no NATS quorum", []string{fmt.Sprint("nats", server), fmt.Sprint("nats", other)}, least, 15 * time.Second, func() func() {
			for _, i := range []int{server, other} {
				s.nats.set(i, true, false)
				s.nats.Kill(i)
			}
			return func() {
				for _, i := range []int{server, other} {
					s.nats.Start(i)
					s.nats.set(i, false, false)
				}
			}
		}},
		{"NATS server's disk full", onServer, least, most, func() func() {
			ballast := filepath.Join(s.nats.dir, fmt.Sprint(server), "ballast")
			s.nats.set(server, false, true)
			fillDisk(s.T, ballast)
			return func() { // a server without space turns JetStream off until it is restarted
				s.remove(ballast)
				s.nats.Kill(server)
				s.nats.Start(server)
				s.nats.set(server, false, false)
			}
		}},
		f.api("GitHub answers 500, 502 and 503", embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{embedded.ServerError, embedded.BadGateway, embedded.Unavailable}}),
		f.api("GitHub limits requests (403, 429)", embedded.Faults{Rate: 0.7, Kinds: []embedded.FaultKind{embedded.Secondary, embedded.TooMany}, RetryAfter: 2 * time.Second}),
		f.api("connections to GitHub break", embedded.Faults{Rate: 0.5, Kinds: []embedded.FaultKind{embedded.Reset, embedded.LostAnswer}}),
		{"GitHub refuses the key (401)", []string{"key"}, least, most, f.refuseKey},
		{"GitHub refuses the key (401) for longer", []string{"key"}, 80 * time.Second, 120 * time.Second, f.refuseKey},
		{"tokens end early", []string{"tokens"}, 0, 0, func() func() { s.app.EndTokens(); return nil }},
		f.deliveries("webhooks fail", embedded.Unruly{Fail: 0.8}),
		f.deliveries("webhooks come twice and out of order", embedded.Unruly{Duplicate: 0.8, Shuffle: true}),
		f.deliveries("webhooks are late", embedded.Unruly{Hold: true}),
		{"GitHub's replicas lag", []string{"replicas"}, least, most, func() func() {
			s.hub.SetLag(embedded.Lag{Commits: 4 * time.Second, Pulls: 3 * time.Second, Refs: 2 * time.Second})
			return func() { s.hub.SetLag(embedded.Lag{}) }
		}},
		{"runner killed", onRunner, least, most, func() func() { runner.kill(); return runner.start }},
		{"runner's disk full", onRunner, least, most, func() func() { return runner.fill(s, runner.state) }},
		{"runner cut off", onRunner, least, most, func() func() { runner.wires.cut(); return runner.wires.repair }},
	}
}

// anyBot returns the leader two times out of three.
func (f *soakFaults) anyBot() *soakBot {
	any, leader := f.s.bots[f.rng.IntN(len(f.s.bots))], f.rng.IntN(3) > 0
	for _, b := range f.s.bots {
		if leader && b.leads.Load() {
			return b
		}
	}
	return any
}

// fill fills the disk of a process.
func (v *service) fill(s *soak, dir string) func() {
	ballast := filepath.Join(dir, "ballast")
	v.setFull(true)
	fillDisk(s.T, ballast)
	return func() {
		s.remove(ballast)
		v.setFull(false)
	}
}

func (v *service) setFull(full bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.full = full
}

func (s *soak) remove(file string) {
	if err := os.Remove(file); err != nil {
		s.fail("%v", err)
	}
}

func (f *soakFaults) api(name string, faults embedded.Faults) soakFault {
	s := f.s
	faults.Seed = s.seed
	return soakFault{name, []string{"api"}, 5 * time.Second, 30 * time.Second, func() func() {
		s.github.set(func(g *githubTruth) { g.failing = time.Now() })
		s.hub.SetFaults(faults)
		return func() {
			s.hub.SetFaults(embedded.Faults{})
			s.github.set(func(g *githubTruth) { g.failing = time.Time{} })
		}
	}}
}

func (f *soakFaults) refuseKey() func() {
	refuse := func(yes bool) {
		f.s.app.RefuseKey(yes)
		f.s.github.set(func(g *githubTruth) { g.refused = yes })
	}
	refuse(true)
	return func() { refuse(false) }
}

func (f *soakFaults) deliveries(name string, u embedded.Unruly) soakFault {
	return soakFault{name, []string{"deliveries"}, 5 * time.Second, 30 * time.Second, func() func() {
		f.s.hub.SetDelivery(u)
		return func() { f.s.hub.SetDelivery(embedded.Unruly{}) }
	}}
}

func (g *githubTruth) set(change func(*githubTruth)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

// counts returns how often each fault happened, and all together.
func (f *soakFaults) counts() (count map[string]int, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, times := range f.count {
		n += times
	}
	return maps.Clone(f.count), n
}
