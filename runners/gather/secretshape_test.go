package gather

import (
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// guardedJob returns a job whose policy guards the first shape.
func guardedJob(t *testing.T, manifestYAML string) runners.Job {
	t.Helper()
	j := job(t)
	var err error
	if j.Manifest, err = manifest.Parse("kernel.yaml", []byte(manifestYAML)); err != nil {
		t.Fatal(err)
	}
	if j.Policy, err = policy.Parse("policy.yaml", []byte(read("guarded.yaml"))); err != nil {
		t.Fatal(err)
	}
	return j
}

// TestNoSecretShape checks that no secret shape is timed if there is nothing to find, or nobody
// asks. A note says if the manifest lacks the ranges.
func TestNoSecretShape(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*runners.Job)
		note bool
	}{
		"no secret":      {func(j *runners.Job) { j.Manifest.Secret = nil }, true},
		"switched off":   {func(j *runners.Job) { j.Policy.Rules[0].Gates.Performance.SecretShape = new(false) }, false},
		"no guard":       {func(j *runners.Job) { j.Policy.Rules[0].Gates.Performance.Guard = nil }, false},
		"no gate":        {func(j *runners.Job) { j.Policy.Rules[0].Gates.Performance = nil }, false},
		"a new kernel":   {func(j *runners.Job) { j.Baseline = nil }, false},
		"a harness":      {func(j *runners.Job) { j.Manifest.Mode = manifest.ModeCommand }, false},
		"noise":          {func(j *runners.Job) { j.Noise = true }, false},
		"shapes by name": {func(j *runners.Job) { j.Shapes = []string{"one"} }, false},
		"nothing is timed": {func(j *runners.Job) {
			p := j.Policy.Rules[0].Gates.Performance
			p.Target, p.Guard.Shapes.Names = nil, []string{"none"}
		}, false},
	} {
		j := guardedJob(t, manifestYAML)
		c.edit(&j)
		e := newGatherer(j, &scripted{job: j}, silent{}).evidence
		if noted := slices.Contains(e.Notes, noSecretNote); len(e.Shapes) != 2 || noted != c.note {
			t.Errorf("%s: %d shapes, notes %q", name, len(e.Shapes), e.Notes)
		}
	}
	e := newGatherer(guardedJob(t, manifestYAML), &scripted{}, silent{}).evidence
	if len(e.Shapes) != 3 || !e.Shapes[2].Secret || e.Shapes[2].Name != "secret" || e.Notes != nil {
		t.Errorf("%+v, notes %q", e.Shapes, e.Notes)
	}
}

// TestSecretShapeIsKept checks that every round has the secret shape, and that a run that continues
// keeps the one that it began with.
func TestSecretShapeIsKept(t *testing.T) {
	gather := func(seed uint64, record runners.Record) *gates.Evidence {
		j := guardedJob(t, manifestYAML)
		j.Record, j.Rounds = record, 2
		e, err := Gather(t.Context(), j, &seeded{scripted{job: j, compile: true, ratio: 2}, seed}, silent{})
		if err != nil || e.Fault != "" {
			t.Fatal(err, e.Fault)
		}
		for i, r := range e.Performance.Rounds {
			if len(r.Series) != 3 {
				t.Fatalf("round %d has %d shapes", i+1, len(r.Series))
			}
		}
		return e
	}
	first := gather(1, nil)
	if other := gather(2, nil); other.Shapes[2] == first.Shapes[2] {
		t.Fatalf("another seed draws %s too", other.Shapes[2].Dims)
	}
	on := gather(2, &memory{earlier: runners.Earlier{Evidence: first, Again: true}, attempts: 1})
	if on.Shapes[2] != first.Shapes[2] || attempts(on) != "11111122" {
		t.Errorf("after %s it goes on with %s, attempts %s", first.Shapes[2].Dims, on.Shapes[2].Dims, attempts(on))
	}
}

// TestEarlierEvidenceWithoutSecretShape checks that evidence from before there were secret shapes
// is continued as it is.
func TestEarlierEvidenceWithoutSecretShape(t *testing.T) {
	j := guardedJob(t, manifestYAML)
	j.Policy.Rules[0].Gates.Performance.SecretShape = new(false)
	b := &scripted{job: j, compile: true, ratio: 2}
	old, err := Gather(t.Context(), j, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	j = guardedJob(t, manifestYAML)
	j.Record, j.Rounds = &memory{earlier: runners.Earlier{Evidence: old, Again: true}, attempts: 1}, 2
	b.job = j
	e, err := Gather(t.Context(), j, b, silent{})
	if err != nil || e.Fault != "" || len(e.Shapes) != 2 || len(e.Performance.Rounds) != 8 {
		t.Errorf("%v %s: %d shapes", err, e.Fault, len(e.Shapes))
	}
}

// seeded is a scripted backend with a given seed.
type seeded struct {
	scripted
	seed uint64
}

func (s *seeded) Seed() uint64 { return s.seed }
