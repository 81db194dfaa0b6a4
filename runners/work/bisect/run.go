package bisect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// Options say which kernel to look at, and where.
type Options struct {
	Dir       string // a folder in the repository; "" means the current folder
	Kernel    string // name or folder
	Good, Bad string // revisions
	Policy    string // a file, or the name of a shipped policy; "" means the good commit's
	Shapes    []string
	Accuracy
	measure.Config

	Fetcher *recordings.Fetcher // of recorded inputs at an address; nil fetches none
	Version string
	Now     func() time.Time
	Host    arm.Host // that measures; nil means this one, by Config
}

// maxCommits is the longest history that is searched.
const maxCommits = 10_000

// Run searches a repository. Policy, problem and reference are those of the good commit for all
// commits, and so are compilers, shapes, inputs and secret cases: only the implementation differs.
// With ErrNotWorse the report has what is known about the bad commit.
func Run(ctx context.Context, opt Options, progress runners.Progress) (*Report, error) {
	repo, err := checkout.Open(ctx, cmp.Or(opt.Dir, "."))
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	commits, err := repo.History(ctx, opt.Good, opt.Bad, maxCommits)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	if len(commits) == 0 {
		return nil, usage.Errorf("%s..%s has no commit (name an older commit first: OLD..NEW)", opt.Good, opt.Bad)
	}
	good, err := repo.Resolve(ctx, opt.Good)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	scratch, err := os.MkdirTemp("", "kernelgate-bisect-")
	if err != nil {
		return nil, fmt.Errorf("making a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	// The sandbox's programs read it as a different user.
	if err := os.Chmod(scratch, 0o755); err != nil {
		return nil, fmt.Errorf("opening the scratch folder: %w", err)
	}
	h := &repository{opt: opt, repo: repo, good: good, commits: commits, scratch: scratch}
	job, err := h.job(ctx, len(commits)-1)
	if err != nil {
		return nil, err
	}
	switch {
	case job.Unready != "":
		return nil, fmt.Errorf("the bad commit %.12s cannot be judged: %s", commits[len(commits)-1].SHA, job.Unready)
	case job.Baseline == nil:
		return nil, usage.Errorf("%s does not have the kernel %s (name a commit that has it)", opt.Good, opt.Kernel)
	}
	return run(ctx, opt, job, checkout.Commit{SHA: good, Subject: opt.Good}, commits, h.side, scratch, progress)
}

// RunJob searches the commits of a job. It needs no repository: the job has every state of the kernel.
// Builds go to scratch, which the caller removes.
func RunJob(ctx context.Context, host arm.Host, job runners.Job, scratch string, progress runners.Progress) (*Report, error) {
	asked := job.Search.Bisect
	if job.Baseline == nil {
		return nil, usage.Errorf("%s does not have the kernel %s (name a commit that has it)", asked.Good, job.Manifest.Name)
	}
	var commits []checkout.Commit
	for _, c := range asked.Commits {
		commits = append(commits, checkout.Commit{SHA: c.SHA, Subject: c.Subject})
	}
	side := func(_ context.Context, commit int) (runners.Side, string, error) {
		c := asked.Commits[commit]
		if c.Skip != "" {
			return runners.Side{}, c.Skip, nil
		}
		return asked.Sides[c.Side], "", nil
	}
	opt := Options{Shapes: asked.Shapes, Accuracy: Accuracy{MaxRounds: asked.Rounds}, Host: host}
	return run(ctx, opt, job, checkout.Commit{SHA: asked.GoodSHA, Subject: asked.Good}, commits, side, scratch, progress)
}

func run(ctx context.Context, opt Options, job runners.Job, good checkout.Commit, commits []checkout.Commit, side sideOf, scratch string, progress runners.Progress) (*Report, error) {
	if opt.Seed == 0 {
		opt.Seed = rand.Uint64() | 1 // one for all commits: each gets the same inputs and secret cases
	}
	// A commit that exceeds the policy's limits on registers can still be timed.
	job.Policy = job.Policy.WithGates(func(g *policy.Gates) { g.PTXAS = nil })
	p := &prober{commits: commits, side: side, scratch: scratch, progress: progress, arms: map[int]*arm.Arm{}, rounds: map[int]int{}}
	defer p.close()
	var err error
	var host arm.Host = opt.Config
	if opt.Host != nil {
		host = opt.Host
	}
	if p.bench, err = arm.NewBench(host, job, opt.Shapes); err != nil {
		return nil, err
	}
	r := &Report{Kernel: job.Manifest.Name, Good: good, Commits: commits, Shapes: p.bench.Shapes()}
	r.Result, err = Search(ctx, len(commits), p, opt.Accuracy)
	r.Device, r.Seconds = p.device, p.seconds
	return r, err
}

// sideOf returns the implementation of a commit, or why it cannot be judged.
type sideOf func(ctx context.Context, commit int) (side runners.Side, skip string, err error)

// A prober looks at the commits.
type prober struct {
	commits  []checkout.Commit
	side     sideOf
	scratch  string
	progress runners.Progress

	bench   *arm.Bench
	arms    map[int]*arm.Arm
	rounds  map[int]int
	device  gates.Device
	seconds float64
}

func (p *prober) close() {
	for commit, a := range p.arms {
		a.Close()
		delete(p.arms, commit)
		os.RemoveAll(p.buildFolder(commit))
	}
}

// Build compiles a commit.
func (p *prober) Build(ctx context.Context, commit int) (Built, error) {
	p.close() // the search has finished with every earlier commit
	p.report(commit, "compiling")
	side, skip, err := p.side(ctx, commit)
	if err != nil || skip != "" {
		return Built{Skip: skip}, err
	}
	a, err := p.bench.Open(ctx, side, p.buildFolder(commit), none{})
	if err != nil {
		return Built{}, err
	}
	p.arms[commit] = a
	refusal, err := a.Build(ctx)
	p.device = a.Evidence().Device
	switch {
	case err != nil:
		return Built{}, err
	case refusal != nil:
		return Built{Skip: refusal.Text}, nil
	}
	return Built{Same: a.Same(), IsGood: a.IsBaseline()}, nil
}

// Check compares the outputs of a commit with the reference.
func (p *prober) Check(ctx context.Context, commit int) (string, error) {
	p.report(commit, "checking its outputs")
	refusal, err := p.arms[commit].Check(ctx)
	if refusal == nil {
		return "", err
	}
	return refusal.Text, err
}

// Round times a commit once. Its speed is the geometric mean over the shapes.
func (p *prober) Round(ctx context.Context, commit int) (float64, string, error) {
	p.rounds[commit]++
	p.report(commit, fmt.Sprintf("round %d", p.rounds[commit]))
	round, refusal, err := p.arms[commit].Round(ctx)
	p.seconds += round.Seconds
	if err != nil || refusal != nil {
		text := ""
		if refusal != nil {
			text = refusal.Text
		}
		return 0, text, err
	}
	mean := arm.MeanLog(gates.RoundSpeedups(round), p.bench.Shapes())
	if math.IsNaN(mean) {
		return 0, "", nil
	}
	return math.Exp(mean), "", nil
}

func (p *prober) report(commit int, step string) {
	c := p.commits[commit]
	p.progress.Report(runners.Event{Gate: "bisect", Text: fmt.Sprintf("%.12s, commit %d of %d: %s", c.SHA, commit+1, len(p.commits), step)})
}

func (p *prober) buildFolder(commit int) string {
	return filepath.Join(p.scratch, fmt.Sprintf("build-%d", commit))
}

// none drops the progress within a step, which names sides and not commits.
type none struct{}

func (none) Report(runners.Event) {}
