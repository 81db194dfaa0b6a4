// Package check is the local loop of `kernelgate check`: it takes two states of a repository to a
// verdict for every kernel that differs between them, and writes the results to disk. Policy,
// reference and the problem half of the manifest come from the base; the head supplies the
// implementation. It also repeats single cases, lints files and shows a kernel's history. Package
// plan finds the kernels, package measure gathers the evidence, and package gates judges it.
package check

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
)

// PolicyFile is the path of the policy in a repository.
const PolicyFile = plan.PolicyFile

// Options say what to check.
type Options struct {
	Dir     string   // a folder in the repository; "" means the current folder
	Base    string   // branch or commit that the change goes to; "" finds it
	Head    string   // commit to check; "" means the work tree
	Kernels []string // names or folders; none means those that the change touches
	Policy  string   // a file, or the name of a shipped policy; "" means the base's
	// Received means that the policy's name comes from an untrusted party: its file must be in the
	// repository.
	Received bool

	// Variant and BaselineVariant compare two ways to build the same state instead of two states.
	Variant, BaselineVariant string
	// Before and After compare two compilers on one state, see plan.Options.
	Before, After policy.Toolchains

	measure.Config // how to measure

	Change policy.Change // labels, title, draft; paths and branch are filled in
	// SecretShape is the size of the secret shape, such as R=5,C=63, to repeat a run; "" draws one.
	SecretShape string

	// Prepare changes a job before it is measured and judged: its policy, or the record of earlier
	// measurements. nil leaves it as it was planned.
	Prepare func(*runners.Job)

	// Labels are what this machine is, by the policies' names of devices: cpu, gpu, l4.
	Labels []string

	Fetcher *recordings.Fetcher // of recorded inputs at an address; nil fetches none

	Results string // folder for results; "" means results in the repository
	Rounds  int    // the maximum number of rounds; 0 means the policy's
	Version string
	Now     func() time.Time
}

// A Result is the result of one kernel.
type Result struct {
	runners.Measured
	Kernel  string
	Verdict *gates.Verdict
	Dir     string // where it was written
	Wrong   []int  // cases that are wrong, by their number in the evidence
	policy  string // the text of the policy
	LeftOut string // why the runner did not measure it; all other fields are then empty
	Took    time.Duration
}

// ForPrograms returns the result in the form that programs read.
func (r Result) ForPrograms() *result.Result {
	out := result.Of(r.Verdict, r.Evidence)
	if r.Dir != "" {
		out.Evidence = filepath.Join(r.Dir, "evidence.json")
	}
	return out
}

// NothingChanged is what programs read of a change that touches no kernel.
func NothingChanged() *result.Result {
	return &result.Result{Schema: result.Schema, Outcome: gates.Pass, Summary: "No kernel changed."}
}

// Run checks the change kernel by kernel. It returns no results if the change touches none.
func Run(ctx context.Context, opt Options, progress runners.Progress, each func(Result) error) error {
	c, err := open(ctx, opt)
	if err != nil {
		return err
	}
	defer c.close()
	kernels, err := c.plan.Kernels(ctx)
	if err != nil {
		return err
	}
	for _, k := range kernels {
		start := opt.Now()
		result, err := c.run(ctx, k, progress)
		if err != nil {
			return err
		}
		result.Took = opt.Now().Sub(start)
		if err := c.write(&result, len(kernels) > 1); err != nil {
			return err
		}
		if err := each(result); err != nil {
			return err
		}
	}
	return nil
}

// A checker is one call of Run.
type checker struct {
	opt     Options
	repo    *checkout.Repo
	plan    *plan.Plan
	tip     string // of the base branch; "" if the comparison is not with a branch
	started time.Time
	scratch string
}

