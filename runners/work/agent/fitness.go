package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/runners/protocol"
)

// How often a runner checks its host and tests itself.
const (
	lookEvery  = 30 * time.Second
	testEvery  = 24 * time.Hour
	testLate   = 2 * time.Hour // a busy runner may test itself this much later, between two jobs
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// fitness is what a runner knows about its host.
type fitness struct {
	mu     sync.Mutex
	said   protocol.Health // At is the time of the last check
	retry  time.Time       // earliest time of the next test, unless somebody asks for one
	pause  time.Duration   // pause after the next unscheduled test
	tested time.Time       // when the last test ended
}

// health returns the state of the host for a lease request, or nil if the runner knows nothing
// about its host.
func (a *agent) health() *protocol.Health {
	if a.Look == nil && a.SelfTest == nil {
		return nil
	}
	a.fit.mu.Lock()
	defer a.fit.mu.Unlock()
	if now := a.Now(); now.Sub(a.fit.said.At) >= lookEvery {
		a.checkHealth(now)
	}
	said := a.fit.said
	return &said
}

// news is health for a heartbeat. It returns nil unless a check is due, because there are many
// heartbeats between two checks.
func (a *agent) news() *protocol.Health {
	a.fit.mu.Lock()
	due := a.Now().Sub(a.fit.said.At) >= lookEvery
	a.fit.mu.Unlock()
	if !due {
		return nil
	}
	return a.health()
}

// checkHealth checks the host; the caller holds the lock. A problem that a check found stays until
// a self-test passes.
func (a *agent) checkHealth(now time.Time) (unfit string) {
	a.fit.said.At = now.UTC()
	if a.Look == nil {
		return ""
	}
	a.fit.said.GPU, unfit = a.Look(now.UTC())
	if unfit != "" && a.fit.said.Unfit == "" {
		a.fit.said.Unfit = unfit
		a.Log.Warn("this host is not fit to measure", "reason", unfit)
	}
	return unfit
}

// testIfDue tests the host at the start, once a day, and when the server asks for it. If jobs
// follow each other without a pause, it tests later, between two jobs.
func (a *agent) testIfDue(ctx context.Context, told protocol.LeaseResponse, idle bool) error {
	if a.SelfTest == nil || a.disk.low { // it cannot pass before the disk has space
		return nil
	}
	now, f := a.Now(), &a.fit
	f.mu.Lock()
	age := now.Sub(f.tested)
	first := f.said.Test == nil
	daily := age >= testEvery && (idle || age >= testEvery+testLate)
	again := told.Test != "" && (told.TestNow || !now.Before(f.retry))
	f.mu.Unlock()
	switch {
	case first:
		return a.test(ctx, "the runner starts")
	case again:
		f.mu.Lock()
		if f.pause == 0 || age >= testEvery {
			f.pause = firstRetry
		}
		f.mu.Unlock()
		err := a.test(ctx, told.Test)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.retry, f.pause = a.Now().Add(f.pause), min(2*f.pause, lastRetry)
		return err
	case daily:
		return a.test(ctx, "a day has passed")
	}
	return nil
}

// test runs the self-test. It returns an error only if ctx ends first.
func (a *agent) test(ctx context.Context, why string) error {
	scratch := filepath.Join(a.store.work, "self-test")
	a.Log.Info("self-test begins", "because", why)
	begun := a.Now()
	var t protocol.SelfTest
	// The sandbox's programs read it as a different user.
	err := os.MkdirAll(scratch, 0o755)
	if err == nil {
		t = a.SelfTest(ctx, scratch)
		err = os.RemoveAll(scratch)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		t.Passed, t.Why = false, fmt.Sprintf("the state folder: %v", err)
	}
	now := a.Now()
	t.At, t.Seconds = begun.UTC(), now.Sub(begun).Seconds()
	a.fit.mu.Lock()
	defer a.fit.mu.Unlock()
	if unfit := a.checkHealth(now); unfit != "" && t.Passed {
		t.Passed, t.Why = false, unfit
	}
	if t.Passed {
		a.fit.said.Unfit = ""
	}
	a.fit.said.Test, a.fit.tested = &t, now
	log := a.Log.Info
	if !t.Passed {
		log = a.Log.Error
	}
	log("the runner has tested itself", "passed", t.Passed, "why", t.Why, "difference", t.Difference, "low", t.Low, "high", t.High, "micros", t.Micros, "usual", t.Usual)
	return nil
}
