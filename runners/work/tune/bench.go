package tune

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// A Gate judges a finalist: it takes the candidate's side through all gates of the policy.
type Gate func(ctx context.Context, name string, side runners.Side, a Attempt) (Confirmed, error)

// A BenchLab measures candidates on an arm.Bench.
type BenchLab struct {
	bench   *arm.Bench
	space   Space
	side    runners.Side // of the incumbent: a candidate differs in its variant and in the files that it brings
	m       *manifest.Manifest
	text    string // of m
	device  string
	scratch string
	gate    Gate

	field  *arm.Field // nil if candidates cannot be timed next to each other
	racing []string   // the arms of this round
	racers []Candidate
	timed  map[string]Timed

	mu    sync.Mutex
	arms  map[string]*arm.Arm
	dirs  int
	built map[string]bool // in the field
	since time.Time       // when the first candidate was built that is not screened yet
}

const (
	screenSamples = 5 // of every candidate on every shape
	raceSamples   = 9
)

// NewBenchLab returns a lab for a job, whose baseline is the incumbent. Builds go to scratch.
func NewBenchLab(bench *arm.Bench, field *arm.Field, space Space, job runners.Job, device, scratch string, gate Gate) *BenchLab {
	return &BenchLab{
		field: field, built: map[string]bool{}, bench: bench, space: space, side: *job.Baseline, m: job.Of(*job.Baseline), text: cmp.Or(job.Baseline.ManifestText, job.ManifestText), device: device, scratch: scratch, gate: gate,
		arms: map[string]*arm.Arm{},
	}
}

// Device names what the candidates run on.
func (l *BenchLab) Device() string { return l.device }

// Begin allows every round.
func (l *BenchLab) Begin(ids []string, all []Candidate) bool {
	l.racing, l.racers, l.timed = ids, all, nil
	return true
}

// maxOutput is how many messages of a compiler are kept.
const maxOutput = 20

// Build compiles a candidate.
func (l *BenchLab) Build(ctx context.Context, id string, c Candidate) (Built, error) {
	start := time.Now()
	out := Built{ID: id}
	if err := l.m.Try(l.variant(c)); err != nil {
		out.Refusal = &arm.Refusal{Gate: gates.GateBuild, Reason: gates.ReasonBuild, Text: err.Error()}
		return out, nil
	}
	l.mu.Lock()
	if l.since.IsZero() {
		l.since = start
	}
	l.mu.Unlock()
	built, refusal, err := l.make(ctx, id, c)
	if err != nil {
		return out, err
	}
	out.Refusal, out.Resources, out.Incumbent = refusal, built.Resources, built.Baseline
	for _, d := range built.Diagnostics[:min(len(built.Diagnostics), maxOutput)] {
		out.Output = append(out.Output, d.String())
	}
	if built.Same != "" {
		sum := sha256.Sum256([]byte(built.Same))
		out.Same = hex.EncodeToString(sum[:16])
	}
	out.Seconds = time.Since(start).Seconds()
	if refusal != nil {
		l.Release(id)
	}
	return out, nil
}

// make compiles a candidate in the field or, without one, on an arm of its own.
func (l *BenchLab) make(ctx context.Context, id string, c Candidate) (arm.Built, *arm.Refusal, error) {
	if l.field == nil {
		a, refusal, err := l.open(ctx, id, c)
		if err != nil || a.Candidate() == nil {
			return arm.Built{}, refusal, err
		}
		return arm.Built{Build: *a.Candidate(), Same: a.Same(), Baseline: a.IsBaseline()}, refusal, nil
	}
	side, err := l.sideOf(c)
	if err != nil {
		return arm.Built{}, nil, err
	}
	built, refusal, err := l.field.Build(ctx, id, side, l.folder("candidate"))
	if err == nil && refusal == nil {
		l.mu.Lock()
		l.built[id] = true
		l.mu.Unlock()
	}
	return built, refusal, err
}

// Screen times candidates next to each other.
func (l *BenchLab) Screen(ctx context.Context, ids []string, all []Candidate) ([]Screened, error) {
	start := time.Now()
	if !l.since.IsZero() {
		start, l.since = l.since, time.Time{}
	}
	var out []Screened
	if l.field == nil {
		for i, id := range ids {
			t, err := l.alone(ctx, id, all[i])
			if err != nil {
				return nil, err
			}
			out = append(out, Screened{Refusal: t.Refusal, Speedups: t.Speedups, Micros: t.Micros})
		}
	} else {
		found, err := l.next(ctx, ids, all, screenSamples)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			out = append(out, Screened{Refusal: t.Refusal, Differs: t.Differs, Speedups: t.Speedups, Micros: t.Micros, Noise: t.Noise})
		}
	}
	for i := range out {
		out[i].Seconds = time.Since(start).Seconds() / float64(len(out))
	}
	return out, nil
}

