// Package jobs hands work to runners. A job waits in line until a runner with one of its labels asks for it, and the runner
// then holds it by a lease.
//
// The lease record decides who holds a job, and every change of the record is conditional on the revision that the writer has
// seen. The journal stores jobs and records. This package keeps in memory which jobs are unfinished and who waits for one:
// that is read from the journal at the start, and again when this process begins to lead. Package scheduler says whose turn
// it is. No consumer of NATS could: a subject for each label and class would give the oldest job of the class, whoever's it
// is, and a job of several labels would be in several lines. The records also hold what leases have cost, for the limits of
// a day and to know how long a kernel takes.
//
// A lease whose holder falls silent expires. After three expired leases the job goes to the caller of Lost, who writes down
// that it failed.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

var (
	// ErrLeaseLost says that the job went to another runner, or is finished.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrFinished says that the job was finished under this very lease.
	ErrFinished = errors.New("the job is finished")
	// ErrCancelled says that nobody wants the job's result any more.
	ErrCancelled = errors.New("the job was cancelled")
)

// A Journal stores jobs and lease records, and knows whether this process leads. *journal.Journal is one.
type Journal interface {
	PutJob(ctx context.Context, label, id string, data []byte) (seq uint64, err error)
	StoredJob(ctx context.Context, label, id string) (journal.StoredJob, error)
	EachJob(ctx context.Context, do func(journal.StoredJob) error) error
	DeleteJob(ctx context.Context, seq uint64) error
	ReadLease(ctx context.Context, id string, rec any) (revision uint64, err error)
	WriteLease(ctx context.Context, id string, rec any, revision uint64) (uint64, error)
	EachLease(ctx context.Context, since time.Time, do func(data []byte)) error

	Term() (uint64, error)
	ObserveTerm(uint64)
	WhileLeading(context.Context) (context.Context, func(), error)
	OnElection(elected func(context.Context) error, deposed func())
}

// Options of a queue. The zero value is good.
type Options struct {
	LeaseFor time.Duration    // how long a runner may stay silent before its job goes to another; 30 s
	Limits   scheduler.Limits // what repositories may use of the runners

	Log *slog.Logger
	Now func() time.Time
}

// A Queue is the jobs of a journal. Its methods may be called from many goroutines. They fail with journal.ErrNotLeading
// where this process takes part in the election and does not lead.
type Queue struct {
	opt     Options
	journal Journal
	line    *line
	loaded  atomic.Bool // the unfinished jobs were read since this process began to lead
}

// Open reads the unfinished jobs, and reads them again whenever this process begins to lead. Close it before the journal.
func Open(ctx context.Context, j Journal, o Options) (*Queue, error) {
	o.LeaseFor = cmp.Or(o.LeaseFor, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	jobs := &Queue{opt: o, journal: j, line: newLine(o.Limits)}
	if err := jobs.load(ctx); err != nil {
		jobs.Close()
		return nil, fmt.Errorf("open the queue of jobs: %w", err)
	}
	j.OnElection(jobs.elected, jobs.deposed)
	return jobs, nil
}

// Close ends the timers of leases. Jobs and leases stay as they are in the journal.
func (jobs *Queue) Close() { jobs.line.close() }

// elected reads the jobs again: another process may have changed any of them.
func (jobs *Queue) elected(ctx context.Context) error {
	err := jobs.load(ctx)
	if err == nil {
		jobs.loaded.Store(true)
	}
	return err
}

func (jobs *Queue) deposed() {
	jobs.loaded.Store(false)
	jobs.line.clear()
}

// known is ErrNotLeading where this process does not lead, or has just begun to and has not read all jobs yet: it cannot tell
// whether a job that it does not know exists.
func (jobs *Queue) known() error {
	term, err := jobs.journal.Term()
	if err == nil && term > 0 && !jobs.loaded.Load() {
		err = journal.ErrNotLeading
	}
	return err
}

// whileLeading is a context that ends with ctx or with the lead, or ErrNotLeading.
func (jobs *Queue) whileLeading(ctx context.Context) (context.Context, func(), error) {
	if err := jobs.known(); err != nil {
		return nil, nil, err
	}
	return jobs.journal.WhileLeading(ctx)
}

const (
	leadPoll     = time.Second // between looks whether this process leads
	declinePause = time.Second // before a job is offered again after the journal has failed
)
