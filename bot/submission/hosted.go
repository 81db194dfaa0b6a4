package submission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// Parts of a bot that a Hosted needs.
type (
	// A Journal keeps events. *journal.Journal is one.
	Journal interface {
		Append(ctx context.Context, name string, after uint64, kind string, event any) (uint64, error)
		ReplayRun(ctx context.Context, name string, do func(journal.Event) error) (uint64, error)
		ReplayRunAfter(ctx context.Context, name string, after uint64, do func(journal.Event) error) (uint64, error)
		Term() (uint64, error)
		WhileLeading(ctx context.Context) (context.Context, func(), error)
		Leads() bool
	}
	// Blobs keeps large values by name. *journal.Blobs is one.
	Blobs interface {
		Pack(ctx context.Context, name string, data []byte) error
		Read(ctx context.Context, name string) ([]byte, error)
		Get(ctx context.Context, name string) (io.ReadCloser, string, error)
	}
	// A Queue hands jobs to runners. *jobs.Queue is one.
	Queue interface {
		Enqueue(ctx context.Context, job jobs.Job) error
		Cancel(ctx context.Context, id string) (bool, error)
		Position(id string) (scheduler.Position, bool)
	}
	// A Planner reads repositories. *planner.Planner is one.
	Planner interface {
		Tip(ctx context.Context, repo, branch string) (string, error)
		Kernels(ctx context.Context, b planner.Branch) ([]string, error)
		Describe(ctx context.Context, b planner.Branch, kernel string) (plan.Described, error)
		Draft(ctx context.Context, b planner.Branch, d planner.Draft) (planner.Drafted, error)
	}
)

// HostedOptions are the parts of a bot, and who may ask about what.
type HostedOptions struct {
	Journal            Journal
	Queue              Queue
	Bundles, Artifacts Blobs
	Planner            Planner

	// Repositories are the names of those that the bot works on, by GitHub's number, and whether that is all of them:
	// a bot that has just begun to lead has to list them first. DefaultBranch asks for the branch that candidates are
	// compared with.
	Repositories  func() (names map[int64]string, all bool)
	DefaultBranch func(ctx context.Context, repo string) (string, error)
	// Owners lists those who have a token now, and May says whether the token of one is for a repository.
	Owners func() []string
	May    func(owner, repo string) bool
	// Judged hears of every verdict on a runner's evidence, with the runner's fault or "".
	Judged func(ctx context.Context, runner, kernel, fault string)

	Now func() time.Time
	Log *slog.Logger
}

// A Hosted is the service of a bot. Submissions are about kernels of the repositories that the bot works on, its
// fleet measures them as it does the code of a fork, and its journal keeps them. Only the bot that leads answers
// and works. GitHub never hears of a submission.
type Hosted struct {
	*Service
	HostedOptions

	described kernelCache
	claimed   claimCache
	branches  moments[string]
	tips      moments[string]

	entering sync.Mutex
	ledIn    uint64           // the term in which everything in memory was read
	rolls    map[string]*roll // by owner
}

// A roll is what was read of an owner in one term.
type roll struct {
	mu   sync.Mutex // held while the submissions of the owner are read, and while one of them is written
	read bool
	seq  uint64 // of the last event of the index
}

// NewHosted makes a service. Run starts what earlier bots have left.
func NewHosted(o HostedOptions) *Hosted {
	h := &Hosted{HostedOptions: o, rolls: map[string]*roll{}}
	h.Service = newService(h, o.Now, o.Log)
	h.branches, h.tips = moments[string]{now: o.Now, keep: 5 * time.Minute}, moments[string]{now: o.Now, keep: 10 * time.Second}
	return h
}

// A repository is one that the bot works on.
type repository struct {
	id   int64
	name string
}

