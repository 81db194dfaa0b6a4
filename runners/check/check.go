// Package check is the local loop of `kernelgate check`: from two states of a
// repository to a verdict for every kernel between them, with the results on
// disk. Policy, manifest and reference are the base's; the head supplies kernel
// sources and nothing else.
package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/checkout"
	"github.com/kernelgate/kernelgate/runners/command"
	"github.com/kernelgate/kernelgate/runners/cpu"
	"github.com/kernelgate/kernelgate/runners/cuda"
)

// PolicyFile is where a repository keeps its policy.
const PolicyFile = ".github/kernelgate.yaml"

// Options say what to check.
type Options struct {
	Dir     string   // in the repository; "" is the current folder
	Base    string   // branch or commit that the change goes to; "" finds it
	Head    string   // commit to check; "" is the work tree
	Kernels []string // names or folders; none means those that the change touches
	Policy  string   // a file, or the name of a shipped policy; "" takes the base's

	// Variants compare two ways to build the same state instead of two states.
	Variant, BaselineVariant string

	// Static compiles and judges resources alone, for Arch or the manifest's first
	// architecture: it needs no GPU.
	Static bool
	Arch   string
	Device int // which GPU

	Change  policies.Change // labels, title, draft; paths and branch are found
	Results string          // folder for results; "" is results in the repository
	Rounds  int             // at most so many rounds; 0 leaves it to the policy
	Version string
	Worker  []string // command that starts a GPU worker
	Cache   string   // folder of the build cache
	Seed    uint64
	Now     func() time.Time
	Getenv  func(string) string
}

// A Result is one kernel's way through the gates.
type Result struct {
	Kernel   string
	Evidence *gates.Evidence
	Verdict  *gates.Verdict
	Dir      string // where it was written
}

// A BadInput is the user's mistake: it is told in one line, and the program
// ends with status 2.
type BadInput struct{ Err error }

func (e BadInput) Error() string { return e.Err.Error() }
func (e BadInput) Unwrap() error { return e.Err }

func badInput(format string, args ...any) error { return BadInput{fmt.Errorf(format, args...)} }