func open(ctx context.Context, opt Options) (*checker, error) {
	if (opt.Variant == "") != (opt.BaselineVariant == "") {
		return nil, usage.Errorf("--variant and --baseline-variant belong together (write e.g. --baseline-variant stage1 --variant stage2)")
	}
	if opt.Rounds != 0 && opt.Rounds < policy.MinRounds {
		return nil, usage.Errorf("--rounds %d is too few to prove anything (write %d or more)", opt.Rounds, policy.MinRounds)
	}
	if opt.Rounds > policy.MaxRounds {
		return nil, usage.Errorf("--rounds %d is too many (write %d or fewer)", opt.Rounds, policy.MaxRounds)
	}
	repo, err := checkout.Open(ctx, cmp.Or(opt.Dir, "."))
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	c := &checker{opt: opt, repo: repo, started: opt.Now().UTC()}
	base, err := c.base(ctx)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	if c.scratch, err = os.MkdirTemp("", "kernelgate-"); err != nil {
		return nil, fmt.Errorf("making a scratch folder: %w", err)
	}
	// The sandbox's programs read it as a different user.
	if err := os.Chmod(c.scratch, 0o755); err != nil {
		c.close()
		return nil, fmt.Errorf("opening the scratch folder: %w", err)
	}
	policyRoot := ""
	if opt.Received {
		policyRoot = repo.Dir()
	}
	host, _ := os.Hostname() // only for the record
	c.plan, err = plan.New(ctx, plan.Options{
		Repo: repo, Base: base, Trusted: c.tip, Head: opt.Head, Scratch: c.scratch, Kernels: opt.Kernels, Change: c.opt.Change, Policy: opt.Policy, PolicyRoot: policyRoot,
		Variant: opt.Variant, BaselineVariant: opt.BaselineVariant, Static: opt.Static, Rounds: opt.Rounds, Before: opt.Before, After: opt.After,
		Host: host, Version: opt.Version, Started: c.started, Fetcher: opt.Fetcher,
	})
	if err != nil {
		c.close()
		return nil, usage.Error{Err: err}
	}
	return c, nil
}

func (c *checker) close() { os.RemoveAll(c.scratch) }

// base returns the revision to compare with. Two variants come from the same state, and so do the
// builds of two compilers.
func (c *checker) base(ctx context.Context) (string, error) {
	if c.opt.Variant != "" || c.opt.Before != (policy.Toolchains{}) || c.opt.After != (policy.Toolchains{}) {
		return c.opt.Head, nil
	}
	base := c.opt.Base
	if base == "" {
		var err error
		if base, err = c.repo.DefaultBase(ctx); err != nil {
			return "", err
		}
	}
	if c.opt.Change.Branch == "" {
		c.opt.Change.Branch = strings.TrimPrefix(base, "origin/")
	}
	var err error
	if c.tip, err = c.repo.Resolve(ctx, base); err != nil {
		return "", err
	}
	return c.repo.MergeBase(ctx, base, c.opt.Head)
}

// run takes one kernel through the gates.
func (c *checker) run(ctx context.Context, folder string, progress runners.Progress) (Result, error) {
	job, err := c.plan.Job(ctx, folder)
	if err != nil {
		return Result{}, err
	}
	if job.Secret, err = secretSize(job, c.opt.SecretShape); err != nil {
		return Result{}, err
	}
	if c.opt.Prepare != nil {
		c.opt.Prepare(&job)
	}
	forDevice(&job, c.opt.Labels)
	result := Result{Kernel: job.Manifest.Name, policy: job.PolicyText}
	if job.Removed {
		result.Evidence = job.RemovedEvidence()
	} else if len(job.Broken) > 0 {
		result.Evidence = job.BrokenEvidence()
	} else if job.Unready != "" {
		result.Evidence = job.UnreadyEvidence()
	} else if result.LeftOut = measure.LeftOut(c.opt.Runner, job.Manifest); result.LeftOut != "" {
		return result, nil
	} else if result.Measured, err = c.measure(ctx, job, filepath.Join(filepath.Dir(job.Trusted), "build"), progress); err != nil {
		return Result{}, err
	}
	result.Verdict = gates.JudgeForTerminal(job.Policy, job.PolicyFile, result.Evidence)
	result.Wrong = result.Evidence.Wrong(job.Rule().Gates.Correctness)
	return result, nil
}

// measure gathers evidence about a kernel. If the kernel is only compiled and no architecture is
// named, it compiles for every architecture that the candidate is built for. The result is the
// first that does not pass, because it decides, and otherwise the last.
func (c *checker) measure(ctx context.Context, job runners.Job, scratch string, progress runners.Progress) (runners.Measured, error) {
	devices := measure.Devices(job)
	if !c.opt.Static || c.opt.Arch != "" || len(devices) < 2 {
		return c.opt.Measure(ctx, job, scratch, progress)
	}
	var last runners.Measured
	notes := job.Notes
	for i, device := range devices {
		config := c.opt.Config
		config.Arch = device
		job.Notes = append(slices.Clip(notes), measure.CompiledFor(devices[:i+1], devices[i+1:]))
		before := last.BuildLog
		var err error
		if last, err = config.Measure(ctx, job, filepath.Join(scratch, device), progress); err != nil {
			return last, err
		}
		last.BuildLog = before + last.BuildLog
		if gates.Judge(job.Policy, job.PolicyFile, last.Evidence).Outcome != gates.Pass {
			break
		}
	}
	return last, nil
}
