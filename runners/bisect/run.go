package bisect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/arm"
	"github.com/kernelgate/kernelgate/runners/checkout"
	"github.com/kernelgate/kernelgate/runners/measure"
	"github.com/kernelgate/kernelgate/runners/plan"
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

	Version string
	Now     func() time.Time
	Open    arm.Opener // nil means the backends of this host
}

// maxCommits is the longest history that is searched.
const maxCommits = 10_000

// A Report is the result of a search in a repository.
type Report struct {
	Kernel  string            `json:"kernel"`
	Good    checkout.Commit   `json:"good"`
	Commits []checkout.Commit `json:"commits"` // after the good one, oldest first; the last is the bad one
	Shapes  []string          `json:"shapes"`  // that were timed
	Device  gates.Device      `json:"device"`
	Result  *Result           `json:"result"`
	Seconds float64           `json:"seconds"` // of measuring
}

// Run searches a repository. Policy, problem and reference are those of the good commit for all
// commits, and so are compilers, shapes, inputs and secret cases: only the implementation differs.
// With ErrNotWorse the report has what is known about the bad commit.
func Run(ctx context.Context, opt Options, progress runners.Progress) (*Report, error) {
	repo, err := checkout.Open(ctx, cmp.Or(opt.Dir, "."))
	if err != nil {
		return nil, strict.Mistake{Err: err}
	}
	commits, err := repo.History(ctx, opt.Good, opt.Bad, maxCommits)
	if err != nil {
		return nil, strict.Mistake{Err: err}
	}
	if len(commits) == 0 {
		return nil, strict.Mistakef("%s..%s has no commit (name an older commit first: OLD..NEW)", opt.Good, opt.Bad)
	}
	good, err := repo.Resolve(ctx, opt.Good)
	if err != nil {
		return nil, strict.Mistake{Err: err}
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
	if opt.Seed == 0 {
		opt.Seed = rand.Uint64() | 1 // one for all commits: each gets the same inputs and secret cases
	}
	p := &prober{opt: opt, repo: repo, good: good, commits: commits, scratch: scratch, progress: progress, arms: map[int]*arm.Arm{}}
	defer p.close()
	r := &Report{Kernel: opt.Kernel, Good: checkout.Commit{SHA: good, Subject: opt.Good}, Commits: commits}
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	r.Kernel, r.Shapes = p.name, p.bench.Shapes()
	r.Result, err = Search(ctx, len(commits), p, opt.Accuracy)
	r.Device, r.Seconds = p.device, p.seconds
	return r, err
}

// A prober looks at the commits of a repository.
type prober struct {
	opt      Options
	repo     *checkout.Repo
	good     string
	commits  []checkout.Commit
	scratch  string
	progress runners.Progress

	bench   *arm.Bench
	name    string // of the kernel
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

// prepare plans the bad commit, whose rule applies to all commits.
func (p *prober) prepare(ctx context.Context) error {
	job, err := p.job(ctx, len(p.commits)-1)
	if err != nil {
		return err
	}
	if job.Baseline == nil {
		return strict.Mistakef("%s does not have the kernel %s (name a commit that has it)", p.opt.Good, p.opt.Kernel)
	}
	// A commit beyond a budget of registers can be timed all the same.
	job.Policy = job.Policy.WithGates(func(g *policy.Gates) { g.PTXAS = nil })
	p.name, p.rounds = job.Manifest.Name, map[int]int{}
	if p.opt.Open != nil {
		p.bench, err = arm.NewBenchWith(p.opt.Open, job, p.opt.Shapes)
	} else {
		p.bench, err = arm.NewBench(p.opt.Config, job, p.opt.Shapes)
	}
	return err
}

// job plans one commit against the good one.
func (p *prober) job(ctx context.Context, commit int) (runners.Job, error) {
	to := filepath.Join(p.scratch, fmt.Sprintf("commit-%d", commit))
	if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return runners.Job{}, fmt.Errorf("making a folder for a commit: %w", err)
	}
	made, err := plan.New(ctx, plan.Options{
		Repo: p.repo, Base: p.good, Head: p.commits[commit].SHA, Scratch: to, Kernels: []string{p.opt.Kernel}, Policy: p.opt.Policy,
		Version: p.opt.Version, Started: p.opt.Now().UTC(),
	})
	if err != nil {
		return runners.Job{}, strict.Mistake{Err: err}
	}
	keys, err := made.Kernels(ctx)
	if err != nil {
		return runners.Job{}, err
	}
	return made.Job(ctx, keys[0])
}

// Build plans and compiles a commit.
func (p *prober) Build(ctx context.Context, commit int) (Built, error) {
	p.close() // the search has finished with every earlier commit
	p.report(commit, "compiling")
	job, err := p.job(ctx, commit)
	if mistake, ok := errors.AsType[strict.Mistake](err); ok {
		return Built{Skip: mistake.Error()}, nil // it does not have the kernel, or its files are not read
	}
	switch {
	case err != nil:
		return Built{}, err
	case job.Removed:
		return Built{Skip: "it does not have the kernel"}, nil
	case len(job.Broken) > 0:
		return Built{Skip: fmt.Sprintf("%s:%d: %s", job.Broken[0].File, job.Broken[0].Line, job.Broken[0].Message)}, nil
	case job.Unready != "":
		return Built{}, errors.New(job.Unready)
	}
	a, err := p.bench.Open(ctx, job.Candidate, p.buildFolder(commit), none{})
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

// Text is the report for a terminal.
func (r *Report) Text(err error) string {
	var b strings.Builder
	name := func(i int) string {
		if i < 0 {
			return r.Good.Subject
		}
		return fmt.Sprintf("%.12s %s", r.Commits[i].SHA, r.Commits[i].Subject)
	}
	switch last := r.Result.Steps[len(r.Result.Steps)-1]; {
	case err != nil && last.SameAs != nil:
		fmt.Fprintf(&b, "Nothing to find: %s has the same machine code at both ends.\n", r.Kernel)
	case err != nil:
		fmt.Fprintf(&b, "Nothing to find: %s is not proven to be slower. Its speed is %s of that at %s.\n", r.Kernel, speed(last), r.Good.Subject)
	case len(r.Result.Between()) > 0:
		fmt.Fprintf(&b, "%s became %s after %s and not later than %s. What lies between the two cannot be judged.\n", r.Kernel, r.Result.Kind, name(r.Result.Last), name(r.Result.First))
	default:
		fmt.Fprintf(&b, "%s became %s with %s\n", r.Kernel, r.Result.Kind, name(r.Result.First))
	}
	if err == nil {
		r.certainty(&b)
	}
	b.WriteString("\n")
	r.table(&b)
	return b.String()
}

// certainty says how sure the answer is.
func (r *Report) certainty(b *strings.Builder) {
	switch {
	case r.Result.Kind == Wrong:
		fmt.Fprintf(b, "All commits ran the same cases. An error that shows in few cases may be older.\n")
	case r.Result.Unsure():
		fmt.Fprintf(b, "This is not proven: the rounds of a commit marked with ? decide neither way. More rounds may (--rounds).\n")
	default:
		fmt.Fprintf(b, "Probability that this is wrong: at most %.3g %%. Timed on %s: %s.\n", 100*r.Result.Delta, r.Device.Name, strings.Join(r.Shapes, ", "))
	}
}

// table lists the commits that were looked at, oldest first.
func (r *Report) table(b *strings.Builder) {
	steps := sorted(r.Result.Steps)
	rows := [][]string{{"commit", "state", "speed", "rounds", "subject"}}
	for _, s := range steps {
		c := r.Commits[s.Commit]
		state, rounds := string(s.State), ""
		if s.Unsure {
			state += " ?"
		}
		if s.Rounds > 0 {
			rounds = fmt.Sprint(s.Rounds)
		}
		rows = append(rows, []string{fmt.Sprintf("%.12s", c.SHA), state, r.speedOf(s), rounds, c.Subject})
	}
	for _, line := range report.Aligned(rows) {
		b.WriteString(line + "\n")
	}
	for _, s := range steps {
		if s.Why != "" {
			fmt.Fprintf(b, "%.12s: %s\n", r.Commits[s.Commit].SHA, s.Why)
		}
	}
}

func (r *Report) speedOf(s Step) string {
	switch {
	case s.Rounds > 0:
		return speed(s)
	case s.SameAs != nil && *s.SameAs < 0:
		return "code of " + r.Good.Subject
	case s.SameAs != nil:
		return fmt.Sprintf("code of %.12s", r.Commits[*s.SameAs].SHA)
	}
	return ""
}