// next times candidates in the field. Those that an earlier part of the search has built are built again.
func (l *BenchLab) next(ctx context.Context, ids []string, all []Candidate, samples int) ([]arm.Times, error) {
	refused := map[string]*arm.Refusal{}
	var ready []string
	for i, id := range ids {
		if !l.built[id] {
			_, refusal, err := l.make(ctx, id, all[i])
			if err != nil {
				return nil, err
			}
			if refused[id] = refusal; refusal != nil {
				continue
			}
		}
		ready = append(ready, id)
	}
	found, err := l.field.Time(ctx, ready, samples)
	if err != nil {
		return nil, err
	}
	var out []arm.Times
	for _, id := range ids {
		if refused[id] != nil {
			out = append(out, arm.Times{Refusal: refused[id]})
			continue
		}
		out, found = append(out, found[0]), found[1:]
	}
	return out, nil
}

// variant is the candidate's name in the manifest.
func (l *BenchLab) variant(c Candidate) string {
	c.Files = nil
	return l.space.Short(c.untuned())
}

// open builds an arm and keeps it.
func (l *BenchLab) open(ctx context.Context, id string, c Candidate) (*arm.Arm, *arm.Refusal, error) {
	side, err := l.sideOf(c)
	if err != nil {
		return nil, nil, err
	}
	// The arm outlives the step that opens it.
	a, err := l.bench.Open(context.WithoutCancel(ctx), side, l.folder("arm"), muted{})
	if err != nil {
		return nil, nil, err
	}
	refusal, err := a.Build(ctx)
	if err != nil {
		a.Close()
		return nil, nil, err
	}
	l.mu.Lock()
	l.arms[id] = a
	l.mu.Unlock()
	return a, refusal, nil
}

// folder names a new folder.
func (l *BenchLab) folder(kind string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs++
	return filepath.Join(l.scratch, fmt.Sprintf("%s-%d", kind, l.dirs))
}

// arm returns the arm of a candidate. An arm that was released, or that an earlier part of the search
// had, is built again, and its outputs are compared again: the gates judge its rounds by them. If the
// new secret cases refuse it, that counts.
func (l *BenchLab) arm(ctx context.Context, id string, c Candidate) (*arm.Arm, *arm.Refusal, error) {
	l.mu.Lock()
	a := l.arms[id]
	l.mu.Unlock()
	if a != nil {
		return a, nil, nil
	}
	a, refusal, err := l.open(ctx, id, c)
	if err == nil && refusal == nil {
		refusal, err = a.Check(ctx)
	}
	return a, refusal, err
}

