package submission

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// A Service answers the owners of tokens. Everything that decides is here; where sources come from, who
// measures, and where things are kept is the place's.
type Service struct {
	place place
	clock func() time.Time
	log   *slog.Logger

	mu         sync.Mutex
	all        []*Submission            // in the order in which they came, see forget
	submitting map[string]*sync.Mutex   // by owner: held by Submit
	running    map[string]runners.Event // by id of a submission
	changed    chan struct{}            // closed when a state or the progress changes
}

// A place is where two services differ: one of a repository on this disk, which this machine measures, and one
// of the repositories of a bot, which its fleet measures.
type place interface {
	// term numbers the time for which this program leads, and may answer. whileLeading returns a context that ends
	// with it, and what frees that context. enter reads what earlier programs have left of an owner.
	term() (uint64, error)
	whileLeading(ctx context.Context) (leading context.Context, free func(), err error)
	enter(ctx context.Context, owner string) error
	// kernels lists what an owner may ask about. kernel reads one of them, as the base branch has it now.
	kernels(ctx context.Context, owner string) ([]string, error)
	kernel(ctx context.Context, owner, name string) (kernel, error)
	// draft makes work of what is asked. It fills in the head.
	draft(ctx context.Context, k kernel, one *Submission) error
	// static compiles a draft, without running it.
	static(ctx context.Context, k kernel, one *Submission) (*Static, error)

	// keep stores a submission that is new or has changed. kept reads one, nil if there is none.
	keep(ctx context.Context, one *Submission) error
	kept(ctx context.Context, owner, handle string) (*Submission, error)
	// file reads a text that was written with the result, and evidence what the result is about.
	file(ctx context.Context, one *Submission, name string) (string, error)
	evidence(ctx context.Context, one *Submission) (*gates.Evidence, error)

	// claims returns the claims of the kernel of a submission, or more. claim adds one, unless there are more
	// claims of the kernel than were returned: then it returns errRaced.
	claims(ctx context.Context, of *Submission) (claimList, error)
	claim(ctx context.Context, of *Submission, after claimList, one claim) error

	// start has a submission measured. ahead counts those that are measured before it.
	start(ctx context.Context, one *Submission) error
	ahead(one *Submission) int
}

// A kernel is one that an owner may ask about.
type kernel struct {
	check.Described
	repo repository // that it is in; zero for the one on this disk
}

func newService(p place, now func() time.Time, log *slog.Logger) *Service {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Service{place: p, clock: now, log: log, submitting: map[string]*sync.Mutex{}, running: map[string]runners.Event{}, changed: make(chan struct{})}
}

// change runs while nobody reads, and wakes those who wait for a change.
func (s *Service) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// known returns a copy of a submission that is in memory; nil if it is not. To others it does not exist.
func (s *Service) known(owner, handle string) *Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Handle == handle && one.Token == owner {
			return new(*one)
		}
	}
	return nil
}

// of finds a submission of an owner, as far as it is in memory. To others it does not exist.
func (s *Service) of(ctx context.Context, owner, handle string) (*Submission, error) {
	one := s.known(owner, handle)
	if one == nil && isHandle(handle) {
		var err error
		if one, err = s.place.kept(ctx, owner, handle); err != nil {
			return nil, err
		}
	}
	if one == nil || one.Token != owner {
		return nil, usage.Errorf("there is no submission %.40q (history lists yours)", handle)
	}
	return one, nil
}

// whole is a submission with its whole result.
func (s *Service) whole(ctx context.Context, owner, handle string) (*Submission, error) {
	one, err := s.of(ctx, owner, handle)
	if err != nil || !one.brief {
		return one, err
	}
	one, err = s.place.kept(ctx, owner, handle)
	if err == nil && one == nil {
		err = usage.Errorf("submission %s is not stored any more", handle)
	}
	return one, err
}

// finished is a submission that is done.
func (s *Service) finished(ctx context.Context, owner, handle string) (*Submission, error) {
	one, err := s.whole(ctx, owner, handle)
	if err == nil && one.State != Done {
		err = usage.Errorf("submission %s is %s: ask for its status until it is done", handle, one.State)
	}
	return one, err
}

