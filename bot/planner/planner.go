// Package planner turns a change as GitHub tells it into a plan: which kernels it
// touches, by which rules they are judged, and a bundle for a runner for each. It
// reads repositories and writes bundles; it queues and decides nothing.
package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
)

// Mirrors holds copies of repositories.
type Mirrors interface {
	Fetch(ctx context.Context, repo string, refs ...string) (*checkout.Repo, error)
	// FetchHead need not fetch a head that was brought along since Soon announced it.
	FetchHead(ctx context.Context, repo, head string, refs ...string) (*checkout.Repo, error)
	Soon(repo, head, ref string)
	// Submodule is another repository with a commit, by the address that a submodule of the first has.
	Submodule(ctx context.Context, of, address, commit string) (*checkout.Repo, error)
}

// Bundles keeps bundles for runners.
type Bundles interface {
	Put(ctx context.Context, name string, r io.Reader) (digest string, err error)
}

// A Planner makes plans.
type Planner struct {
	Mirrors Mirrors
	Bundles Bundles
	History History // nil where nobody remembers merges
	Scratch string  // folder; "" is the system's
	Version string
	Now     func() time.Time
	Fetcher *recordings.Fetcher // of recorded inputs; nil where none are fetched
	Timeout time.Duration       // of reading one change, once it is fetched; 2 minutes unless given

	known known
}

// ErrMoved says that a head is not what it was a moment ago: ask GitHub again.
var ErrMoved = errors.New("it has moved on")

// ErrBaseGone says that the branch that a change goes to does not exist.
var ErrBaseGone = errors.New("the branch is gone")

// DefaultCheck is the required check's name where no policy names another.
const DefaultCheck = "kernelgate"

// A Proposal is a plan, and the evidence about kernels that need no runner.
type Proposal struct {
	change.Plan
	Evidence map[string]*gates.Evidence // by the kernel's key
	// NewPolicy is the one that the base branch would have by this change; nil where that
	// is the same, or none that can be read.
	NewPolicy *policy.Policy
	NewText   string // its
	// QueueBranch is the branch of a merge group that has the head of this pull request; empty where there is none.
	QueueBranch string
}

// Plan looks at a change. Mistakes in the base's files are part of the plan; an
// error means that it could not be looked at now.
func (p *Planner) Plan(ctx context.Context, id change.ID, f change.Facts) (Proposal, error) {
	s := p.survey(id, f)
	defer s.close()
	var err error
	s.repo, err = p.Mirrors.FetchHead(ctx, f.Repo, f.Head, refsOf(id, f)...)
	if err == nil {
		err = p.within(ctx, func(ctx context.Context) error {
			if err := s.settle(ctx); err != nil {
				return err
			}
			return s.plan(ctx)
		})
	}
	if s.refused(err) {
		if s.out.Rules == "" { // decisions on a change that is not read hold for the rules of its base, too
			if s.out.Rules, _, err = p.Rules(ctx, f.Repo, f.Base); err != nil {
				return Proposal{}, err
			}
		}
		return s.out, nil
	}
	if err != nil {
		return Proposal{}, fmt.Errorf("planning %s at %.12s: %w", f.Repo, f.Head, err)
	}
	return s.out, nil
}

// Prefetch says that a change is going to be planned: whatever is fetched meanwhile may bring
// it along.
func (p *Planner) Prefetch(id change.ID, f change.Facts) {
	if id.Kind == change.Pull && f.Head != "" {
		p.Mirrors.Soon(f.Repo, f.Head, pullRef(id.Number))
	}
}

// maxPaths bounds how many changed files a plan remembers.
const maxPaths = 500

// A survey is one look at one change.
type survey struct {
	planner *Planner
	id      change.ID
	facts   change.Facts
	repo    *checkout.Repo
	base    string // where the head left the base branch
	trusted string // whose policy and manifests hold
	scratch string
	out     Proposal
}

// refsOf is the refs that lead to a change.
func refsOf(id change.ID, f change.Facts) []string {
	var refs []string
	if id.Kind == change.Pull {
		refs = append(refs, pullRef(id.Number))
	}
	for _, m := range f.Members {
		if m.Number > 0 {
			refs = append(refs, pullRef(m.Number))
		}
	}
	return refs
}

// survey is of a change that is still to be fetched, or was refused.
func (p *Planner) survey(id change.ID, f change.Facts) *survey {
	return &survey{planner: p, id: id, facts: f, out: Proposal{
		Plan:     change.Plan{Key: f.PlanKey(), Head: f.Head, Check: DefaultCheck, PolicyFile: plan.PolicyFile},
		Evidence: map[string]*gates.Evidence{},
	}}
}

