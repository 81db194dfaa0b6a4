package journal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// ErrNotLeading says that a different bot leads, or may lead by now, so this one must not do what
// was asked.
var ErrNotLeading = errors.New("this bot does not lead (another one does, or is about to)")

const headerEpoch = "Kernelgate-Epoch"

// Campaign calls do while this process leads, until ctx ends or do returns. One of several processes on one server leads at a
// time; the others wait. The context of do ends when the lead is lost, which is no error: once do has returned, the process
// campaigns again. An embedded server has one process, which always leads.
//
// The leader renews its record every few seconds. A process that has seen no renewal for longer than Options.LeadFor takes the
// lead, with the next epoch. The old leader knows by its own clock that its lead has ended, before another process can take it;
// no two clocks are compared. The epoch is also a fence: events and lease records have the epoch of their writer, every write
// is conditional on the newest record that its writer has read, and a process that reads a newer epoch than its own steps
// down. So a process that was stopped at any moment overwrites nothing of its successor.
//
// A leader gives the lead to a process of a newer version (see candidate).
//
// After the first call, Append and everything about jobs fail with ErrNotLeading where this process does not lead. Every
// process accepts deliveries.
func (j *Journal) Campaign(ctx context.Context, do func(context.Context) error) error {
	if !j.external() {
		return do(ctx)
	}
	l := &j.lead
	l.mu.Lock()
	l.asked, l.holder = true, nuid.Next()
	l.mu.Unlock()
	for ctx.Err() == nil {
		led, err := j.acquireLead(ctx)
		if err != nil {
			return err
		}
		if led == nil {
			return nil // ctx has ended
		}
		yielded, err := j.whileLeader(ctx, led, do)
		switch {
		case ctx.Err() != nil || led.Err() == nil && !yielded:
			j.resign(ctx)
			return err
		case led.Err() == nil:
			if err != nil {
				j.opt.Log.Warn("the work of this leader ended with an error before a newer bot took the lead", "error", err)
			}
			j.resign(ctx)
		default:
			j.opt.Log.Warn("this bot does not lead any more", "why", context.Cause(led), "error", err)
			j.lead.deposed()
		}
		select {
		case <-time.After(j.opt.LeadFor / 12):
		case <-ctx.Done():
		}
	}
	return nil
}

// whileLeader renews the lead while do runs. It reports whether it stopped do because a newer process asked for the lead.
func (j *Journal) whileLeader(ctx, led context.Context, do func(context.Context) error) (yielded bool, err error) {
	var newer atomic.Bool
	led, stop := context.WithCancel(led)
	defer stop()
	var keeping sync.WaitGroup
	renew, enough := context.WithCancel(context.WithoutCancel(ctx))
	keeping.Go(func() { j.keepLead(renew) }) // it continues after ctx ends, so that do finishes its work while it still has the lead
	keeping.Go(func() { j.watchForNewer(renew, func() { newer.Store(true); stop() }) })
	defer func() { enough(); keeping.Wait() }()
	defer context.AfterFunc(ctx, stop)()
	if err := j.lead.elected(led); err != nil {
		if led.Err() == nil {
			j.lead.stepDown(fmt.Errorf("the jobs cannot be read: %w", err))
		}
		return false, err
	}
	err = do(led)
	return newer.Load(), err
}

// OnElection sets a function that is called when this process takes the lead, before Campaign calls
// its own function, and one that is called when the lead has ended. An error of elected gives up
// the lead. Call OnElection before Campaign.
func (j *Journal) OnElection(elected func(context.Context) error, deposed func()) {
	j.lead.onElected, j.lead.onDeposed = elected, deposed
}

func (l *lead) elected(ctx context.Context) error {
	if l.onElected == nil {
		return nil
	}
	return l.onElected(ctx)
}

func (l *lead) deposed() {
	if l.onDeposed != nil {
		l.onDeposed()
	}
}

// A lead is the state of the election in this process.
type lead struct {
	onElected func(context.Context) error
	onDeposed func()

	turn sync.Mutex // held while the record is changed

	mu       sync.Mutex
	asked    bool   // Campaign was called: from then on writes are fenced
	holder   string // this process
	epoch    uint64 // 0 while this process does not lead
	highest  uint64 // the newest epoch that was read anywhere
	revision uint64
	sent     time.Time // when the newest renewal was sent
	lasts    time.Duration
	led      context.Context // ends with the lead
	lost     context.CancelCauseFunc
	other    string // the leader, as far as known
	where    string // and its Options.Address
}

// age returns how long ago something happened, by two clocks: one that continues while a process is
// stopped, and one that continues while the machine sleeps.
func age(at time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)))
}

// left returns how long this process certainly still leads. It is called with the lock held.
func (l *lead) left() time.Duration {
	if l.epoch == 0 {
		return 0
	}
	return l.lasts - age(l.sent)
}

// Leads reports whether this process leads now.
func (j *Journal) Leads() bool {
	if !j.external() {
		return true
	}
	_, err := j.fence()
	j.lead.mu.Lock()
	defer j.lead.mu.Unlock()
	return err == nil && j.lead.asked
}

// Leader returns the name and the address that the leader has published; "" if this process leads,
// or if the leader is unknown.
func (j *Journal) Leader() (name, address string) {
	if j.Leads() {
		return "", ""
	}
	j.lead.mu.Lock()
	defer j.lead.mu.Unlock()
	return j.lead.other, j.lead.where
}

// Term returns the epoch to write with, or ErrNotLeading. It returns 0 if nobody has called
// Campaign; then every process may write.
func (j *Journal) Term() (uint64, error) { return j.fence() }

func (j *Journal) fence() (uint64, error) {
	l := &j.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked {
		return 0, nil
	}
	if l.left() <= 0 {
		l.end(errors.New("it could not say in time that it leads"))
		return 0, ErrNotLeading
	}
	return l.epoch, nil
}

// WhileLeading returns a context that ends with ctx or with the lead, or ErrNotLeading.
func (j *Journal) WhileLeading(ctx context.Context) (context.Context, func(), error) {
	if _, err := j.fence(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	j.lead.mu.Lock()
	defer j.lead.mu.Unlock()
	if j.lead.led == nil {
		return ctx, cancel, nil
	}
	stop := context.AfterFunc(j.lead.led, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// EnsureLeader makes sure that this process leads, and will lead for at least half of Options.LeadFor. Call it before a write
// to a system that checks no epoch, such as GitHub.
func (j *Journal) EnsureLeader(ctx context.Context) error {
	if !j.external() {
		return nil
	}
	enough := func() bool {
		j.lead.mu.Lock()
		defer j.lead.mu.Unlock()
		return j.lead.left() >= j.lead.lasts/2 && j.lead.asked && j.lead.epoch > 0
	}
	if enough() {
		return nil
	}
	err := j.renewLead(ctx)
	if err == nil && !enough() {
		err = ErrNotLeading
	}
	return err
}

// ObserveTerm records an epoch that was read. An epoch newer than its own means that another
// process leads.
func (j *Journal) ObserveTerm(epoch uint64) {
	l := &j.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	l.highest = max(l.highest, epoch)
	if l.epoch > 0 && epoch > l.epoch {
		l.end(fmt.Errorf("another bot has written with epoch %d, which is newer than %d", epoch, l.epoch))
	}
}

func termOf(h nats.Header) uint64 {
	n, _ := strconv.ParseUint(h.Get(headerEpoch), 10, 64)
	return n
}

func (l *lead) stepDown(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(why)
}

// end is called with the lock held.
func (l *lead) end(why error) {
	if l.epoch > 0 {
		l.epoch = 0
		l.lost(why)
	}
}
