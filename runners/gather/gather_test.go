package gather

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

var manifestYAML, policyYAML = read("kernel.yaml"), read("policy.yaml")

// read returns a file of the tests of package runners.
func read(name string) string {
	text, err := os.ReadFile(filepath.Join("..", "testdata", name))
	if err != nil {
		panic(err)
	}
	return string(text)
}

func job(t *testing.T) runners.Job {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte(policyYAML))
	if err != nil {
		t.Fatal(err)
	}
	return runners.Job{Manifest: m, Policy: p, Baseline: &runners.Side{Variant: m.DefaultVariant}, Candidate: runners.Side{Variant: m.DefaultVariant}}
}

// A scripted backend answers as the test sets it, and records what it was asked.
type scripted struct {
	runners.WithoutNotes
	runners.WithoutEnergy
	runners.WithoutArtifacts
	runners.WithoutExplanation
	runners.WithoutReference
	runners.WithoutArms
	job     runners.Job
	asked   []string
	ratio   float64
	fail    string // the step that has a fault
	wrong   bool
	compile bool
	within  context.Context // the context of the last round
	code    *gates.MachineCode
}

func (s *scripted) ask(step string) error {
	s.asked = append(s.asked, step)
	if s.fail == step {
		return errors.New("the disk is full")
	}
	return nil
}

func (s *scripted) Abilities() gates.Abilities {
	return gates.Abilities{Clock: gates.ClockProcess, SingleLaunches: true, OwnProcesses: true}
}

func (s *scripted) MachineCode(context.Context) *gates.MachineCode { return s.code }

func (s *scripted) BuildLog() string         { return "" }
func (s *scripted) Device() gates.Device     { return gates.Device{Kind: "cpu", Name: "scripted"} }
func (s *scripted) Seed() uint64             { return 1 }
func (s *scripted) Tools() map[string]string { return nil }

func (s *scripted) Build(_ context.Context, role runners.Role, _ runners.Side) (gates.Build, error) {
	return gates.Build{OK: s.compile || role == runners.Baseline, Error: "no", Code: string(role)}, s.ask("build " + string(role))
}

func (s *scripted) Correctness(_ context.Context, gate *policy.CorrectnessGate, _ runners.Progress) (*gates.Correctness, error) {
	c := &gates.Correctness{}
	for _, k := range runners.Cases(s.job, gate, rand.New(rand.NewPCG(1, 2))) {
		e := k.Evidence()
		e.Errors = &gates.Errors{Elements: 10}
		if s.wrong {
			e.Errors.NaN = 1
		}
		c.Cases = append(c.Cases, e)
	}
	return c, s.ask("correctness")
}

func (s *scripted) Round(ctx context.Context, _ *policy.PerformanceGate, shapes []manifest.Shape, _ runners.Progress) (gates.Round, error) {
	var r gates.Round
	for _, shape := range shapes {
		r.Series = append(r.Series, gates.Series{Shape: shape.Name, Batch: 1, Order: "bc bc", Nanos: []float64{1000 * s.ratio, 1000, 1001 * s.ratio, 1000}, Verified: 2, Worst: &gates.Errors{Elements: 10}})
	}
	s.within = ctx
	return r, s.ask("round")
}

func (s *scripted) Sanitize(_ context.Context, gate *policy.SanitizeGate, _ runners.Progress) (*gates.Sanitize, error) {
	out := &gates.Sanitize{}
	for _, c := range runners.SanitizeCases(s.job, gate, rand.New(rand.NewPCG(1, 2))) {
		out.Cases = append(out.Cases, c.Input())
	}
	for _, tool := range gate.Tools {
		out.Tools = append(out.Tools, gates.Sanitized{Tool: string(tool)})
	}
	return out, s.ask("sanitize")
}

func (s *scripted) Profile(context.Context, *policy.ProfileGate, runners.Progress) (*gates.Profile, error) {
	return &gates.Profile{}, s.ask("profile")
}

type silent struct{}