// settle finds the commits that the change is made of.
func (s *survey) settle(ctx context.Context) (err error) {
	f := s.facts
	if s.id.Kind.Scheduled() {
		return s.settleSweep(ctx)
	}
	if s.trusted, err = s.repo.Resolve(ctx, cmp.Or(f.BaseSHA, "refs/heads/"+f.Base)); err != nil {
		if f.BaseSHA == "" {
			err = goneIfUnknown(err)
		}
		return fmt.Errorf("the base branch %s: %w", f.Base, err)
	}
	if s.base, err = s.repo.MergeBase(ctx, s.trusted, f.Head); err != nil {
		_, missing := s.repo.Resolve(ctx, f.Head)
		if _, gone := errors.AsType[checkout.UnknownCommit](missing); gone {
			err = fmt.Errorf("%.12s: %w", f.Head, ErrMoved)
		}
		return err
	}
	if s.id.Kind == change.Push {
		s.trusted = s.base // a forced push is compared with what the branch kept
	}
	return s.begin()
}

// goneIfUnknown is the error of looking for a branch: ErrBaseGone where there is none.
func goneIfUnknown(err error) error {
	if _, unknown := errors.AsType[checkout.UnknownCommit](err); unknown {
		return fmt.Errorf("%w: %w", ErrBaseGone, err)
	}
	return err
}

// begin makes room for what is read.
func (s *survey) begin() (err error) {
	s.out.Base = s.base
	s.repo = s.repo.WithSubmodules(s.submodule)
	if s.scratch, err = os.MkdirTemp(s.planner.Scratch, "kernelgate-plan-"); err != nil {
		return fmt.Errorf("making a scratch folder: %w", err)
	}
	return nil
}

func (s *survey) close() {
	if s.scratch != "" {
		os.RemoveAll(s.scratch)
	}
}

