package planner

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
)

// A Search is a request to search one kernel. Either Tune or Bisect is set.
type Search struct {
	Folder   string // which kernel, see manifest.KeyOf
	Device   string // as in Rerun
	Tune     *grammar.Tune
	Bisect   *grammar.Bisect
	Approved []string // as in Rerun
}

// Search packs a search and returns the name of the bundle. If the request names something that the
// repository does not have, the error is a usage.Error.
func (p *Planner) Search(ctx context.Context, id change.ID, f change.Facts, r Search) (string, error) {
	digest, err := p.packAgain(ctx, id, f, func(ctx context.Context, s *survey) (string, error) { return s.search(ctx, r) })
	if err != nil {
		return "", fmt.Errorf("planning a search in %s at %.12s: %w", f.Repo, f.Head, err)
	}
	return digest, nil
}

func (s *survey) search(ctx context.Context, r Search) (string, error) {
	policyAt, err := s.policy(ctx)
	if err != nil {
		return "", err
	}
	if len(s.out.Problems) > 0 {
		return "", usage.Errorf("%s", s.out.Problems[0])
	}
	if policyAt == "" {
		return "", usage.Errorf("there is no policy that says how to measure (add %s to the base branch)", plan.PolicyFile)
	}
	var job runners.Job
	var shapes []string
	if r.Tune != nil {
		shapes = r.Tune.Shapes
		job, err = s.tuning(ctx, policyAt, r)
	} else {
		shapes = r.Bisect.Shapes
		job, err = s.bisection(ctx, policyAt, r)
	}
	if err == nil {
		err = hasShapes(job.Manifest, shapes)
	}
	if err != nil {
		return "", err
	}
	if job.Rule().Gates.Performance == nil {
		return "", usage.Errorf("%s: the rule %s has no performance gate, and a search needs one to time %s", job.PolicyFile, job.Rule().Name, job.Manifest.Name)
	}
	return s.planner.pack(ctx, job)
}

// tuning returns the job that searches the variants and toggles of the head.
func (s *survey) tuning(ctx context.Context, policyAt string, r Search) (runners.Job, error) {
	job, err := s.jobOf(ctx, s.options(policyAt, r.Device), r.Folder)
	if err == nil {
		err = buildable(job)
	}
	if err == nil && job.Removed {
		err = usage.Errorf("the head does not have the kernel")
	}
	if err != nil {
		return job, err
	}
	m := job.Of(job.Candidate)
	for _, v := range r.Tune.Variants {
		if !slices.Contains(m.VariantNames(), v) {
			return job, usage.Errorf("%s has no variant %q (it has %s)", m.Name, v, strings.Join(m.VariantNames(), ", "))
		}
	}
	if len(m.VariantNames()) < 2 && len(m.Toggles) == 0 {
		return job, usage.Errorf("%s has one variant and no toggles: there is nothing to search (declare variants or toggles in its manifest)", m.Name)
	}
	job.Search = &runners.Search{Tune: &runners.TuneSearch{
		Shapes: r.Tune.Shapes, Variants: r.Tune.Variants, Proposer: cmp.Or(r.Tune.Proposer, grammar.DefaultProposer),
		Candidates: cmp.Or(r.Tune.Candidates, grammar.DefaultCandidates), Seconds: r.Tune.Budget().Seconds(),
	}}
	return job, nil
}

// maxBisected is the maximum number of commits in one search, because the bundle has all their states.
const maxBisected = 200

// bisection returns the job that searches a range of commits. For all commits, policy, problem and reference
// come from the base branch, as for every verdict of the bot.
func (s *survey) bisection(ctx context.Context, policyAt string, r Search) (runners.Job, error) {
	good, bad := s.base, s.facts.Head
	name := fmt.Sprintf("%.12s", good)
	if r.Bisect.Good != "" {
		var err error
		if good, err = s.versus(ctx, r.Bisect.Good, r.Approved); err != nil {
			return runners.Job{}, err
		}
		if bad, err = s.versus(ctx, r.Bisect.Bad, r.Approved); err != nil {
			return runners.Job{}, err
		}
		name = r.Bisect.Good
	}
	commits, err := s.repo.History(ctx, good, bad, maxBisected)
	if err != nil {
		return runners.Job{}, usage.Error{Err: err}
	}
	if len(commits) == 0 {
		return runners.Job{}, usage.Errorf("the range %s..%.12s has no commit (write the older commit first)", name, bad)
	}
	if err := s.mayRun(ctx, bad, commits, r.Approved); err != nil {
		return runners.Job{}, err
	}
	asked := &runners.BisectSearch{Shapes: r.Bisect.Shapes, Rounds: r.Bisect.Rounds, Good: name, GoodSHA: good}
	var last runners.Job
	states := map[string]int{}
	for i, c := range commits {
		job, err := s.commit(ctx, policyAt, good, c.SHA, r, i)
		side, skip, err := plan.SideOf(job, err)
		if err != nil {
			return last, err
		}
		one := runners.BisectCommit{SHA: c.SHA, Subject: c.Subject, Skip: skip}
		if skip == "" {
			if one.Side, err = addSide(asked, side, states); err != nil {
				return last, err
			}
			last = job
		}
		asked.Commits = append(asked.Commits, one)
	}
	switch end := asked.Commits[len(asked.Commits)-1]; {
	case end.Skip != "":
		return last, usage.Errorf("the bad commit %.12s cannot be judged: %s", end.SHA, end.Skip)
	case last.Baseline == nil:
		return last, usage.Errorf("%s does not have the kernel (name a commit that has it)", name)
	}
	last.Search = &runners.Search{Bisect: asked}
	return last, nil
}

// commit plans the comparison of one commit of the range with the good commit.
func (s *survey) commit(ctx context.Context, policyAt, good, sha string, r Search, i int) (runners.Job, error) {
	o := s.options(policyAt, r.Device)
	o.Base, o.Head, o.Scratch = good, sha, filepath.Join(s.scratch, fmt.Sprintf("commit-%d", i))
	if err := os.Mkdir(o.Scratch, 0o755); err != nil {
		return runners.Job{}, fmt.Errorf("making a scratch folder: %w", err)
	}
	return s.jobOf(ctx, o, r.Folder)
}

// mayRun refuses a commit that is not on a branch of the repository, unless somebody approved this commit.
// The approval of a fork's head does not cover the commits before it.
func (s *survey) mayRun(ctx context.Context, bad string, commits []checkout.Commit, approved []string) error {
	if ours, err := s.repo.Reached(ctx, bad); err != nil || ours {
		return err
	}
	for _, c := range commits {
		if !slices.Contains(approved, c.SHA) {
			return usage.Errorf("the commit %.12s of the fork is not approved, so the bot does not run its code (name a range of this repository, or run kernelgate bisect yourself)", c.SHA)
		}
	}
	return nil
}

// addSide returns the index of a state of the kernel in the search. It adds the state if the search does not
// have it yet.
func addSide(asked *runners.BisectSearch, side runners.Side, states map[string]int) (int, error) {
	sum, err := folderhash.Sum(side.Dir)
	if err != nil {
		return 0, fmt.Errorf("reading the sources of a commit: %w", err)
	}
	key := fmt.Sprintf("%s %q %q", sum, side.Variant, side.ManifestText)
	if i, ok := states[key]; ok {
		return i, nil
	}
	states[key] = len(asked.Sides)
	asked.Sides = append(asked.Sides, side)
	return states[key], nil
}
