// Package check is the local loop of `kernelgate check`: from two states of a
// repository to a verdict for every kernel between them, with the results on
// disk. Policy, manifest and reference are the base's; the head supplies kernel
// sources and nothing else.
package check

import (
	"context"
	"fmt"
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
	removed []string // kernels of the base that the head does not have
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
	before, err := c.repo.Kernels(ctx, c.base)
	if err != nil {
		return nil, err
	}
	for _, folder := range before {
		if !slices.Contains(all, folder) {
			all = append(all, folder)
			c.removed = append(c.removed, folder)
		}
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
	if slices.Contains(c.removed, folder) {
		e := &gates.Evidence{
			Schema: gates.EvidenceSchema, Kernel: job.Manifest.Name, Mode: string(job.Manifest.Mode), Removed: true,
			Provenance: job.Provenance, Change: job.Change, Notes: job.Notes,
		}
		return Result{Kernel: e.Kernel, Evidence: e, Verdict: gates.Judge(job.Policy, policyFile, e)}, nil
	}
	scratch := filepath.Join(c.scratch, path.Base(folder), "build")
	worker, err := c.backend(ctx, job, scratch)
	if err != nil {
		return Result{}, err
	}
	if speaks, ok := worker.(interface{ Notes() []string }); ok {
		job.Notes = append(job.Notes, speaks.Notes()...)
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
	return command.NewWorker(ctx, job, command.Config{Scratch: scratch, Seed: c.opt.Seed, Getenv: c.opt.Getenv, Devices: gpuDevices()})
}

// gpuDevices is what a harness needs to reach the host's GPUs, if it has any.
func gpuDevices() []string {
	files, _ := filepath.Glob("/dev/nvidia*")
	return slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err != nil || info.Mode()&os.ModeCharDevice == 0
	})
}