func (s *survey) plan(ctx context.Context) (err error) {
	if s.out.Rules, err = s.planner.known.rulesAt(ctx, s.repo, s.trusted); err != nil {
		return err
	}
	if err := s.queueBranch(ctx); err != nil {
		return err
	}
	if s.out.UnknownMembers = slices.ContainsFunc(s.facts.Members, func(m change.Member) bool { return m.Number == 0 }); s.out.UnknownMembers {
		return nil
	}
	policyAt, err := s.policy(ctx)
	if err != nil || len(s.out.Problems) > 0 {
		return err
	}
	options := s.options(policyAt, "")
	if s.id.Kind.Scheduled() {
		if options.Kernels, err = s.swept(ctx); err != nil || len(options.Kernels) == 0 {
			return err
		}
	}
	p, err := plan.New(ctx, options)
	if err != nil {
		return err
	}
	changed := p.Changed()
	s.out.Paths = changed[:min(len(changed), maxPaths)]
	if err := s.ruleChange(ctx, changed); err != nil {
		return err
	}
	if policyAt == "" {
		return nil // nobody asks anything of any kernel
	}
	keys, err := p.Kernels(ctx)
	if _, refused := errors.AsType[checkout.Refused](err); !refused && s.problem("", err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.tooMany(len(keys)); err != nil {
		return err
	}
	var gone, added []runners.Job
	for _, key := range keys {
		job, rules, err := s.job(ctx, p, key)
		if s.problem(manifest.FileOf(key), err) {
			continue
		}
		if err != nil {
			return err
		}
		kernels, err := s.kernel(ctx, p, job, rules)
		if s.problem(manifest.FileOf(key), err) {
			continue
		}
		if err != nil {
			return err
		}
		s.out.Kernels = append(s.out.Kernels, kernels...)
		if job.Removed {
			gone = append(gone, job)
		} else if job.Baseline == nil {
			added = append(added, job)
		}
	}
	s.renames(gone, added)
	return nil
}

// policy finds the revision whose policy is used: the base's or, where it has
// none, the head's, for information. It is empty where neither has one.
func (s *survey) policy(ctx context.Context) (string, error) {
	rev := s.trusted
	text, err := s.repo.Read(ctx, rev, plan.PolicyFile)
	if errors.Is(err, fs.ErrNotExist) {
		if err := plan.NoPolicy(ctx, s.repo, rev); s.problem(plan.PolicyFile, err) {
			return "", nil
		} else if err != nil {
			return "", err
		}
		s.out.NoPolicy = true
		rev = s.facts.Head
		text, err = s.repo.Read(ctx, rev, plan.PolicyFile)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("reading the policy: %w", err)
	}
	policy, err := s.planner.known.policy(plan.PolicyFile, text)
	if s.problem(plan.PolicyFile, err) {
		return "", nil
	}
	if s.out.NoPolicy {
		if err := s.ownBaselines(ctx, policy); s.problem(plan.PolicyFile, err) {
			return "", nil
		} else if err != nil {
			return "", err
		}
	}
	s.out.SetPolicy(string(text), policy)
	s.out.Forks = string(policy.Forks.Run)
	if policy.Check != "" && !s.out.NoPolicy {
		s.out.Check = policy.Check
	}
	return rev, nil
}

// problem notes a mistake in a file of the repository, and tells whether it was
// one.
func (s *survey) problem(file string, err error) bool {
	var many strict.Problems
	var bad usage.Error
	var disk *fs.PathError
	var refused checkout.Refused
	note := func(file string, line int, message string) {
		s.out.Problems = append(s.out.Problems, gates.Diagnostic{File: file, Line: line, Severity: "error", Message: message})
	}
	switch {
	case errors.As(err, &refused):
		s.out.Refused = true
		note(refused.File, 0, refused.Why)
	case errors.As(err, &many):
		for _, one := range many {
			note(one.File, one.Line, one.Text())
		}
	case errors.As(err, &bad):
		note(file, 1, bad.Error())
	case errors.Is(err, fs.ErrNotExist) && !errors.As(err, &disk): // git has the name, and no file
		note(file, 1, "it is not a regular file (put the file itself in place of the link)")
	default:
		return false
	}
	return true
}

// options plan for a device of the policy, or for any runner if it is "".
func (s *survey) options(policyAt, device string) plan.Options {
	f := s.facts
	o := plan.Options{
		Repo: s.repo, Base: s.base, Trusted: s.trusted, Head: f.Head, Scratch: s.scratch,
		Change:     policy.Change{Labels: f.Labels, Branch: f.Base, Title: f.Title, Claims: f.Claims, Draft: f.Draft},
		Repository: f.Repo, Version: s.planner.Version, Started: s.planner.Now().UTC(),
		Device: device, ParsePolicy: s.planner.known.policy, CheckManifest: s.planner.known.checkManifest, Repairs: true, Fetcher: s.planner.Fetcher,
	}
	if policyAt != s.trusted {
		o.PolicyAt = policyAt
	}
	if s.planner.History != nil {
		o.Faster = s.faster
	}
	if f.Watch != nil {
		o.Baseline = s.watchBaseline()
	}
	o.Pinned = s.pinned(device)
	return o
}

// kernel packs the jobs of a kernel: one for each device that the policy names, or one.
func (s *survey) kernel(ctx context.Context, p *plan.Plan, job runners.Job, rules []string) ([]change.Kernel, error) {
	k := change.Kernel{KernelSpec: change.KernelSpec{Name: s.name(job), Folder: job.Key, Rule: job.Rule().Name, Trial: job.Trial(), Rules: rules, Labels: labels(job)}, Paths: job.Change.Paths[:min(len(job.Change.Paths), maxPaths)]}
	each := s.devices(job.Policy.Devices)
	if s.unrunnable(job) || len(each) == 0 { // what no runner is needed for is the same on all devices
		err := s.fill(ctx, job, &k)
		return []change.Kernel{k}, err
	}
	var all []change.Kernel
	for _, device := range each {
		own, err := s.jobOn(ctx, p, job, device)
		if err != nil {
			return nil, err
		}
		run := k
		run.Name, run.Device, run.Labels, run.Informs = gates.NameOn(k.Name, device), device, []string{device}, job.Policy.Devices.Informs(device)
		if s.unrunnable(own) {
			err = s.fill(ctx, own, &k)
			return []change.Kernel{k}, err
		}
		if err := s.fill(ctx, own, &run); err != nil {
			return nil, err
		}
		all = append(all, run)
	}
	return all, nil
}

// unrunnable tells whether the evidence about a job needs no runner.
func (s *survey) unrunnable(job runners.Job) bool {
	return job.Removed || len(job.Broken) > 0 || job.Unready != ""
}

// fill adds to a kernel what follows from the files of its job, and packs the job.
func (s *survey) fill(ctx context.Context, job runners.Job, k *change.Kernel) (err error) {
	k.Build = builders(job)
	switch {
	case job.Removed:
		s.out.Evidence[k.Folder] = job.RemovedEvidence()
		return nil
	case len(job.Broken) > 0:
		s.out.Evidence[k.Folder] = job.BrokenEvidence()
		return nil
	case job.Unready != "":
		s.out.Evidence[k.Folder] = job.UnreadyEvidence()
		return nil
	}
	if k.Sources, err = sources(job); err != nil {
		return err
	}
	if k.RequirementsDigest, err = requirementsDigest(job); err != nil {
		return err
	}
	if k.Dispatch, err = dispatch(job); err != nil {
		return err
	}
	if s.id.Kind == change.Watch {
		if k.HeadSources, err = headSources(job); err != nil {
			return err
		}
	}
	k.Bundle, err = s.planner.pack(ctx, job)
	return err
}

// name is the kernel's own or, where another one bears it too (it was moved,
// say), with its folder: checks are told apart by their names.
func (s *survey) name(job runners.Job) string {
	for _, k := range s.out.Kernels {
		if k.ManifestName() == job.Manifest.Name {
			return fmt.Sprintf("%s (%s)", job.Manifest.Name, job.Key)
		}
	}
	return job.Manifest.Name
}

// builders is the label of runners that may compile the kernel before it is measured; "" where that takes what only the runner that
// measures has.
func builders(job runners.Job) string {
	sides := []runners.Side{job.Candidate}
	if job.Baseline != nil {
		sides = append(sides, *job.Baseline)
	}
	compiler := ""
	for _, s := range sides {
		m := job.Of(s)
		if m.Compiler == manifest.Program {
			return ""
		}
		if by := runners.ToolchainOf(m); compiler != policy.Triton {
			compiler = by // whoever has Triton has nvcc
		}
	}
	return runners.BuildLabel(compiler)
}