// Run checks the change kernel by kernel. It returns no results where the
// change touches none.
func Run(ctx context.Context, opt Options, progress runners.Progress, each func(Result) error) error {
	c, err := open(ctx, opt)
	if err != nil {
		return err
	}
	defer c.close()
	kernels, err := c.kernels(ctx)
	if err != nil {
		return err
	}
	for _, k := range kernels {
		result, err := c.run(ctx, k, progress)
		if err != nil {
			return err
		}
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
	base    string // revision
	head    string // revision, or the work tree
	changed []string
	started time.Time
	scratch string

	// Of the kernel at hand.
	log       string
	artifacts []string
	manifest  string // text
}

func open(ctx context.Context, opt Options) (*checker, error) {
	if opt.Dir == "" {
		opt.Dir = "."
	}
	if (opt.Variant == "") != (opt.BaselineVariant == "") {
		return nil, badInput("--variant and --baseline-variant belong together (write e.g. --baseline-variant stage1 --variant stage2)")
	}
	repo, err := checkout.Open(ctx, opt.Dir)
	if err != nil {
		return nil, BadInput{err}
	}
	c := &checker{opt: opt, repo: repo, head: opt.Head, started: opt.Now().UTC()}
	if opt.Variant != "" {
		c.base = c.head
	} else if err := c.findBase(ctx); err != nil {
		return nil, BadInput{err}
	}
	if c.scratch, err = os.MkdirTemp("", "kernelgate-"); err != nil {
		return nil, fmt.Errorf("making a scratch folder: %w", err)
	}
	// The sandbox's programs read it as another user.
	if err := os.Chmod(c.scratch, 0o755); err != nil {
		return nil, fmt.Errorf("opening the scratch folder: %w", err)
	}
	return c, nil
}

func (c *checker) close() { os.RemoveAll(c.scratch) }

func (c *checker) findBase(ctx context.Context) error {
	base := c.opt.Base
	if base == "" {
		var err error
		if base, err = c.repo.DefaultBase(ctx); err != nil {
			return err
		}
	}
	if c.opt.Change.Branch == "" {
		c.opt.Change.Branch = strings.TrimPrefix(base, "origin/")
	}
	var err error
	if c.base, err = c.repo.MergeBase(ctx, base, c.head); err != nil {
		return err
	}
	c.changed, err = c.repo.Changed(ctx, c.base, c.head)
	c.opt.Change.Paths = c.changed
	return err
}

// kernels is the folders to check.
func (c *checker) kernels(ctx context.Context) ([]string, error) {
	all, err := c.repo.Kernels(ctx, c.head)
	if err != nil {
		return nil, err
	}
	if len(c.opt.Kernels) > 0 {
		return c.named(all)
	}
	if c.opt.Variant != "" {
		if len(all) != 1 {
			return nil, badInput("the repository has %d kernels: name the one whose variants to compare (there are %s)", len(all), strings.Join(all, ", "))
		}
		return all, nil
	}
	touched := func(folder string) bool {
		return slices.ContainsFunc(c.changed, func(f string) bool { return strings.HasPrefix(f, folder+"/") })
	}
	return slices.DeleteFunc(all, func(folder string) bool { return !touched(folder) }), nil
}

func (c *checker) named(all []string) ([]string, error) {
	var picked []string
	for _, name := range c.opt.Kernels {
		name = strings.TrimSuffix(filepath.ToSlash(name), "/")
		i := slices.IndexFunc(all, func(folder string) bool { return folder == name || path.Base(folder) == name })
		if i < 0 {
			return nil, badInput("no kernel named %q (there are %s)", name, strings.Join(all, ", "))
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// run takes one kernel through the gates.
func (c *checker) run(ctx context.Context, folder string, progress runners.Progress) (Result, error) {
	job, policyFile, err := c.job(ctx, folder)
	if err != nil {
		return Result{}, err
	}
	scratch := filepath.Join(c.scratch, path.Base(folder), "build")
	worker, err := c.backend(ctx, job, scratch)
	if err != nil {
		return Result{}, err
	}
	evidence, err := runners.Gather(ctx, job, worker, progress)
	if err != nil {
		return Result{}, err
	}
	c.log, c.artifacts = worker.BuildLog(), nil
	if keeps, ok := worker.(interface{ Artifacts() []string }); ok {
		c.artifacts = keeps.Artifacts()
	}
	return Result{Kernel: job.Manifest.Name, Evidence: evidence, Verdict: gates.Judge(job.Policy, policyFile, evidence)}, nil
}

// A backend that keeps what its compiler printed.
type backend interface {
	runners.Backend
	BuildLog() string
}

func (c *checker) backend(ctx context.Context, job runners.Job, scratch string) (backend, error) {
	switch job.Manifest.Mode {
	case kernels.ModeCPU:
		return cpu.NewWorker(ctx, job, cpu.Config{Scratch: scratch, Seed: c.opt.Seed, Getenv: c.opt.Getenv})
	case kernels.ModeCUDA:
		config := cuda.Config{
			Scratch: scratch, Cache: c.opt.Cache, Manifest: c.manifest, Program: c.opt.Worker, Ordinal: c.opt.Device,
			Seed: c.opt.Seed, Getenv: c.opt.Getenv,
		}
		if c.opt.Static {
			config.Arch = c.opt.Arch
			if config.Arch == "" {
				config.Arch = strings.TrimRight(string(job.Manifest.ArchOf(job.Candidate.Variant)[0]), "af")
			}
		}
		return cuda.New(ctx, job, config)
	}
	return command.NewWorker(ctx, job, command.Config{Scratch: scratch, Seed: c.opt.Seed, Getenv: c.opt.Getenv})
}

// job gathers what a run needs from the two states.
func (c *checker) job(ctx context.Context, folder string) (runners.Job, string, error) {
	job := runners.Job{Change: c.opt.Change}
	manifestRev, isNew := c.base, false
	file := folder + "/kernel.yaml"
	text, err := c.repo.Read(ctx, c.base, file)
	if errors.Is(err, fs.ErrNotExist) && c.base != c.head {
		isNew, manifestRev = true, c.head
		job.Notes = append(job.Notes, "The kernel is new: it is judged by its own manifest, and there is nothing to compare its speed with.")
		text, err = c.repo.Read(ctx, c.head, file)
	}
	if err != nil {
		return job, "", fmt.Errorf("reading the manifest: %w", err)
	}
	if job.Manifest, err = kernels.Parse(file, text); err != nil {
		return job, "", BadInput{err}
	}
	c.manifest = string(text)
	policyFile, err := c.policy(ctx, &job)
	if err != nil {
		return job, "", err
	}
	if err := checkShapes(policyFile, &job); err != nil {
		return job, "", err
	}
	if !isNew && slices.Contains(c.changed, file) {
		job.Notes = append(job.Notes, "The change edits kernel.yaml: it is judged by the base's, and takes effect when it is merged.")
	}
	if err := c.sides(ctx, &job, folder, manifestRev, isNew); err != nil {
		return job, "", err
	}
	return job, policyFile, c.provenance(ctx, &job, folder, text)
}

// sides lays out the folders to compile: the base as it is, and the base with
// the head's sources over it.
func (c *checker) sides(ctx context.Context, job *runners.Job, folder, manifestRev string, isNew bool) error {
	m := job.Manifest
	dir := func(name string) string { return filepath.Join(c.scratch, path.Base(folder), name) }
	everything := func(string) bool { return true }
	job.Trusted = dir("base")
	if err := c.repo.Export(ctx, manifestRev, folder, job.Trusted, everything); err != nil {
		return err
	}
	job.Candidate = runners.Side{Dir: dir("head"), Variant: m.DefaultVariant}
	if c.opt.Variant != "" {
		return c.variants(job)
	}
	if err := c.repo.Export(ctx, manifestRev, folder, job.Candidate.Dir, func(rel string) bool { return !m.IsSource(rel) }); err != nil {
		return err
	}
	if err := c.repo.Export(ctx, c.head, folder, job.Candidate.Dir, m.IsSource); err != nil {
		return err
	}
	if isNew {
		return nil
	}
	job.Baseline = &runners.Side{Dir: job.Trusted, Variant: m.DefaultVariant}
	return c.otherBaseline(ctx, job, folder, dir("baseline"))
}

// variants compares two ways to build the same files.
func (c *checker) variants(job *runners.Job) error {
	for _, name := range []string{c.opt.BaselineVariant, c.opt.Variant} {
		if _, ok := job.Manifest.Variant(name); !ok {
			return badInput("%s has no variant %q (it has %s)", job.Manifest.Name, name, strings.Join(job.Manifest.VariantNames(), ", "))
		}
	}
	job.Baseline = &runners.Side{Dir: job.Trusted, Variant: c.opt.BaselineVariant}
	job.Candidate = runners.Side{Dir: job.Trusted, Variant: c.opt.Variant}
	return nil
}

// otherBaseline honours a policy that compares with something else than the
// merge base.
func (c *checker) otherBaseline(ctx context.Context, job *runners.Job, folder, dir string) error {
	change := job.Change
	change.Kernel = job.Manifest.Name
	gate := job.Policy.RuleFor(change).Gates.Performance
	if gate == nil {
		return nil
	}
	switch gate.Baseline.Kind {
	case "variant":
		if _, ok := job.Manifest.Variant(gate.Baseline.Name); !ok {
			return badInput("the policy's baseline is variant %q, which %s does not have", gate.Baseline.Name, job.Manifest.Name)
		}
		job.Baseline.Variant = gate.Baseline.Name
	case "ref", "tag":
		rev, err := c.repo.Resolve(ctx, gate.Baseline.Name)
		if err != nil {
			return badInput("the policy's baseline: %w", err)
		}
		if err := c.repo.Export(ctx, rev, folder, dir, func(string) bool { return true }); err != nil {
			return err
		}
		job.Baseline.Dir = dir
		job.Notes = append(job.Notes, fmt.Sprintf("The baseline is %s (%.12s), as the policy says.", gate.Baseline, rev))
	}
	return nil
}
