package check

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

// One is a single case, as flags name it.
type One struct {
	Shape  string // dims such as R=5,C=63, or the name of a shape
	Seed   uint64
	Inputs string // a distribution
}

// Replay repeats one case of one kernel and shows it in full. right reports whether the candidate
// is right.
func Replay(ctx context.Context, opt Options, one One, progress runners.Progress) (text string, right bool, err error) {
	c, err := open(ctx, opt)
	if err != nil {
		return "", false, err
	}
	defer c.close()
	folders, err := c.plan.Kernels(ctx)
	if err != nil {
		return "", false, err
	}
	if len(folders) != 1 {
		return "", false, usage.Errorf("--shape repeats one case of one kernel, and the change touches %d (name one, e.g. kernelgate check NAME --shape R=5,C=63)", len(folders))
	}
	job, err := c.plan.Job(ctx, folders[0])
	if err != nil {
		return "", false, err
	}
	if job.Removed {
		return "", false, usage.Errorf("the change removes %s: there is nothing to repeat", job.Manifest.Name)
	}
	if job.Unready != "" {
		return "", false, usage.Errorf("there is nothing to repeat: %s", job.Unready)
	}
	if len(job.Broken) > 0 {
		return "", false, usage.Errorf("there is nothing to repeat: %s", job.BrokenEvidence().Candidate.Error)
	}
	k, err := one.on(job)
	if err != nil {
		return "", false, err
	}
	l, err := opt.DumpCase(ctx, job, k, filepath.Join(filepath.Dir(job.Trusted), "build"), progress)
	if err != nil {
		return "", false, err
	}
	problem := l.Case.Problem(job.Rule().Gates.Correctness)
	text, err = elementsText(l, job.Manifest, problem)
	return text, problem == "", err
}

// on returns the case for a kernel.
func (o One) on(job runners.Job) (runners.Case, error) {
	m := job.Manifest
	k := runners.Case{Seed: o.Seed, Distribution: distribution.Kind(o.Inputs)}
	kinds := distribution.All()
	for _, r := range job.RecordingsOnRecord() {
		kinds = append(kinds, r.Kind())
	}
	if !slices.Contains(kinds, k.Distribution) {
		return k, usage.Errorf("--inputs: %q is not one of %s", o.Inputs, strict.JoinWords(kinds))
	}
	if s, ok := m.Shape(o.Shape); ok {
		k.Shape = s
	} else {
		dims, err := manifest.ParseDims(o.Shape, m.Shapes[0].Dims)
		if err != nil {
			return k, usage.Errorf("--shape: %w (write e.g. %s, or one of %s)", err, strings.ReplaceAll(m.Shapes[0].Dims.String(), " ", ","), strings.Join(m.ShapeNames(), ", "))
		}
		k.Shape = manifest.Shape{Name: "a shape", Dims: dims}
		for _, s := range m.Shapes {
			if s.Dims.String() == dims.String() {
				k.Shape.Name = s.Name
			}
		}
	}
	for _, r := range job.RecordingsOnRecord() {
		if shape, _ := m.Shape(r.Shape); r.Kind() == k.Distribution && shape.Dims.String() != k.Shape.Dims.String() {
			return k, usage.Errorf("--shape: the recording %s is of %s (write --shape %[2]s)", r.Name, r.Shape)
		}
	}
	for _, side := range []*runners.Side{job.Baseline, &job.Candidate} {
		if side != nil && !job.Of(*side).Supports(side.Variant, k.Shape.Dims) {
			return k, usage.Errorf("--shape: %s is beyond the limits of %s, variant %s", k.Shape.Dims, m.Name, side.Variant)
		}
	}
	return k, nil
}

// secretSize parses the size that replaces a drawn secret shape.
func secretSize(job runners.Job, text string) (manifest.Dims, error) {
	if text == "" {
		return nil, nil
	}
	if !job.TimesSecretShape() {
		return nil, usage.Errorf("--secret-shape: no secret shape of %s is timed: that takes a baseline, a cpu or cuda kernel, and a policy with a guard on the speedup and without secret_shape: false", job.Manifest.Name)
	}
	like := job.Manifest.Shapes[0].Dims
	dims, err := manifest.ParseDims(text, like)
	if err == nil {
		err = job.TakesSecret(dims)
	}
	if err != nil {
		return nil, usage.Errorf("--secret-shape: %w (write it like %s, with a size that no shape of the manifest has)", err, strings.ReplaceAll(like.String(), " ", ","))
	}
	return dims, nil
}

// commitName matches a commit as evidence names it.
var commitName = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// Again returns how to repeat a case of a stored run: what the run compared, and its case.
func Again(target string) (Options, One, error) {
	path, number, ok := strings.Cut(target, "#")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 {
		return Options{}, One{}, usage.Errorf("%q does not name a case (write e.g. results/20260102T030405Z#3: a folder of results or an evidence.json, and the case's number)", target)
	}
	if filepath.Ext(path) != ".json" {
		path = filepath.Join(path, "evidence.json")
	}
	e, err := ReadEvidence(path)
	if err != nil {
		return Options{}, One{}, err
	}
	if e.Correctness == nil || n > len(e.Correctness.Cases) {
		cases := 0
		if e.Correctness != nil {
			cases = len(e.Correctness.Cases)
		}
		return Options{}, One{}, usage.Errorf("%s has %d cases, and no #%d", path, cases, n)
	}
	k := e.Correctness.Cases[n-1]
	for _, commit := range []string{e.Provenance.Base.SHA, e.Provenance.Head.SHA} {
		if commit != "" && !commitName.MatchString(commit) {
			return Options{}, One{}, usage.Errorf("%s: provenance: %q is no commit", path, commit)
		}
	}
	return optionsOf(e), One{Shape: strings.ReplaceAll(k.Dims, " ", ","), Seed: k.Seed, Inputs: k.Distribution}, nil
}

// optionsOf returns what the evidence compared. For a head that was not committed it uses the work
// tree.
func optionsOf(e *gates.Evidence) Options {
	at := e.Provenance
	opt := Options{Kernels: []string{e.Kernel}, Change: e.Change, Received: true}
	if at.Head.Variant != "" && at.Base.Variant != "" {
		opt.Variant, opt.BaselineVariant = at.Head.Variant, at.Base.Variant
	} else {
		opt.Base = at.Base.SHA
	}
	if !at.Head.Dirty {
		opt.Head = at.Head.SHA
	}
	words := strings.Fields(at.Command)
	if len(words) > 0 {
		opt.Kernels[0] = words[len(words)-1] // the repository's name for it
	}
	if i := slices.Index(words, "--policy"); i >= 0 && i+1 < len(words) {
		opt.Policy = words[i+1]
	}
	return opt
}
