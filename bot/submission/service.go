package submission

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// A Service answers for one repository. Open makes one; Run does the work.
type Service struct {
	opt  check.Options // base, policy and how to measure; the same for every submission
	log  *slog.Logger
	root string // of the repository
	dir  string // of the submissions
	lock *os.File

	claims  claims
	machine sync.Mutex // held while something is compiled or measured, which must not disturb each other
	wake    chan struct{}

	submitting sync.Mutex // held by Submit

	mu      sync.Mutex
	all     []*Submission // in the order in which they came
	kernels map[string]check.Described
	served  []string      // owners of what was measured, the last one at the end
	now     runners.Event // of the running one
	changed chan struct{} // closed when a state or the progress changes
}

// Open opens the submissions of the repository that contains the folder of the options. Only one
// program may have them open.
func Open(ctx context.Context, opt check.Options, log *slog.Logger) (*Service, error) {
	repo, err := checkout.Open(ctx, cmp.Or(opt.Dir, "."))
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	if opt.Base == "" {
		if opt.Base, err = repo.DefaultBase(ctx); err != nil {
			return nil, usage.Error{Err: err}
		}
	}
	if _, err := repo.Resolve(ctx, opt.Base); err != nil {
		return nil, usage.Error{Err: err}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	results := filepath.Join(repo.Dir(), "results")
	s := &Service{
		opt: opt, log: log, root: repo.Dir(), dir: filepath.Join(results, "submissions"), wake: make(chan struct{}, 1), kernels: map[string]check.Described{},
		changed: make(chan struct{}),
	}
	s.claims.file = filepath.Join(s.dir, "claims.jsonl")
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of submissions: %w", err)
	}
	if err := check.Ignore(results); err != nil {
		return nil, err
	}
	if s.lock, err = os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("opening the submissions: %w", err)
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		s.lock.Close()
		return nil, usage.Errorf("another kernelgate mcp works in %s (use it, or end it)", s.root)
	}
	if err := s.load(); err != nil {
		s.lock.Close()
		return nil, err
	}
	return s, nil
}

// Close lets another program open the submissions.
func (s *Service) Close() error { return s.lock.Close() }

const stateFile = "submission.json"

// load reads what earlier programs left. What they did not finish is done again.
func (s *Service) load() error {
	files, err := filepath.Glob(filepath.Join(s.dir, "*", stateFile))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		one := new(Submission)
		if err == nil {
			err = json.Unmarshal(data, one)
		}
		if err != nil {
			return fmt.Errorf("reading a submission: %s: %w (remove its folder)", file, err)
		}
		if one.State == Running {
			one.State = Queued
		}
		s.all = append(s.all, one)
	}
	slices.SortStableFunc(s.all, func(a, b *Submission) int { return a.Created.Compare(b.Created) })
	s.poke()
	return nil
}

// store writes a submission, as a whole.
func (s *Service) store(one *Submission) error {
	dir := filepath.Join(s.dir, one.Handle)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("storing the submission: %w", err)
	}
	data, err := json.MarshalIndent(one, "", "  ")
	file := filepath.Join(dir, stateFile)
	if err == nil {
		err = os.WriteFile(file+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("storing the submission: %w", err)
	}
	return nil
}

func (s *Service) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// change runs while nobody reads, and wakes those who wait for a change.
func (s *Service) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// find returns a copy of a submission; nil if there is none.
func (s *Service) find(handle string) *Submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Handle == handle {
			return one.clone()
		}
	}
	return nil
}

// of finds a submission of a token. To others it does not exist.
func (s *Service) of(token, handle string) (*Submission, error) {
	one := s.find(handle)
	if one == nil || one.Token != token {
		return nil, usage.Errorf("there is no submission %q (history lists yours)", handle)
	}
	return one, nil
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
	s.submitting.Lock()
	defer s.submitting.Unlock()
	digest := asked.digest(intent)
	handle := newHandle(token, cmp.Or(key, digest))
	if known, err := s.of(token, handle); err == nil {
		if known.Digest != digest {
			return Status{}, usage.Errorf("idempotency_key %q was used for a different submission (choose a new one)", key)
		}
		status, err := s.Status(ctx, token, handle)
		status.Repeated = true
		return status, err
	}
	kernel, head, err := s.headOf(ctx, asked)
	if err != nil {
		return Status{}, err
	}
	if _, err := s.git(ctx, nil, "", "update-ref", refPrefix+handle, head); err != nil {
		return Status{}, err
	}
	one := &Submission{
		Handle: handle, Token: token, Intent: intent, Asked: asked, Digest: digest, Kernel: kernel.Manifest.Name, Base: kernel.Commit, Head: head,
		State: Queued, Created: s.opt.Now().UTC(),
	}
	if s.open(token) >= maxQueued {
		return Status{}, usage.Errorf("%d of your submissions are not finished (wait for one of them)", maxQueued)
	}
	if err := s.store(one); err != nil {
		return Status{}, err
	}
	s.change(func() { s.all = append(s.all, one) })
	s.poke()
	return s.Status(ctx, token, handle)
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
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", token, key))
	return hex.EncodeToString(sum[:6])
}