// turnOf is held by the one Submit of an owner that works: others of the same owner wait, so that all are counted.
func (s *Service) turnOf(owner string) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.submitting[owner] == nil {
		s.submitting[owner] = new(sync.Mutex)
	}
	return s.submitting[owner]
}

// Submit queues a submission and returns at once. The same key, or without a key the same content,
// returns the submission that was made before.
func (s *Service) Submit(ctx context.Context, token string, asked Asked, intent result.Intent, key string) (Status, error) {
	asked, err := asked.ready()
	if err != nil {
		return Status{}, err
	}
	if !slices.Contains(result.Intents(), intent) {
		return Status{}, usage.Errorf("intent: %q is not one of probe, claim", intent)
	}
	if len(key) > maxKey {
		return Status{}, usage.Errorf("idempotency_key has %d bytes (at most %d)", len(key), maxKey)
	}
	return answer(ctx, s, token, func(ctx context.Context) (Status, error) { return s.submit(ctx, token, asked, intent, key) })
}

func (s *Service) submit(ctx context.Context, token string, asked Asked, intent result.Intent, key string) (Status, error) {
	turn := s.turnOf(token)
	turn.Lock()
	defer turn.Unlock()
	digest := asked.digest(intent)
	handle := newHandle(token, cmp.Or(key, digest))
	known, err := s.of(ctx, token, handle)
	switch bad := (usage.Error{}); {
	case err != nil && !errors.As(err, &bad):
		return Status{}, err
	case err == nil:
		if known.Digest != digest {
			return Status{}, usage.Errorf("idempotency_key %q was used for a different submission (choose a new one)", key)
		}
		status := s.status(known)
		status.Repeated = true
		return status, nil
	}
	if s.open(token) >= maxQueued {
		return Status{}, usage.Errorf("%d of your submissions are not finished (wait for one of them)", maxQueued)
	}
	k, err := s.place.kernel(ctx, token, asked.Kernel)
	if err != nil {
		return Status{}, err
	}
	if err := checkNames(k.Described, asked.Files); err != nil {
		return Status{}, err
	}
	one := &Submission{
		Handle: handle, Token: token, Intent: intent, Asked: asked, Digest: digest, Kernel: k.Manifest.Name, Base: k.Commit, State: Queued, Created: s.clock().UTC(),
	}
	if err := s.place.draft(ctx, k, one); err != nil {
		return Status{}, err
	}
	if err := s.place.keep(ctx, one); err != nil {
		return Status{}, fmt.Errorf("it is not known whether the submission was stored (submit it again with the same idempotency_key): %w", err)
	}
	s.change(func() {
		if s.index(one) < 0 { // it was perhaps read from the store meanwhile
			s.all = append(s.all, one)
		}
	})
	if err := s.place.start(ctx, one); err != nil { // it is stored, so it is started again
		s.log.Warn("a submission is started later", "handle", handle, "err", err)
	}
	return s.statusOf(ctx, token, handle)
}

// index is where a submission is in memory, or -1. It is called with the lock held.
func (s *Service) index(of *Submission) int {
	return slices.IndexFunc(s.all, func(one *Submission) bool { return one.Handle == of.Handle && one.Token == of.Token })
}

// open counts the submissions of a token that are not finished.
func (s *Service) open(token string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Token == token && one.State != Done {
			n++
		}
	}
	return n
}

// newHandle names a submission. A handle is no secret: it says nothing to others.
func newHandle(token, key string) string {
	sum := sha256.Sum256([]byte(quoted(token, key)))
	return hex.EncodeToString(sum[:6])
}

// isHandle reports whether newHandle could have made it. Nothing else is looked for in a store.
func isHandle(text string) bool {
	data, err := hex.DecodeString(text)
	return err == nil && len(data) == 6 && hex.EncodeToString(data) == text
}

// done replaces a submission by its result. Memory keeps a short form of it.
func (s *Service) done(ended *Submission) {
	s.change(func() {
		delete(s.running, ended.id())
		if i := s.index(ended); i >= 0 {
			s.all[i] = ended.short()
		}
		s.forget(ended.Token)
	})
}