// A work is what the fleet of a bot needs to know of a submission, and what it has left.
type work struct {
	Repo   int64    `json:"repo"`
	Name   string   `json:"name"`   // of the repository
	Folder string   `json:"folder"` // of the kernel
	Bundle string   `json:"bundle,omitempty"`
	Labels []string `json:"labels,omitempty"`

	Lease    uint64 `json:"lease,omitempty"` // that the result came under
	Runner   string `json:"runner,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	Report   string `json:"report,omitempty"`
	Log      string `json:"log,omitempty"`
}

// work is what is known of a kernel before anything is submitted; nil on this disk.
func (k kernel) work() *work {
	if k.repo.id == 0 {
		return nil
	}
	return &work{Repo: k.repo.id, Name: k.repo.name, Folder: k.Key}
}

// allowed is the repositories that an owner may ask about now, by name, and whether that is all of them.
func (h *Hosted) allowed(owner string) (may []repository, all bool) {
	names, all := h.Repositories()
	for id, name := range names {
		if h.May(owner, name) {
			may = append(may, repository{id, name})
		}
	}
	slices.SortFunc(may, func(a, b repository) int { return strings.Compare(a.name, b.name) })
	return may, all
}

// ErrNotListed refuses nobody: the bot cannot tell yet what a token is for.
const ErrNotListed AskAgain = "this bot has just begun to lead and does not know all of its repositories yet (ask again)"

// maxListed bounds the repositories whose kernels one answer lists.
const maxListed = 20

func (h *Hosted) kernels(ctx context.Context, owner string) ([]string, error) {
	var names []string
	may, all := h.allowed(owner)
	if !all {
		return nil, ErrNotListed
	}
	for _, r := range may[:min(maxListed, len(may))] {
		b, err := h.branchOf(ctx, r)
		if err != nil {
			return nil, err
		}
		folders, err := h.Planner.Kernels(ctx, b)
		if err != nil {
			return nil, err
		}
		for _, folder := range folders {
			names = append(names, r.name+":"+folder)
		}
	}
	if len(names) == 0 {
		return nil, usage.Errorf("this token is for no repository with kernels that the bot works on now (ask its operator)")
	}
	return names, nil
}

// find reads owner/name:KERNEL. Who may not ask about a repository learns no more than who asks about none.
func (h *Hosted) find(owner, text string) (repository, string, error) {
	may, all := h.allowed(owner)
	repo, name, ok := strings.Cut(text, ":")
	if i := slices.IndexFunc(may, func(r repository) bool { return strings.EqualFold(r.name, repo) }); ok && i >= 0 {
		return may[i], name, nil
	}
	switch {
	case !all:
		return repository{}, "", ErrNotListed
	case len(may) == 0:
		return repository{}, "", usage.Errorf("kernel: this token is for no repository that the bot works on now (ask its operator)")
	case !ok && len(may) == 1:
		return may[0], text, nil
	case !ok:
		return repository{}, "", usage.Errorf("kernel: %.100q does not say in which repository (write owner/name:KERNEL, as describe lists it)", text)
	}
	return repository{}, "", usage.Errorf("kernel: this token is for no repository %.100q (describe without a kernel lists what it is for)", repo)
}

func (h *Hosted) branchOf(ctx context.Context, r repository) (planner.Branch, error) {
	name, err := h.branches.get(r.name, func() (string, error) { return h.DefaultBranch(ctx, r.name) })
	return planner.Branch{Repo: r.name, Name: name}, err
}

// kernel reads a kernel once for each tip of its default branch.
func (h *Hosted) kernel(ctx context.Context, owner, text string) (kernel, error) {
	r, name, err := h.find(owner, text)
	if err != nil {
		return kernel{}, err
	}
	b, err := h.branchOf(ctx, r)
	if err != nil {
		return kernel{}, err
	}
	tip, err := h.tips.get(r.name, func() (string, error) { return h.Planner.Tip(ctx, r.name, b.Name) })
	if err != nil {
		return kernel{}, err
	}
	return h.described.get(quoted(fmt.Sprint(r.id), tip, name), func() (kernel, error) {
		d, err := h.Planner.Describe(ctx, b, name)
		if err != nil {
			return kernel{}, err
		}
		return kernel{Described: check.Described{Described: d, NoDevice: measuredBy(d.Policy.Devices)}, repo: r}, nil
	})
}

// measuredBy says who measures a submission.
func measuredBy(d policy.Devices) string {
	if len(d.Each()) < 2 {
		return "A runner of the bot measures it."
	}
	return fmt.Sprintf("A runner with the label %s measures it. A pull request is measured on %s.", d.First(), strings.Join(d.Each(), ", "))
}

// parts of the policy by intent.
var parts = map[result.Intent]runners.Part{result.Probe: runners.PartProbe, result.Claim: "", onlyCompile: runners.PartStatic}

// draft packs a job for the fleet.
func (h *Hosted) draft(ctx context.Context, k kernel, one *Submission) error {
	b, err := h.branchOf(ctx, k.repo)
	if err != nil {
		return err
	}
	d, err := h.Planner.Draft(ctx, b, planner.Draft{Kernel: k.Key, Files: one.Asked.Files, Ref: one.Asked.Ref, Part: parts[one.Intent]})
	if err != nil {
		return err
	}
	one.Head, one.Base, one.Asked.Files = d.Head, d.Base, nil // the bundle has the files
	one.Work = k.work()
	one.Work.Bundle, one.Work.Labels = d.Bundle, d.Labels
	if d.Decided == nil {
		return nil
	}
	v := gates.Judge(d.Job.Policy, d.Job.PolicyFile, d.Decided)
	one.decided = &outcome{got: &check.Result{Measured: runners.Measured{Evidence: d.Decided}, Verdict: v}, gate: d.Job.Rule().Gates.Performance}
	return nil
}

// static has the fleet compile, and waits for that as long as a request may take.
func (h *Hosted) static(ctx context.Context, k kernel, one *Submission) (*Static, error) {
	for key := quoted("static", k.Commit, one.Asked.digest(onlyCompile)); ; key += " again" {
		status, err := h.submit(ctx, one.Token, one.Asked, onlyCompile, key)
		if err != nil {
			return nil, err
		}
		waiting, cancel := context.WithTimeout(ctx, staticWait)
		now, err := h.Wait(waiting, one.Token, status.Handle, func(Status) {})
		cancel()
		if err != nil {
			return nil, err
		}
		if now.State != Done {
			return nil, usage.Errorf("a runner compiles it later, %d jobs are before it: call check_static with the same files again", now.Ahead)
		}
		done, err := h.finished(ctx, one.Token, status.Handle)
		switch {
		case err != nil:
			return nil, err
		case done.Static != nil:
			return done.Static, nil
		case !status.Repeated:
			return nil, usage.Errorf("it was not compiled: %s", done.Result.Summary)
		}
	}
}

// staticWait is how long check_static waits for a runner.
const staticWait = 45 * time.Second

// start enqueues a job, or finishes a submission that needs none. Enqueueing twice does nothing.
func (h *Hosted) start(ctx context.Context, one *Submission) error {
	if one.decided != nil {
		return nil // it was kept with its result
	}
	w := one.Work
	if w.Bundle == "" {
		return h.finish(ctx, one, "", 0, outcome{err: errors.New("the bot has restarted before it was judged (submit it again with another idempotency_key)")})
	}
	return h.Queue.Enqueue(ctx, jobs.Job{Bundle: w.Bundle, Job: scheduler.Job{
		// Their time is counted apart from the repository's own, so that agents use up no limit of its pull requests.
		ID: subjectOf(one), Class: scheduler.Submission, Repo: "submissions to " + w.Name, Author: one.Token, Kernel: one.Kernel, Labels: w.Labels,
	}})
}

func (h *Hosted) ahead(one *Submission) int {
	place, _ := h.Queue.Position(subjectOf(one))
	return place.Ahead
}

// How often unfinished submissions are looked after, and how soon after this bot begins to lead or something could not be
// started.
const (
	restartEvery = 10 * time.Second
	restartSoon  = time.Second
)

// Run starts what earlier bots have left, and what could not be started, whenever this bot leads, until ctx
// ends.
func (h *Hosted) Run(ctx context.Context) error {
	var done uint64 // the term in which everything was started
	var at time.Time
	for {
		term, err := h.Journal.Term()
		if err == nil && h.Journal.Leads() && (term != done || time.Since(at) >= restartEvery) {
			at = time.Now()
			if done = 0; h.restart(ctx) {
				done = term
			}
		}
		select {
		case <-time.After(restartSoon):
		case <-ctx.Done():
			return nil
		}
	}
}

// restart reports whether it could start everything.
func (h *Hosted) restart(ctx context.Context) bool {
	all := true
	for _, owner := range h.Owners() {
		if err := h.enter(ctx, owner); err != nil {
			all = false
			h.log.Warn("the submissions of an owner are read later", "owner", owner, "err", err)
		}
	}
	h.mu.Lock()
	var open []*Submission
	for _, one := range h.all {
		if one.State != Done {
			open = append(open, new(*one))
		}
	}
	h.mu.Unlock()
	for _, one := range open {
		if err := h.start(ctx, one); err != nil && ctx.Err() == nil {
			all = false
			h.log.Warn("a submission is started later", "submission", one.id(), "err", err)
		}
	}
	return all
}

// Counts says how many submissions are in memory, by state.
func (h *Hosted) Counts() map[State]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := map[State]int{}
	for _, one := range h.all {
		n[one.State]++
	}
	return n
}

// short names text in a subject of the journal, which takes fewer characters than names have.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// moments keeps answers for a moment.
type moments[T any] struct {
	now  func() time.Time
	keep time.Duration
	mu   sync.Mutex
	has  map[string]moment[T]
}

type moment[T any] struct {
	value T
	at    time.Time
}

// forget drops all answers.
func (m *moments[T]) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.has)
}

func (m *moments[T]) get(key string, ask func() (T, error)) (T, error) {
	m.mu.Lock()
	known, ok := m.has[key]
	m.mu.Unlock()
	now := m.now()
	if ok && now.Sub(known.at) < m.keep {
		return known.value, nil
	}
	value, err := ask()
	if err != nil {
		return value, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.has == nil {
		m.has = map[string]moment[T]{}
	}
	maps.DeleteFunc(m.has, func(_ string, old moment[T]) bool { return now.Sub(old.at) >= m.keep })
	m.has[key] = moment[T]{value, now}
	return value, nil
}
