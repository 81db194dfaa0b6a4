package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// A Lease is a runner's right to work on a job. It lasts Options.LeaseFor and as long again with every Extend; when it ran
// out the job goes to whoever asks next, three times in all, and then to whoever asks for what is lost. From then on the
// old holder's Extend, Release and Done fail with ErrLeaseLost and change nothing. A holder whose lease ran out unnoticed
// by anyone still holds it. A lease that its holder never spoke of is none of the three: the answer may have been lost.
type Lease struct {
	Job
	// Token counts how often the job was handed out. It grows, on disk: a result that bears a lower one is stale.
	Token  uint64
	Label  string   // under which the holder got it
	Losses []Expiry // of the leases before
	Built  *Built   // the outcome of the build stage; nil before it ends, and where there is none

	unread   int
	holder   string
	of       *Queue
	entry    *entry
	revision uint64
	uses     []scheduler.Use // of the leases before
}

// Lease waits for a job of one of the labels, for a holder that is known by that name.
func (jobs *Queue) Lease(ctx context.Context, holder string, labels ...string) (*Lease, error) {
	if len(labels) == 0 || holder == "" {
		return nil, errors.New("lease a job: name the holder, and the labels of the jobs that it may take")
	}
	return jobs.lease(ctx, holder, labels)
}

// Lost waits for a job that was handed out as often as a job is, every time to a runner that was never heard of again.
// The lease is for whoever writes down that the job has failed.
// Where this process does not lead, it waits for that first.
func (jobs *Queue) Lost(ctx context.Context) (*Lease, error) {
	for {
		l, err := jobs.lease(ctx, "", nil)
		if !errors.Is(err, journal.ErrNotLeading) {
			return l, err
		}
		select {
		case <-time.After(leadPoll):
		case <-ctx.Done():
			return nil, fmt.Errorf("lease a job: %w", ctx.Err())
		}
	}
}

func (jobs *Queue) lease(ctx context.Context, holder string, labels []string) (*Lease, error) {
	waiting, done, err := jobs.whileLeading(ctx)
	if err != nil {
		return nil, fmt.Errorf("lease a job: %w", err)
	}
	defer done()
	for {
		e, err := jobs.line.wait(waiting, labels)
		if err != nil && ctx.Err() == nil {
			err = journal.ErrNotLeading
		}
		if err != nil {
			return nil, fmt.Errorf("lease a job: %w", err)
		}
		// Half of it would leave the job to nobody until the lease runs out.
		l, err := jobs.acquire(context.WithoutCancel(ctx), e, holder, labels)
		if err != nil {
			jobs.line.change(func(q *scheduler.Queue) { q.Decline(e.ID, time.Now().Add(declinePause)) })
			return nil, fmt.Errorf("lease job %s: %w", e.ID, err)
		}
		if l != nil {
			return l, nil
		}
	}
}

