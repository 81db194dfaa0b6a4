package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	randv2 "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// soakOptions come from the environment: make soak sets all of them, .ci/operate-test asks for a short soak.
type soakOptions struct {
	duration time.Duration // KERNELGATE_SOAK: how long pull requests are opened and faults happen
	every    time.Duration // KERNELGATE_SOAK_EVERY: the time from one fault to the next
	pulls    int           // KERNELGATE_SOAK_PULLS
	seed     uint64        // KERNELGATE_SOAK_SEED: of everything that is drawn; random if it is not set
	record   string        // KERNELGATE_SOAK_RECORD: a document in which the figures of a successful soak are written
}

func soakFromEnvironment(t *testing.T) soakOptions {
	t.Helper()
	get := func(name, otherwise string) string {
		if text := os.Getenv(name); text != "" {
			return text
		}
		return otherwise
	}
	seed, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		t.Fatal(err)
	}
	o := soakOptions{record: get("KERNELGATE_SOAK_RECORD", "")}
	if o.duration, err = time.ParseDuration(get("KERNELGATE_SOAK", "2m")); err != nil {
		t.Fatalf("KERNELGATE_SOAK: %v", err)
	}
	if o.every, err = time.ParseDuration(get("KERNELGATE_SOAK_EVERY", "20s")); err != nil {
		t.Fatalf("KERNELGATE_SOAK_EVERY: %v", err)
	}
	if o.pulls, err = strconv.Atoi(get("KERNELGATE_SOAK_PULLS", "30")); err != nil || o.pulls < 1 {
		t.Fatalf("KERNELGATE_SOAK_PULLS: %d, %v", o.pulls, err)
	}
	if o.seed, err = strconv.ParseUint(get("KERNELGATE_SOAK_SEED", seed.String()), 10, 64); err != nil {
		t.Fatalf("KERNELGATE_SOAK_SEED: %v", err)
	}
	return o
}

// A soak is an installation of three bots, three NATS servers and two runners, each a process, with people who open pull
// requests and faults that happen to all of it.
type soak struct {
	*testing.T
	soakOptions
	ctx     context.Context
	dir     string // logs and data; it is kept if the soak fails
	program string
	begun   time.Time

	hub     *embedded.Server
	app     *embedded.App
	github  githubTruth
	repos   []*soakRepo
	nats    *soakNATS
	bots    []*soakBot
	runners []*soakRunner
	heads   *headBook

	lastPort int

	mu    sync.Mutex
	rng   *randv2.Rand
	wrong []string
	all   []*soakPull
}

// TestSoak opens pull requests whose verdicts are known, while a random fault happens every 20 s. Nothing may be lost, done
// twice or get the wrong conclusion, and /readyz must not say anything untrue for longer than a minute.
func TestSoak(t *testing.T) {
	if os.Getenv("KERNELGATE_OPERATE") == "" {
		t.Skip("make soak runs it, as root")
	}
	s := newSoak(t, soakFromEnvironment(t))
	s.Logf("%v, %d pull requests, a fault every %v, seed %d; logs in %s", s.duration, s.pulls, s.every, s.seed, s.dir)
	s.awaitReady()

	s.begun = time.Now()
	w := s.watch()
	progress := s.progress(w)
	faults := s.startFaults()
	people := s.startPeople()
	s.sleep(s.duration)
	faults.end()
	s.Logf("%s the faults have ended; waiting until everything is right", s.clock())
	deadline := time.Now().Add(settleWithin)
	people.end(deadline)
	s.settle(deadline)
	ended := time.Since(s.begun)
	w.end()
	progress()
	memory := s.stopAll()
	j := s.readJournal()
	s.report(figures{ended: ended, watch: w, faults: faults, journal: j, memory: memory})
}

// newSoak starts everything.
func newSoak(t *testing.T, o soakOptions) *soak {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), o.duration+30*time.Minute)
	t.Cleanup(cancel)
	s := &soak{T: t, soakOptions: o, ctx: ctx, rng: randv2.New(randv2.NewPCG(o.seed, 1)), heads: newHeadBook()}
	var err error
	if s.dir, err = os.MkdirTemp("", "soak-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the processes have ended and the disks are unmounted
		if t.Failed() {
			t.Logf("the logs are kept in %s; KERNELGATE_SOAK_SEED=%d draws the same faults again", s.dir, s.seed)
		} else if err := os.RemoveAll(s.dir); err != nil {
			t.Error(err)
		}
	})
	s.program = filepath.Join(s.dir, "kernelgate")
	command(t, "go", "build", "-o", s.program, ".")
	s.createGitHub()
	s.startNATS()
	s.startBots()
	s.startRunners()
	s.balance()
	return s
}

// draw returns a number below n.
func (s *soak) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

// sleep waits, and reports whether the soak goes on.
func (s *soak) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.ctx.Done():
		return false
	}
}

// fail records what must not happen. The first ones are printed at once.
func (s *soak) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.clock() + " " + fmt.Sprintf(format, args...)
	if s.wrong = append(s.wrong, text); len(s.wrong) <= 50 {
		s.Errorf("wrong: %s", text)
	}
}

// clock returns the time since the beginning.
func (s *soak) clock() string {
	if s.begun.IsZero() {
		return "0s"
	}
	return time.Since(s.begun).Round(time.Second).String()
}

// progress prints a line every 30 s, until the returned function is called.
func (s *soak) progress(w *soakWatch) func() {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(30 * time.Second); ; {
			select {
			case <-tick.C:
				s.heads.judge(s)
				s.Logf("%s %s; %s", s.clock(), s.summary(), w.summary())
				if wrong := s.unsettled(); time.Since(s.begun) > s.duration && len(wrong) > 0 {
					s.Logf("%s not right yet: %s", s.clock(), strings.Join(wrong[:min(len(wrong), 5)], "; "))
				}
			case <-done:
				tick.Stop()
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
