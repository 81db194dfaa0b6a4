package planner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
)

// A Rerun is what somebody asks of a kernel beyond the policy.
type Rerun struct {
	Folder  string // which kernel, see manifest.KeyOf
	Device  string // of the policy that the run is for; "" if any one runner is enough
	Rounds  int
	Shapes  []string
	Seeds   []int64
	Versus  string
	Profile bool
	// Approved is the heads of the change that may be run although no branch of the
	// repository has them.
	Approved []string
}

// Rerun packs one kernel of a change once more and names the bundle. A name that
// the repository does not have is a usage.Error.
func (p *Planner) Rerun(ctx context.Context, id change.ID, f change.Facts, r Rerun) (string, error) {
	digest, err := p.packAgain(ctx, id, f, func(ctx context.Context, s *survey) (string, error) { return s.rerun(ctx, r) })
	if err != nil {
		return "", fmt.Errorf("planning %s at %.12s again: %w", f.Repo, f.Head, err)
	}
	return digest, nil
}

// packAgain reads the files of a planned change again, and returns the name of the bundle that pack makes.
func (p *Planner) packAgain(ctx context.Context, id change.ID, f change.Facts, pack func(context.Context, *survey) (string, error)) (digest string, err error) {
	s := p.survey(id, f)
	defer s.close()
	s.repo, err = p.Mirrors.Fetch(ctx, f.Repo, refsOf(id, f)...) // the command may name a branch that was pushed a moment ago
	if err == nil {
		err = p.within(ctx, func(ctx context.Context) (err error) {
			if err := s.settle(ctx); err != nil {
				return err
			}
			digest, err = pack(ctx, s)
			return err
		})
	}
	var refused checkout.Refused
	if errors.As(err, &refused) {
		err = usage.Error{Err: refused}
	}
	return digest, err
}

// jobOf plans one kernel, which folder identifies.
func (s *survey) jobOf(ctx context.Context, o plan.Options, folder string) (runners.Job, error) {
	o.Kernels = []string{folder}
	p, err := plan.New(ctx, o)
	if err != nil {
		return runners.Job{}, err
	}
	keys, err := p.Kernels(ctx)
	if err == nil && keys[0] != folder { // the last part of the path may match a different kernel
		err = usage.Errorf("no kernel named %q", folder)
	}
	if err != nil {
		return runners.Job{}, err
	}
	job, _, err := s.job(ctx, p, keys[0])
	return job, err
}

// buildable refuses a job that cannot be built.
func buildable(job runners.Job) error {
	switch {
	case job.Unready != "":
		return usage.Errorf("the kernel cannot be built: %s", job.Unready)
	case len(job.Broken) > 0:
		return usage.Errorf("the head cannot be built: %s", job.Broken[0])
	}
	return nil
}

// hasShapes refuses shapes that the kernel does not have.
func hasShapes(m *manifest.Manifest, shapes []string) error {
	known := m.ShapeNames()
	if unknown := (policy.Shapes{Names: shapes}).Unknown(known); len(unknown) > 0 {
		return usage.Errorf("%s has no shape %q (it has %s)", m.Name, unknown[0], strings.Join(known, ", "))
	}
	return nil
}

func (s *survey) rerun(ctx context.Context, r Rerun) (string, error) {
	job, err := s.jobAgain(ctx, r)
	if err != nil {
		return "", err
	}
	if r.Versus != "" && len(r.Shapes) == 0 {
		r.Shapes = job.Manifest.ShapeNames() // nothing must be gained over what the policy does not name
	}
	job.Rounds, job.Shapes, job.Seeds, job.Profile = r.Rounds, r.Shapes, r.Seeds, r.Profile
	return s.planner.pack(ctx, job)
}

// jobAgain plans a kernel of which somebody asks something. Both sides must take the shapes.
func (s *survey) jobAgain(ctx context.Context, r Rerun) (runners.Job, error) {
	policyAt, err := s.policy(ctx)
	if err != nil {
		return runners.Job{}, err
	}
	o := s.options(policyAt, r.Device)
	if o.Versus, err = s.versus(ctx, r.Versus, r.Approved); err != nil {
		return runners.Job{}, err
	}
	job, err := s.jobOf(ctx, o, r.Folder)
	if err == nil {
		err = buildable(job)
	}
	if err == nil {
		err = hasShapes(job.Manifest, r.Shapes)
	}
	if err != nil {
		return runners.Job{}, err
	}
	for _, name := range r.Shapes {
		if why := plan.OutsideLimits(job, name); why != "" {
			return runners.Job{}, usage.Errorf("%s", why)
		}
	}
	return job, nil
}