// acquire writes that the job was handed out; nil without an error means that there is nothing left to do for it.
func (jobs *Queue) acquire(ctx context.Context, e *entry, holder string, labels []string) (*Lease, error) {
	for {
		rec, revision, err := jobs.readLease(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		if rec.over(e.seq) {
			if err := jobs.journal.DeleteJob(ctx, e.seq); err != nil {
				return nil, err
			}
			jobs.line.remove(e, false)
			return nil, nil
		}
		next := leaseRecord{Seq: e.seq, Token: rec.Token + 1, State: leased, Holder: holder, Since: jobs.opt.Now().UTC()}
		if rec.Seq == e.seq {
			next.Losses, next.Unread, next.Uses, next.Built = rec.Losses, rec.Unread, rec.Uses, rec.Built
			if rec.State == leased && rec.Holder != "" {
				heard, spoke := jobs.lastAck(e, rec)
				switch {
				case jobs.leaseAs(rec, e, revision).Compiles():
					next.Built = &Built{By: rec.Holder, Lost: true} // whoever measures compiles it, too
				case !spoke:
					next.Unread++
				default:
					next.Losses = append(next.Losses, Expiry{Holder: rec.Holder, Since: rec.Since, LastAck: heard})
				}
				if use, ok := jobs.line.cost(e.ID); ok {
					next.used(rec.Uses, use)
				}
			}
		}
		if next.Label = e.labelFor(labels, next.Built); next.Label == "" && holder != "" {
			jobs.line.change(func(q *scheduler.Queue) { q.Built(e.ID); q.Decline(e.ID, time.Time{}) }) // it is compiled already
			return nil, nil
		}
		if e.Build != "" && next.Label != e.Build && next.Built == nil && holder != "" {
			next.Built = &Built{} // whoever measures has begun
		}
		revision, err = jobs.writeLease(ctx, e.ID, next, revision)
		if journal.IsConflict(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		jobs.line.change(func(q *scheduler.Queue) {
			if next.Built != nil {
				q.Built(e.ID)
			}
			now := time.Now()
			q.Lease(e.ID, holder, labels, len(next.Losses), now, now.Add(jobs.opt.LeaseFor))
			next.enough(q, e.ID)
			e.heard = next.Since
		})
		return jobs.leaseAs(next, e, revision), nil
	}
}

// lastAck is when the holder of a lease was last heard, and whether it ever was, as far as this process knows.
func (jobs *Queue) lastAck(e *entry, rec leaseRecord) (at time.Time, spoke bool) {
	at = rec.Since
	jobs.line.change(func(q *scheduler.Queue) {
		spoke = q.Acked(e.ID)
		if e.heard.After(at) {
			at = e.heard
		}
	})
	return at, spoke
}

// Attach returns the lease that was given to the holder under that token, in this process or in an earlier one. It fails
// with ErrFinished, ErrCancelled or ErrLeaseLost where that lease is over.
func (jobs *Queue) Attach(ctx context.Context, id string, token uint64, holder string) (*Lease, error) {
	if err := journal.CheckToken("job id", id); err != nil {
		return nil, fmt.Errorf("attach to a job: %w", err)
	}
	l, err := jobs.attach(ctx, id, token, holder)
	if err != nil {
		return nil, fmt.Errorf("attach to job %s: %w", id, err)
	}
	return l, nil
}

func (jobs *Queue) attach(ctx context.Context, id string, token uint64, holder string) (*Lease, error) {
	rec, revision, err := jobs.readLease(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case revision == 0 || rec.Token != token:
		return nil, ErrLeaseLost
	case rec.State == cancelled:
		return nil, ErrCancelled
	case rec.State == finished:
		return nil, ErrFinished
	case rec.State != leased || rec.Holder != holder:
		return nil, ErrLeaseLost
	}
	e := jobs.line.get(id)
	if err := jobs.known(); err != nil {
		return nil, err
	}
	if e == nil || e.seq != rec.Seq {
		return nil, ErrLeaseLost // it was ended since the record was read
	}
	jobs.line.change(func(q *scheduler.Queue) {
		q.Ack(id)
		e.heard = jobs.opt.Now().UTC()
	})
	return jobs.leaseAs(rec, e, revision), nil
}

func (jobs *Queue) leaseAs(rec leaseRecord, e *entry, revision uint64) *Lease {
	return &Lease{
		Job: e.Job, Token: rec.Token, Label: rec.Label, Losses: rec.Losses, Built: rec.Built, unread: rec.Unread,
		holder: rec.Holder, of: jobs, entry: e, revision: revision, uses: rec.Uses,
	}
}

// Extend says that the runner is alive. The error tells it to stop: ErrCancelled or ErrLeaseLost.
func (l *Lease) Extend(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return fmt.Errorf("extend lease of job %s: %w", l.ID, err)
	}
	l.of.line.change(func(q *scheduler.Queue) {
		now := time.Now()
		q.Extend(l.ID, now, now.Add(l.of.opt.LeaseFor))
		l.entry.heard = l.of.opt.Now().UTC()
	})
	return nil
}

// Shorten says that the holder may be gone: it has so long to be heard again, if the lease does not end before.
func (l *Lease) Shorten(ctx context.Context, within time.Duration) error {
	if err := l.check(ctx); err != nil {
		return fmt.Errorf("doubt the holder of job %s: %w", l.ID, err)
	}
	l.of.line.change(func(q *scheduler.Queue) { q.ShortenLease(l.ID, time.Now().Add(within)) })
	return nil
}

// check says whether the lease is still this one's.
func (l *Lease) check(ctx context.Context) error {
	rec, revision, err := l.of.readLease(ctx, l.ID)
	switch {
	case err != nil:
		return err
	case revision == l.revision:
		return nil
	case rec.Seq == l.entry.seq && rec.State == cancelled:
		return ErrCancelled
	default:
		return ErrLeaseLost
	}
}

// Done finishes the job: nobody gets it again. Write the result to the run's events first.
func (l *Lease) Done(ctx context.Context) error {
	err := l.end(ctx, leaseRecord{State: finished})
	if err == nil {
		// The record decides already; without this the next process would tidy up.
		err = l.of.journal.DeleteJob(ctx, l.entry.seq)
	}
	if err != nil {
		return fmt.Errorf("finish job %s: %w", l.ID, err)
	}
	l.of.line.remove(l.entry, true)
	return nil
}

// Release gives the job back, to be handed out after delay. It is no loss.
func (l *Lease) Release(ctx context.Context, delay time.Duration) error {
	if err := l.end(ctx, leaseRecord{State: released, Losses: l.Losses, Built: l.Built}); err != nil {
		return fmt.Errorf("release job %s: %w", l.ID, err)
	}
	l.of.line.change(func(q *scheduler.Queue) {
		now := time.Now()
		q.Release(l.ID, now, now.Add(delay))
	})
	return nil
}

func (l *Lease) end(ctx context.Context, rec leaseRecord) error {
	rec.Seq, rec.Token, rec.Uses, rec.Unread = l.entry.seq, l.Token, l.uses, l.unread
	if use, ok := l.of.line.cost(l.ID); ok {
		use.Whole = rec.State == finished || rec.Built != l.Built
		rec.used(l.uses, use)
	}
	_, err := l.of.writeLease(ctx, l.ID, rec, l.revision)
	if !journal.IsConflict(err) {
		return err
	}
	if err := l.check(ctx); err != nil {
		return err
	}
	return ErrLeaseLost
}