// gathers runs a backend, and checks what it was asked for and how that is judged.
func gathers(t *testing.T, j runners.Job, b scripted, asked string, outcome gates.Outcome) {
	t.Helper()
	b.job = j
	e, err := Gather(t.Context(), j, &b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	v := gates.Judge(j.Policy, "policy.yaml", e)
	if got := strings.Join(b.asked, ", "); got != asked || v.Outcome != outcome {
		t.Errorf("asked %s; %s: %s\nwant %s; %s", got, v.Outcome, v.Summary, asked, outcome)
	}
}

func (silent) Report(runners.Event) {}

func TestGatherStopsWhereTheVerdictFalls(t *testing.T) {
	const builds = "build baseline, build candidate"
	for _, c := range []struct {
		name    string
		backend scripted
		asked   string
		outcome gates.Outcome
	}{
		{"proven at the first interim", scripted{compile: true, ratio: 2}, builds + ", correctness" + strings.Repeat(", round", 6), gates.Pass},
		{"does not compile", scripted{ratio: 2}, builds, gates.Defer},
		{"wrong", scripted{compile: true, ratio: 2, wrong: true}, builds + ", correctness", gates.Defer},
		{"too slow", scripted{compile: true, ratio: 1}, builds + ", correctness" + strings.Repeat(", round", 6), gates.Defer},
		{"a fault ends it as ERROR", scripted{compile: true, ratio: 2, fail: "round"}, builds + ", correctness, round", gates.Error},
	} {
		t.Run(c.name, func(t *testing.T) {
			gathers(t, job(t), c.backend, c.asked, c.outcome)
		})
	}
}

// TestMachineCode checks that what differs between the sides is recorded, and that the steps of a search leave it out.
func TestMachineCode(t *testing.T) {
	j := job(t)
	b := &scripted{job: j, compile: true, ratio: 2, code: &gates.MachineCode{Tool: "objdump"}}
	e, err := Gather(t.Context(), j, b, silent{})
	if err != nil || e.MachineCode != b.code {
		t.Errorf("gathered: %v, %v", e.MachineCode, err)
	}
	s := NewSteps(j, b, silent{})
	if err := s.Build(t.Context()); err != nil || s.Evidence().MachineCode != nil {
		t.Errorf("in steps: %v, %v", s.Evidence().MachineCode, err)
	}
}

// TestAbilitiesInEvidence checks that evidence says what its backend can do, and that evidence of a backend with other abilities
// is not continued: its times are not comparable.
func TestAbilitiesInEvidence(t *testing.T) {
	j := job(t)
	b := &scripted{job: j, compile: true, ratio: 2}
	e, err := Gather(t.Context(), j, b, silent{})
	if err != nil || e.Abilities == nil || !e.Abilities.Equal(b.Abilities()) {
		t.Fatalf("%+v, %v", e.Abilities, err)
	}
	other := *e
	other.Abilities = &gates.Abilities{Clock: gates.ClockDevice, SingleLaunches: true}
	if err := belongs(e, e); err != nil {
		t.Error(err)
	}
	if err := belongs(e, &other); err == nil || !strings.Contains(err.Error(), "other abilities") {
		t.Errorf("evidence by another clock is continued: %v", err)
	}
}

// TestGatherNewKernel checks that a kernel that the base does not have is timed against itself,
// once it is right.
func TestGatherNewKernel(t *testing.T) {
	j := job(t)
	j.Baseline = nil
	gathers(t, j, scripted{compile: true, ratio: 1}, "build candidate, correctness, build baseline"+strings.Repeat(", round", 6), gates.Pass)
	gathers(t, j, scripted{compile: true, ratio: 1, wrong: true}, "build candidate, correctness", gates.Defer)
}

// TestRoundsEndTheirContext checks that anything that a backend starts ahead, in the context of a
// round, ends with the rounds, whether or not the policy bounds their time. Otherwise a worker that
// holds a GPU would outlive the run.
func TestRoundsEndTheirContext(t *testing.T) {
	backend := &scripted{job: job(t), compile: true, ratio: 2}
	if _, err := Gather(t.Context(), backend.job, backend, silent{}); err != nil {
		t.Fatal(err)
	}
	if backend.within == nil || backend.within.Err() == nil || t.Context().Err() != nil {
		t.Error("the context of the rounds outlives them")
	}
}

// A recorder keeps the gates that were finished when each gate began.
type recorder struct{ said []string }

func (r *recorder) Report(e runners.Event) {
	text := string(e.Gate) + " after"
	for _, g := range e.Standing.Gates {
		text += " " + string(g.Gate) + ":" + string(g.Status)
	}
	if len(r.said) == 0 || r.said[len(r.said)-1] != text {
		r.said = append(r.said, text)
	}
}

// TestGatherReportsStanding checks that events have the kernel and the judgement of the finished
// gates.
func TestGatherReportsStanding(t *testing.T) {
	j := job(t)
	r := &recorder{}
	if _, err := Gather(t.Context(), j, &scripted{job: j, compile: true, ratio: 1.5}, r); err != nil {
		t.Fatal(err)
	}
	want := "build after; performance after build:pass correctness:pass"
	if got := strings.Join(r.said, "; "); got != want {
		t.Errorf("reported %s, want %s", got, want)
	}
}
