package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/arm"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// header says what is searched. A log to resume has it, and must be about the same files.
func (r *runner) header(ctx context.Context, bench *arm.Bench, device string) (Header, error) {
	files, err := r.files()
	if err != nil {
		return Header{}, err
	}
	if r.log != nil {
		h := r.log.Header
		switch {
		case h.Space.Kernel != r.job.Manifest.Name:
			return h, usage.Errorf("--resume %s: its search is about the kernel %s, and not about %s", r.folder, h.Space.Kernel, r.job.Manifest.Name)
		case h.Files != files:
			return h, usage.Errorf("--resume %s: the kernel's files or the policy have changed since the search began (begin a new search, or restore them)", r.folder)
		case h.Device != device:
			return h, usage.Errorf("--resume %s: its search is about %s, and this is %s (go on there, or begin a new search)", r.folder, h.Device, device)
		}
		return h, nil
	}
	space, err := NewSpace(r.job.Manifest, r.opt.Baseline, r.opt.Variants, r.opt.Toggles)
	if err != nil {
		return Header{}, err
	}
	if len(r.opt.Toggles) == 0 || slices.Contains(r.opt.Toggles, Autotune) {
		offered, chosen, err := r.offered(ctx, bench)
		if err == nil {
			err = space.tuned(offered, chosen)
		}
		if err != nil {
			return Header{}, err
		}
	}
	h := Header{
		Version: logVersion, Space: space, Shapes: bench.Shapes(), Device: device, Proposer: r.opt.Proposer, Seed: r.opt.Seed, Candidates: r.opt.Candidates,
		Budget: r.opt.Budget.Seconds(), Epsilon: r.opt.Epsilon, MaxRounds: cmp.Or(r.opt.MaxRounds, defaultMaxRounds), Exhaustive: r.opt.Exhaustive, Guards: bench.Guards(), Goals: bench.Goals(), NoGate: r.opt.NoGate, Files: files,
	}
	if h.Proposer == "" {
		if h.Proposer = "grid"; space.Size() > min(wholeSpace, float64(h.Candidates)) {
			h.Proposer = "local"
		}
	}
	if h.Exhaustive {
		if h.Proposer = "exhaustive"; space.Size() > float64(h.Candidates) {
			return h, usage.Errorf("--exhaustive: the space has %s points, more than --candidates %d (raise it, or narrow the space with --variant and --toggle)", sizeText(space.Size()), h.Candidates)
		}
	}
	if h.Seed == 0 {
		h.Seed = runners.Seed(0) >> 16 // short enough to type
	}
	if err := h.check(); err != nil {
		return h, usage.Error{Err: err}
	}
	return h, nil
}

// wholeSpace is the number of points up to which all of them are compiled and screened, unless a proposer is named.
const wholeSpace = 2000

// openLog begins a log, unless there is one to go on with.
func (r *runner) openLog(h Header) (err error) {
	if r.log != nil {
		return nil
	}
	if r.folder, err = r.newFolder(); err != nil {
		return err
	}
	r.log, err = CreateLog(r.folder, h)
	return err
}

// newFolder makes results/tune-<UTC time>.
func (r *runner) newFolder() (string, error) {
	if err := os.MkdirAll(r.results, 0o755); err != nil {
		return "", fmt.Errorf("making the results folder: %w", err)
	}
	if r.opt.Results == "" {
		if err := check.Ignore(r.results); err != nil {
			return "", err
		}
	}
	base := filepath.Join(r.results, "tune-"+r.opt.Now().UTC().Format("20060102T150405Z"))
	for n := 1; n < 1000; n++ {
		dir := base
		if n > 1 {
			dir = fmt.Sprintf("%s-%d", base, n)
		}
		if err := os.Mkdir(dir, 0o755); err == nil {
			return dir, nil
		} else if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("making the folder of the search: %w", err)
		}
	}
	return "", fmt.Errorf("making the folder of the search: %s is taken", base)
}

// proposer returns the proposer of the search, and a function that ends it.
func (r *runner) proposer(ctx context.Context, h Header) (Proposer, func(), error) {
	if h.Exhaustive {
		return Exhaustive(), func() {}, nil
	}
	words := strings.Fields(h.Proposer)
	if len(words) > 0 && strings.Contains(words[0], "/") {
		m := r.job.Manifest
		p, err := StartProgram(ctx, words, func(file string) bool { return MayBring(m, file) }, os.Getenv)
		if err != nil {
			return nil, nil, err
		}
		return p, p.Close, nil
	}
	p, err := NewProposer(h.Proposer, h.Seed)
	return p, func() {}, err
}

func (r *runner) failures() (*Failures, error) {
	if r.opt.Retry {
		return nil, nil
	}
	f, err := OpenFailures(filepath.Join(r.results, FailuresFile), r.problem())
	if err == nil {
		f.Kernel = r.job.Manifest.Name
	}
	return f, err
}

// maxSources bounds what a proposer is shown of the sources.
const maxSources = 4 << 20

// sources are the files that a candidate may replace.
func (r *runner) sources() map[string]string {
	m := r.job.Manifest
	dir := filepath.Join(r.job.Baseline.Dir, filepath.FromSlash(SourcePath(m, ".")))
	files, total := map[string]string{}, 0
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !MayBring(m, name) {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if total += len(text); err == nil && total <= maxSources {
			files[name] = string(text)
		}
		return nil
	})
	return files
}