// pack stores a bundle under its digest, so the same job is stored once.
func (p *Planner) pack(ctx context.Context, job runners.Job) (string, error) {
	file, err := os.CreateTemp(p.Scratch, "kernelgate-bundle-")
	if err != nil {
		return "", fmt.Errorf("packing %s: %w", job.Manifest.Name, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	digest, err := bundle.Write(file, job)
	if err != nil {
		return "", fmt.Errorf("packing %s: %w", job.Manifest.Name, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("packing %s: %w", job.Manifest.Name, err)
	}
	if _, err := p.Bundles.Put(ctx, digest, file); err != nil {
		return "", fmt.Errorf("storing the bundle of %s: %w", job.Manifest.Name, err)
	}
	return digest, nil
}

// sources is the digest of what is built and measured, whatever rule it is judged by: what
// a merge has, and what the base branch has now.
func sources(job runners.Job) (string, error) {
	h := sha256.New()
	alone, err := referenceAlone(job)
	if err != nil {
		return "", fmt.Errorf("reading the reference of %s: %w", job.Manifest.Name, err)
	}
	dirs := []string{job.Trusted, job.Candidate.Dir}
	fmt.Fprintf(h, "%q %q %q\n", job.ManifestText, job.Candidate.Variant, job.Of(job.Candidate).Recipe(job.Candidate.Variant))
	if job.Baseline != nil {
		fmt.Fprintf(h, "%q %q\n", job.Baseline.Variant, job.Of(*job.Baseline).Recipe(job.Baseline.Variant))
		dirs = append(dirs, job.Baseline.Dir)
	}
	if err := errors.Join(hashPins(h, job), json.NewEncoder(h).Encode(job.Candidate.Differs)); err != nil {
		return "", err
	}
	for i, dir := range dirs {
		if err := folderhash.Write(h, dir, func(rel string) bool { return i > 0 || !alone || !job.Manifest.IsSource(rel) }); err != nil {
			return "", fmt.Errorf("reading the sources of %s: %w", job.Manifest.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashPins adds the compilers that are pinned: the same sources are something else by another.
func hashPins(h io.Writer, job runners.Job) error {
	pins := []policy.Toolchains{job.Candidate.Toolchains}
	if job.Baseline != nil {
		pins = append(pins, job.Baseline.Toolchains)
	}
	if !slices.ContainsFunc(pins, func(t policy.Toolchains) bool { return t != policy.Toolchains{} }) {
		return nil
	}
	return json.NewEncoder(h).Encode(pins)
}

// requirementsDigest is the digest of what evidence about the same machine code depends on beside the
// policy: manifest, reference and harness of the base, and how each side is launched. It
// goes by what a launch comes to at some sizes. Attempts at the same code that agree there
// count together, so that writing an expression in another way is no new chance; whether
// evidence of one holds for another is for dispatch to say.
func requirementsDigest(job runners.Job) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", job.ManifestText, job.Of(job.Candidate).Launches(job.Candidate.Variant))
	if job.Baseline != nil {
		fmt.Fprintf(h, "%q\n", job.Of(*job.Baseline).Launches(job.Baseline.Variant))
	}
	alone, err := referenceAlone(job)
	if err == nil {
		err = folderhash.Write(h, job.Trusted, func(rel string) bool {
			switch m := job.Manifest; {
			case runners.ModeOf(m).OwnHarness():
				return !m.IsSource(rel)
			case alone:
				return m.Reference != nil && rel == path.Clean(m.Reference.Source)
			}
			return true
		})
	}
	if err != nil {
		return "", fmt.Errorf("reading what is asked of %s: %w", job.Manifest.Name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// dispatch is the digest of what decides, apart from the machine code, what each side runs at
// every problem size. It goes by the text: two expressions may agree wherever somebody tries
// them, and differ elsewhere.
func dispatch(job runners.Job) (string, error) {
	sides := []runners.Side{job.Candidate}
	if job.Baseline != nil {
		sides = append(sides, *job.Baseline)
	}
	h := sha256.New()
	for _, side := range sides {
		text, known := job.Dispatch(side)
		if !known {
			return "", fmt.Errorf("the sources of %s were not hashed", job.Manifest.Name)
		}
		fmt.Fprintf(h, "%q\n", text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// companionNames is the files beside it that a reference reads, or asks for: it gets no folders
// to include from. It is alone where that is none of them for sure. Whoever wrote it is
// trusted not to have an assembler read one.
func companionNames(file string, reference []byte) (names []string, alone bool) {
	if path.Ext(file) == ".py" {
		return nil, true // its sandbox has no other file of the repository
	}
	included, plain := plan.Included(reference, false)
	for _, i := range included {
		if i.Beside {
			names = append(names, i.Name)
		}
	}
	return names, plain && len(names) == 0
}

// referenceAlone tells whether the reference needs no other file of the kernel's.
func referenceAlone(job runners.Job) (bool, error) {
	if job.Manifest.Reference == nil || job.Manifest.Reference.Source == "" {
		return true, nil
	}
	text, err := os.ReadFile(filepath.Join(job.Trusted, filepath.FromSlash(job.Manifest.Reference.Source)))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // the build says so
	}
	_, alone := companionNames(job.Manifest.Reference.Source, text)
	return alone, err
}