// forget drops the oldest finished submissions of an owner from memory, beyond what a history shows.
func (s *Service) forget(owner string) {
	n := 0
	for _, one := range s.all {
		if one.Token == owner && one.State == Done {
			n++
		}
	}
	s.all = slices.DeleteFunc(s.all, func(one *Submission) bool {
		old := n > maxHistory && one.Token == owner && one.State == Done
		if old {
			n--
		}
		return old
	})
}

// progressed keeps the last event of a run.
func (s *Service) progressed(id string, e runners.Event) {
	e.SoFar, e.Detail = nil, "" // exact figures
	s.change(func() { s.running[id] = e })
}

// Status returns how far a submission is.
func (s *Service) Status(ctx context.Context, token, handle string) (Status, error) {
	return answer(ctx, s, token, func(ctx context.Context) (Status, error) { return s.statusOf(ctx, token, handle) })
}

func (s *Service) statusOf(ctx context.Context, token, handle string) (Status, error) {
	one, err := s.of(ctx, token, handle)
	if err != nil {
		return Status{}, err
	}
	return s.status(one), nil
}

func (s *Service) status(one *Submission) Status {
	st := Status{Handle: one.Handle, Kernel: one.Kernel, Intent: one.Intent, State: one.State, Created: one.Created, Cost: costs[one.Intent]}
	if one.State == Queued {
		st.Ahead = s.place.ahead(one)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Seconds = s.expected(one)
	if now, known := s.running[one.id()]; known && one.State == Running {
		st.Step, st.Finished, st.Total, st.Left = now.Text, now.Done, now.Total, float64(now.Left)
		if now.Gate != "" {
			st.Step = string(now.Gate) + ": " + stepText(now)
		}
	}
	return st
}

// stepText leaves out names of cases, which may be secret.
func stepText(e runners.Event) string {
	if e.Gate == gates.GateBuild || e.Unit == "rounds" {
		return e.Text
	}
	return "working"
}

var costs = map[result.Intent]string{
	result.Probe: "nothing",
	result.Claim: "one machine code of today's budget, unless the same machine code was claimed before",
}

// expected is how long submissions of the same intent and kernel took on average.
func (s *Service) expected(like *Submission) float64 {
	total, n := 0.0, 0
	for _, one := range s.all {
		if one.State == Done && one.Kernel == like.Kernel && one.Intent == like.Intent && one.Result != nil && one.Result.Reason != result.ReasonBudget {
			total, n = total+one.Ended.Sub(one.Created).Seconds(), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return total / float64(n)
}

// Wait waits until the submission is done or ctx ends, and reports each change.
func (s *Service) Wait(ctx context.Context, token, handle string, report func(Status)) (Status, error) {
	return answer(context.WithoutCancel(ctx), s, token, func(leading context.Context) (Status, error) {
		waiting, cancel := context.WithCancel(leading)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return s.wait(waiting, token, handle, report)
	})
}

func (s *Service) wait(ctx context.Context, token, handle string, report func(Status)) (Status, error) {
	for last := (Status{}); ; {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		status, err := s.statusOf(context.WithoutCancel(ctx), token, handle)
		if err != nil || status.State == Done {
			return status, err
		}
		if status != last {
			report(status)
			last = status
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return status, nil
		}
	}
}

// File reads the report or the build log of a submission.
func (s *Service) File(ctx context.Context, token, handle, name string) (string, error) {
	return answer(ctx, s, token, func(ctx context.Context) (string, error) {
		one, err := s.finished(ctx, token, handle)
		if err != nil {
			return "", err
		}
		return s.place.file(ctx, one, name)
	})
}

// Verdict returns the result of a submission that is done.
func (s *Service) Verdict(ctx context.Context, token, handle string) (*result.Result, error) {
	return answer(ctx, s, token, func(ctx context.Context) (*result.Result, error) {
		one, err := s.finished(ctx, token, handle)
		if err != nil {
			return nil, err
		}
		return one.Result, nil
	})
}

// Why explains the result of a submission that is done.
func (s *Service) Why(ctx context.Context, token, handle string) (*Why, error) {
	return answer(ctx, s, token, func(ctx context.Context) (*Why, error) {
		one, err := s.finished(ctx, token, handle)
		switch {
		case err != nil:
			return nil, err
		case one.Why == nil:
			return &Why{Handle: handle, Text: one.Result.Summary, Gates: []Gate{}}, nil
		}
		return one.Why, nil
	})
}
