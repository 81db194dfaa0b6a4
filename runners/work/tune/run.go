package tune

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// Options say what to search.
type Options struct {
	Dir    string // a folder in the repository; "" means the current folder
	Kernel string // its name or folder
	Policy string // a file, or the name of a shipped policy; "" means the repository's
	Labels []string

	Baseline string   // the incumbent: a variant, toggles may follow; "" means the default variant
	Variants []string // to search; none means all
	Toggles  []string // to search; none means all
	Shapes   []string // to time; none means the policy's

	Proposer   string // a built-in one, or the path of a program with its arguments
	Seed       uint64 // 0 draws one
	Candidates int
	Budget     time.Duration
	Epsilon    float64
	MaxRounds  int
	Exhaustive bool
	NoGate     bool // end with the race

	Results string // folder for results; "" means results in the repository
	Resume  string // folder of a search to go on with; its own options hold
	Retry   bool   // try known failures again

	measure.Config
	Fetcher *recordings.Fetcher // of recorded inputs at an address; nil fetches none
	Version string
	Now     func() time.Time
}

// A Session is one call of Run: what the caller prints.
type Session struct {
	Result  *Result
	Folder  string         // of the log and the verdicts
	Verdict *gates.Verdict // of the last candidate that the gate judged in this call or before; nil if none
	// ManifestFile and Manifest are the kernel's manifest, for the change to commit.
	ManifestFile string
	Manifest     []byte
	Sources      map[string]string          // that a candidate may replace
	PathOf       func(source string) string // in the repository
}

// Begin is called when the folder of a search is known, before anything is measured.
type Begin func(folder string)