// headOf finds or makes the commit of what is asked.
func (s *Service) headOf(ctx context.Context, asked Asked) (check.Described, string, error) {
	kernel, err := s.described(ctx, asked.Kernel)
	if err != nil {
		return kernel, "", err
	}
	if asked.Ref != "" {
		repo, err := checkout.Open(ctx, s.root)
		if err != nil {
			return kernel, "", err
		}
		head, err := repo.Resolve(ctx, asked.Ref)
		if err != nil {
			return kernel, "", usage.Error{Err: fmt.Errorf("ref: %w", err)}
		}
		return kernel, head, nil
	}
	if err := checkNames(kernel, asked.Files); err != nil {
		return kernel, "", err
	}
	head, err := s.commit(ctx, kernel, asked.Files)
	return kernel, head, err
}

// Run works until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	for {
		one := s.next()
		if one == nil {
			select {
			case <-s.wake:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		err := s.work(ctx, one)
		if ctx.Err() != nil {
			return nil // it stays unfinished, and is done again by the next program
		}
		if err != nil {
			return err
		}
	}
}

// next starts the submission whose turn it is.
func (s *Service) next() (one *Submission) {
	s.change(func() {
		if queue := s.queue(); len(queue) > 0 {
			one = queue[0]
			one.State, s.served = Running, append(slices.DeleteFunc(s.served, func(token string) bool { return token == one.Token }), one.Token)
			s.now = runners.Event{Text: "starting"}
		}
	})
	return one
}

// queue is what waits, in the order in which it will be measured. Owners take turns, beginning with the
// one who was not served for the longest time; the submissions of one owner keep their order. So
// nobody waits for all submissions of another.
func (s *Service) queue() []*Submission {
	type place struct{ lap, turn int } // the n-th submission of its owner, and the owner's turn
	places, laps := map[*Submission]place{}, map[string]int{}
	var queue []*Submission
	for _, one := range s.all {
		if one.State == Queued {
			places[one] = place{laps[one.Token], slices.Index(s.served, one.Token)}
			laps[one.Token]++
			queue = append(queue, one)
		}
	}
	slices.SortStableFunc(queue, func(a, b *Submission) int {
		return cmp.Or(cmp.Compare(places[a].lap, places[b].lap), cmp.Compare(places[a].turn, places[b].turn))
	})
	return queue
}

// progress keeps the last event of the run.
type progress struct{ s *Service }

func (p progress) Report(e runners.Event) {
	e.SoFar, e.Detail = nil, "" // exact figures
	p.s.change(func() { p.s.now = e })
}

// Status returns how far a submission is.
func (s *Service) Status(_ context.Context, token, handle string) (Status, error) {
	if _, err := s.of(token, handle); err != nil {
		return Status{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status(handle), nil
}

func (s *Service) status(handle string) Status {
	i := slices.IndexFunc(s.all, func(one *Submission) bool { return one.Handle == handle })
	if i < 0 {
		return Status{}
	}
	one := s.all[i]
	st := Status{Handle: handle, Kernel: one.Kernel, Intent: one.Intent, State: one.State, Created: one.Created, Seconds: s.expected(one), Cost: costs[one.Intent]}
	switch one.State {
	case Queued:
		st.Ahead = slices.Index(s.queue(), one)
		if slices.ContainsFunc(s.all, func(other *Submission) bool { return other.State == Running }) {
			st.Ahead++
		}
	case Running:
		st.Step, st.Finished, st.Total, st.Left = s.now.Text, s.now.Done, s.now.Total, float64(s.now.Left)
		if s.now.Gate != "" {
			st.Step = string(s.now.Gate) + ": " + stepText(s.now)
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
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		status, err := s.Status(ctx, token, handle)
		if err != nil || status.State == Done {
			return status, err
		}
		report(status)
		select {
		case <-changed:
		case <-ctx.Done():
			return status, nil
		}
	}
}

// described reads a kernel once for each state of the base.
func (s *Service) described(ctx context.Context, name string) (check.Described, error) {
	base, err := s.git(ctx, nil, "", "rev-parse", "--verify", s.opt.Base+"^{commit}")
	if err != nil {
		return check.Described{}, err
	}
	key := name + "\x00" + base
	s.mu.Lock()
	known, ok := s.kernels[key]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	opt := s.opt
	opt.Head, opt.Kernels = base, []string{name}
	kernel, err := check.Describe(ctx, opt)
	if err != nil {
		return kernel, err
	}
	s.mu.Lock()
	s.kernels[key] = kernel
	s.mu.Unlock()
	return kernel, nil
}