// sideOf is the candidate's side. Files that it brings are laid over a copy of the folder.
func (l *BenchLab) sideOf(c Candidate) (runners.Side, error) {
	side := l.side
	side.Variant = l.variant(c)
	if words := l.space.configuration(c); words != "" {
		var err error
		if side.Manifest, side.ManifestText, err = configured(l.text, words); err != nil {
			return side, fmt.Errorf("choosing the configuration %s: %w", words, err)
		}
	}
	if len(c.Files) == 0 {
		return side, nil
	}
	side.Dir = l.folder("files")
	if err := os.CopyFS(side.Dir, os.DirFS(l.side.Dir)); err != nil {
		return side, fmt.Errorf("copying the sources: %w", err)
	}
	root, err := os.OpenRoot(side.Dir)
	if err != nil {
		return side, err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		if !MayBring(l.m, name) {
			return side, fmt.Errorf("%q is no source of %s", name, l.m.Name)
		}
		at := SourcePath(l.m, name)
		err := root.MkdirAll(path.Dir(at), 0o755)
		if err == nil {
			err = root.WriteFile(at, []byte(c.Files[name]), 0o644)
		}
		if err != nil {
			return side, fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if l.m.Specializes() {
		dir := side.Dir
		if l.m.Root != "" {
			dir = filepath.Join(dir, manifest.RepositoryFolder)
		}
		if side.Sources, err = folderhash.Sum(dir); err != nil {
			return side, fmt.Errorf("hashing the sources: %w", err)
		}
	}
	return side, nil
}

// MayBring reports whether a candidate may replace or add a file: a source of the kernel, never the
// reference or the manifest. With root, paths start at that folder.
func MayBring(m *manifest.Manifest, file string) bool {
	if m.Root == "" {
		return m.IsSource(file)
	}
	return file != "" && path.Clean(file) == file && filepath.IsLocal(file) && !manifest.IsManifest(path.Base(file))
}

// SourcePath is where a side's folder has a source.
func SourcePath(m *manifest.Manifest, file string) string {
	if m.Root == "" {
		return file
	}
	return path.Join(manifest.RepositoryFolder, m.Root, file)
}

// Check compares the candidate's outputs with the reference.
func (l *BenchLab) Check(ctx context.Context, id string, c Candidate) (Checked, error) {
	l.mu.Lock()
	a := l.arms[id]
	l.mu.Unlock()
	start := time.Now()
	var refusal *arm.Refusal
	var err error
	if a == nil { // built by an earlier part of the search
		_, refusal, err = l.arm(ctx, id, c)
	} else {
		refusal, err = a.Check(ctx)
	}
	return Checked{ID: id, Refusal: refusal, Seconds: time.Since(start).Seconds()}, err
}

// Sanitize runs the candidate under the sanitizers of the policy.
func (l *BenchLab) Sanitize(ctx context.Context, id string, c Candidate) (Checked, error) {
	a, refusal, err := l.arm(ctx, id, c)
	start := time.Now()
	if err == nil && refusal == nil {
		refusal, err = a.Sanitize(ctx)
	}
	return Checked{ID: id, Refusal: refusal, Seconds: time.Since(start).Seconds()}, err
}

// Round times the candidate and the incumbent once. The first call of a round times all its arms next to each other.
func (l *BenchLab) Round(ctx context.Context, id string, c Candidate) (Timed, error) {
	if l.field == nil {
		return l.alone(ctx, id, c)
	}
	if l.timed == nil {
		start := time.Now()
		found, err := l.next(ctx, l.racing, l.racers, raceSamples)
		if err != nil {
			return Timed{}, err
		}
		l.timed = map[string]Timed{}
		for i, t := range found {
			l.timed[l.racing[i]] = Timed{Refusal: t.Refusal, Speedups: t.Speedups, Micros: t.Micros, Seconds: time.Since(start).Seconds() / float64(len(found))}
		}
	}
	return l.timed[id], nil
}

// alone times a candidate in a round of its own.
func (l *BenchLab) alone(ctx context.Context, id string, c Candidate) (Timed, error) {
	a, refusal, err := l.arm(ctx, id, c)
	if err == nil && refusal == nil && !a.Checked() {
		refusal, err = a.Check(ctx)
	}
	if err != nil || refusal != nil {
		return Timed{ID: id, Refusal: refusal}, err
	}
	round, refusal, err := a.Round(ctx)
	if err != nil {
		return Timed{}, err
	}
	t := Timed{ID: id, Refusal: refusal, Speedups: gates.RoundSpeedups(round), Seconds: round.Seconds, Micros: map[string]float64{}}
	times := gates.RoundTimes(&gates.Evidence{Performance: &gates.Performance{Rounds: []gates.Round{round}}})
	for shape, micros := range times {
		t.Micros[shape] = micros[0]
	}
	return t, nil
}

// Confirm has the gate judge the candidate.
func (l *BenchLab) Confirm(ctx context.Context, _ string, c Candidate, a Attempt) (Confirmed, error) {
	if l.gate == nil {
		return Confirmed{}, errors.New("there is no gate to confirm the winner")
	}
	side, err := l.sideOf(c)
	if err != nil {
		return Confirmed{}, err
	}
	start := time.Now()
	out, err := l.gate(ctx, l.variant(c), side, a)
	out.Seconds = time.Since(start).Seconds()
	return out, err
}

// Release closes an arm.
func (l *BenchLab) Release(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.arms[id]; a != nil {
		a.Close()
		delete(l.arms, id)
	}
	if l.built[id] {
		l.field.Drop(id)
		delete(l.built, id)
	}
}

// Close closes all arms.
func (l *BenchLab) Close() {
	for _, id := range slices.Collect(maps.Keys(l.arms)) {
		l.Release(id)
	}
}

// muted is the progress of an arm: the search reports instead.
type muted struct{}

func (muted) Report(runners.Event) {}