// Run searches. If ctx is cancelled it returns an error, and the search can be resumed from its folder.
func Run(ctx context.Context, opt Options, progress runners.Progress, begin Begin) (*Session, error) {
	r, err := open(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.run(ctx, progress, begin)
}

// A runner is one call of Run.
type runner struct {
	opt     Options
	repo    *checkout.Repo
	key     string
	job     runners.Job
	scratch string
	results string
	folder  string
	log     *Log
	verdict *gates.Verdict
	host    arm.Host
	record  runners.Record // that counts verdicts; nil means the search counts them itself
}

func open(ctx context.Context, opt Options) (_ *runner, err error) {
	r := &runner{opt: opt, host: opt.Config}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if opt.Resume != "" {
		if r.log, err = OpenLog(opt.Resume); err != nil {
			return nil, err
		}
		r.folder = opt.Resume
		r.opt.Baseline, r.opt.Shapes = r.log.Header.Space.Start, r.log.Header.Shapes
	}
	if r.repo, err = checkout.Open(ctx, cmp.Or(opt.Dir, ".")); err != nil {
		return nil, usage.Error{Err: err}
	}
	if r.results = opt.Results; r.results == "" {
		r.results = filepath.Join(r.repo.Dir(), "results")
	}
	if r.scratch, err = os.MkdirTemp("", "kernelgate-tune-"); err != nil {
		return nil, fmt.Errorf("making a scratch folder: %w", err)
	}
	// The sandbox's programs read it as a different user.
	if err := os.Chmod(r.scratch, 0o755); err != nil {
		return nil, fmt.Errorf("opening the scratch folder: %w", err)
	}
	if r.key, err = r.find(ctx); err != nil {
		return nil, err
	}
	if r.opt.Baseline == "" {
		if r.opt.Baseline, err = r.incumbent(ctx); err != nil {
			return nil, err
		}
	}
	r.job, err = r.plan(ctx, r.opt.Baseline)
	return r, err
}

func (r *runner) close() {
	if r.log != nil {
		r.log.Close()
	}
	if r.scratch != "" && r.repo != nil {
		os.RemoveAll(r.scratch)
	}
}

// options of a plan: both sides are variants of the work tree.
func (r *runner) options(variant string) (plan.Options, error) {
	scratch, err := os.MkdirTemp(r.scratch, "plan-")
	if err == nil {
		err = os.Chmod(scratch, 0o755)
	}
	if err != nil {
		return plan.Options{}, fmt.Errorf("making a scratch folder: %w", err)
	}
	host, _ := os.Hostname() // only for the record
	return plan.Options{
		Repo: r.repo, Scratch: scratch, Kernels: []string{r.opt.Kernel}, Policy: r.opt.Policy, Change: policy.Change{Labels: r.opt.Labels},
		Variant: variant, BaselineVariant: r.opt.Baseline, Host: host, Version: r.opt.Version, Started: r.opt.Now().UTC(), Fetcher: r.opt.Fetcher,
	}, nil
}

// find returns the key of the kernel.
func (r *runner) find(ctx context.Context) (string, error) {
	opt, err := r.options("any")
	if err != nil {
		return "", err
	}
	p, err := plan.New(ctx, opt)
	if err != nil {
		return "", usage.Error{Err: err}
	}
	keys, err := p.Kernels(ctx)
	if err != nil {
		return "", err
	}
	return keys[0], nil
}

// incumbent is the kernel's default variant, or the first that is searched if that is not among
// them.
func (r *runner) incumbent(ctx context.Context) (string, error) {
	file := manifest.FileOf(r.key)
	text, err := r.repo.Read(ctx, "", file)
	if err != nil {
		return "", fmt.Errorf("reading the manifest: %w", err)
	}
	m, err := manifest.Parse(file, text)
	if err != nil {
		return "", usage.Error{Err: err}
	}
	if len(r.opt.Variants) > 0 && !slices.Contains(r.opt.Variants, m.DefaultVariant) && slices.Contains(m.VariantNames(), r.opt.Variants[0]) {
		return r.opt.Variants[0], nil
	}
	return m.DefaultVariant, nil
}

// plan returns the job that compares a variant with the incumbent.
func (r *runner) plan(ctx context.Context, variant string) (runners.Job, error) {
	if r.repo == nil { // the job is given
		job := r.job
		job.Candidate.Variant = variant
		return job, nil
	}
	opt, err := r.options(variant)
	if err != nil {
		return runners.Job{}, err
	}
	p, err := plan.New(ctx, opt)
	if err != nil {
		return runners.Job{}, usage.Error{Err: err}
	}
	job, err := p.Job(ctx, r.key)
	if err == nil && job.Unready != "" {
		err = errors.New(job.Unready)
	}
	return job, err
}

// files is a hash of everything that the candidates are built from and judged by.
func (r *runner) files() (string, error) {
	sum, err := folderhash.Sum(r.job.Trusted)
	if err != nil {
		return "", fmt.Errorf("hashing the files of %s: %w", r.job.Manifest.Name, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", sum, r.job.PolicyText, r.opt.Labels)
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// problem is a hash of what a kernel is asked for, for the known failures.
func (r *runner) problem() string {
	// Every field of the problem differs from an empty manifest's, so that the differences name it.
	h := sha256.New()
	fmt.Fprintf(h, "%q %+v", r.job.PolicyText, manifest.Compare(&manifest.Manifest{}, r.job.Manifest))
	if text, err := os.ReadFile(filepath.Join(r.job.Trusted, filepath.FromSlash(referenceOf(r.job.Manifest)))); err == nil {
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func referenceOf(m *manifest.Manifest) string {
	if m.Reference == nil {
		return ""
	}
	return m.Reference.Source
}

func (r *runner) run(ctx context.Context, progress runners.Progress, begin Begin) (*Session, error) {
	if why := measure.LeftOut(r.opt.Runner, r.job.Manifest); why != "" {
		return nil, usage.Errorf("%s: %s", r.job.Manifest.Name, why)
	}
	bench, err := arm.NewBench(r.host, r.job, r.opt.Shapes)
	if err != nil {
		return nil, err
	}
	device, err := r.device(ctx)
	if err != nil {
		return nil, err
	}
	h, err := r.header(ctx, bench, device)
	if err != nil {
		return nil, err
	}
	proposer, stop, err := r.proposer(ctx, h)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := r.openLog(h); err != nil {
		return nil, err
	}
	begin(r.folder)
	failures, err := r.failures()
	if err != nil {
		return nil, err
	}
	field, err := bench.OpenField(ctx, filepath.Join(r.scratch, "field"), muted{})
	if err != nil {
		return nil, err
	}
	if field != nil {
		defer field.Close()
	}
	lab := NewBenchLab(bench, field, r.log.Header.Space, r.job, device, filepath.Join(r.scratch, "arms"), func(ctx context.Context, name string, side runners.Side, a Attempt) (Confirmed, error) {
		return r.confirm(ctx, name, side, a, progress)
	})
	defer lab.Close()
	search := &Search{Log: r.log, Proposer: proposer, Lab: lab, Failures: failures, Progress: progress, Sources: r.sources()}
	sources := search.Sources
	result, err := search.Run(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(r.folder, ChartFile), []byte(result.SVG()), 0o644); err != nil {
		return nil, fmt.Errorf("writing the chart: %w", err)
	}
	return &Session{Result: result, Folder: r.folder, Verdict: r.verdictOf(result), ManifestFile: manifest.FileOf(r.key), Manifest: []byte(r.job.ManifestText), Sources: sources, PathOf: r.pathOf}, nil
}

// pathOf is where the repository has a source.
func (r *runner) pathOf(source string) string {
	if root := r.job.Manifest.Root; root != "" {
		return path.Join(root, source)
	}
	return path.Join(manifest.FolderOf(r.key), source)
}

// device opens a backend to ask what it runs on.
func (r *runner) device(ctx context.Context) (string, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	scratch := filepath.Join(r.scratch, "device")
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return "", fmt.Errorf("making a scratch folder: %w", err)
	}
	b, err := r.host.Open(ctx, r.job, scratch)
	if errors.Is(err, cuda.ErrNoGPU) {
		return "", fmt.Errorf("searching %s: %w (search on a host with one, see kernelgate doctor; a replay of a log needs none)", r.job.Manifest.Name, cuda.ErrNoGPU)
	}
	if err != nil {
		return "", err
	}
	d := b.Device()
	return strings.TrimSpace(d.Name + " " + d.Arch), nil
}
