package verify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/verify"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

const (
	manifestYAML = scripted.Manifest + `shapes:
  mission: {N: 1000}
  small: {N: 10}
limits: {N: 1..100000}
secret: {N: 1..500}
`
	policyYAML = `version: 1
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], secret_cases: 2, norm_error: "<= 1%"}
  sanitize: {shapes: [small], tools: [memcheck, racecheck]}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -2%"}
    rounds: {min: 6, max: 8}
    interims: [6, 8]
    pairs: 8
    budget: 1h
rules:
  - name: refactoring
    when: {labels: [refactoring]}
    gates: {performance: {target: {shapes: [mission], speedup: ">= -2%"}}}
  - name: default
`
)

type silent struct{}

func (silent) Report(runners.Event) {}

// asked is a job as the bot packs it, on a kernel that is so fast.
func asked(t *testing.T, speed string) runners.Job {
	t.Helper()
	m, err := manifest.Parse("kernels/scale/kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte(policyYAML))
	if err != nil {
		t.Fatal(err)
	}
	side := func(name, source string) string {
		dir := filepath.Join(t.TempDir(), name)
		for file, text := range map[string]string{"scale.c": source, "kernel.yaml": manifestYAML, "reference.c": "// truth\n"} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	base := side("base", "// speed 1.0\n")
	return runners.Job{
		Manifest: m, Policy: p, Change: policy.Change{Branch: "main", Title: "Ten times slower", Labels: []string{"wip"}, Paths: []string{"kernels/scale/scale.c"}},
		Trusted: base, Baseline: &runners.Side{Dir: base, Variant: m.DefaultVariant}, Candidate: runners.Side{Dir: side("head", "// speed "+speed+"\n"), Variant: m.DefaultVariant},
		Provenance: gates.Provenance{Repository: "olga/kernels", Base: gates.Commit{SHA: strings.Repeat("a", 40)}, Head: gates.Commit{SHA: strings.Repeat("b", 40)}, Manifest: "m", Policy: "p", Label: "l4", Command: "kernelgate check"},
		Notes:      []string{"The bot's own note."},
		Key:        "kernels/scale", ManifestText: manifestYAML, PolicyFile: "policy.yaml", PolicyText: policyYAML,
	}
}

// honest is what an honest runner answers.
func honest(t *testing.T, job runners.Job) *gates.Evidence {
	t.Helper()
	out, err := scripted.Runner{}.Measure(context.Background(), job, "", silent{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Evidence
}

func verdict(t *testing.T, e *gates.Evidence) *gates.Verdict {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(policyYAML))
	if err != nil {
		t.Fatal(err)
	}
	return gates.Judge(p, "policy.yaml", e)
}

func encode(t *testing.T, e *gates.Evidence) []byte {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// told is evidence after it was sent, with a lie in it.
func told(t *testing.T, e *gates.Evidence, lie func(*gates.Evidence)) *gates.Evidence {
	t.Helper()
	copied, err := gates.ParseEvidence("honest", encode(t, e))
	if err != nil {
		t.Fatal(err)
	}
	lie(copied)
	return copied
}

// Equal machine code that is started otherwise is not the same, whatever a runner says of
// it: it is measured.
func TestSameCodeStartedOtherwise(t *testing.T) {
	job := asked(t, "1.0")
	own := strings.Replace(manifestYAML, "entry: scale", "entry: other", 1)
	m, err := manifest.Join("kernels/scale/kernel.yaml", []byte(manifestYAML), []byte(own))
	if err != nil {
		t.Fatal(err)
	}
	if e := honest(t, job); !e.SameCode || e.Performance != nil {
		t.Fatal("equal code is not known to be equal")
	}
	job.Candidate.Manifest, job.Candidate.ManifestText = m, own
	e := honest(t, job)
	if e.SameCode || e.Performance == nil {
		t.Fatal("another entry is taken for the same")
	}
	if err := verify.Check(job, 0, e); err != nil {
		t.Error(err)
	}
	lie := told(t, e, func(e *gates.Evidence) { e.SameCode, e.Performance = true, nil })
	if err := verify.Check(job, 0, lie); err == nil || !strings.Contains(err.Error(), "same_code") {
		t.Errorf("the lie is believed: %v", err)
	}
}

// What an honest runner sends is believed, good or bad.
func TestHonest(t *testing.T) {
	for speed, want := range map[string]gates.Outcome{"0.1": gates.Defer, "1.5": gates.Pass} {
		job := asked(t, speed)
		e := told(t, honest(t, job), func(*gates.Evidence) {})
		if err := verify.Check(job, 0, e); err != nil {
			t.Errorf("speed %s: %v", speed, err)
		}
		if got := verdict(t, e).Outcome; got != want {
			t.Errorf("speed %s: %s", speed, got)
		}
	}
}

// Every way to choose another rule, another question or other figures is refused, by
// the name of the field.
func TestLies(t *testing.T) {
	job := asked(t, "0.1")
	e := honest(t, job)
	yes := 1.0
	round := func(e *gates.Evidence) *gates.Round { return &e.Performance.Rounds[0] }
	for name, c := range map[string]struct {
		field string
		lie   func(*gates.Evidence)
	}{
		"another rule by a label":    {"change", func(e *gates.Evidence) { e.Change.Labels = []string{"refactoring"} }},
		"another rule by the title":  {"change", func(e *gates.Evidence) { e.Change.Title = "perf: x" }},
		"another rule by the branch": {"change", func(e *gates.Evidence) { e.Change.Branch = "release" }},
		"another rule by paths":      {"change", func(e *gates.Evidence) { e.Change.Paths = nil }},
		"a draft":                    {"change", func(e *gates.Evidence) { e.Change.Draft = true }},
		"another kernel":             {"kernel", func(e *gates.Evidence) { e.Kernel = "other" }},
		"another mode":               {"mode", func(e *gates.Evidence) { e.Mode = "command" }},
		"another clock":              {"abilities", func(e *gates.Evidence) { e.Abilities = &gates.Abilities{Clock: gates.ClockDevice} }},
		"no single launches":         {"abilities", func(e *gates.Evidence) { e.Abilities.SingleLaunches = false }},
		"a profiler": {"profile.metrics", func(e *gates.Evidence) {
			e.Profile = &gates.Profile{Metrics: []gates.Metric{{Shape: "mission", Name: "x", Value: 1}}}
		}},
		"counters of another shape": {"explained.shapes", func(e *gates.Evidence) {
			e.Explained = &gates.Explained{Shapes: []gates.ExplainedShape{{Shape: "mission"}, {Shape: "other"}}}
		}},
		"its own word on the best": {"best", func(e *gates.Evidence) {
			e.Best = []gates.Best{{Shape: "mission", Commit: strings.Repeat("c", 40), Baseline: 1}}
		}},
		"a test command's word": {"correctness.test", func(e *gates.Evidence) {
			e.Correctness = &gates.Correctness{Tolerance: e.Correctness.Tolerance, Test: &gates.Test{Command: "./t"}}
		}},
		"the kernel is gone":          {"removed", func(e *gates.Evidence) { e.Removed = true }},
		"a shape that did not change": {"same_shapes", func(e *gates.Evidence) { e.SameShapes = []string{e.Shapes[0].Name} }},
		"the kernel is new":           {"baseline", func(e *gates.Evidence) { e.Baseline, e.Performance = nil, nil }},
		"same code, by word":          {"same_code", func(e *gates.Evidence) { e.SameCode, e.Performance = true, nil }},
		"same code, without hashes":   {"code", func(e *gates.Evidence) { e.SameCode, e.Baseline.Code, e.Candidate.Code = true, "", "" }},
		"other code, by word":         {"same_code", func(e *gates.Evidence) { e.Candidate.Code = e.Baseline.Code }},
		"no build":                    {"candidate", func(e *gates.Evidence) { e.Candidate = nil }},
		"another variant":             {"candidate.variant", func(e *gates.Evidence) { e.Candidate.Variant = "other" }},
		"another source":              {"baseline.source", func(e *gates.Evidence) { e.Baseline.Source = "slow.c" }},
		"other toggles":               {"candidate.toggles", func(e *gates.Evidence) { e.Candidate.Toggles = map[string]int{"TILE": 1} }},
		"another device":              {"provenance", func(e *gates.Evidence) { e.Provenance.Label = "h200" }},
		"no label of a device":        {"provenance", func(e *gates.Evidence) { e.Provenance.Label = "" }},
		"another head":                {"provenance", func(e *gates.Evidence) { e.Provenance.Head.SHA = strings.Repeat("c", 40) }},
		"another base":                {"provenance", func(e *gates.Evidence) { e.Provenance.Base.SHA = strings.Repeat("c", 40) }},
		"another base's variant":      {"provenance", func(e *gates.Evidence) { e.Provenance.Base.Variant = "slow" }},
		"another policy":              {"provenance", func(e *gates.Evidence) { e.Provenance.Policy = "mild" }},
		"another manifest":            {"provenance", func(e *gates.Evidence) { e.Provenance.Manifest = "mild" }},
		"another implementation":      {"provenance", func(e *gates.Evidence) { e.Provenance.Implementation = "other" }},
		"another repository":          {"provenance", func(e *gates.Evidence) { e.Provenance.Repository = "eve/kernels" }},
		"another command":             {"provenance", func(e *gates.Evidence) { e.Provenance.Command = "rm -rf /" }},
		"the bot's note left out":     {"notes", func(e *gates.Evidence) { e.Notes = nil }},
		"a thousand notes":            {"notes", func(e *gates.Evidence) { e.Notes = append(e.Notes, make([]string, 1000)...) }},
		"no device":                   {"device", func(e *gates.Evidence) { e.Device = gates.Device{} }},
		"another kind of device":      {"device.kind", func(e *gates.Evidence) { e.Device.Kind = "gpu" }},
		"no shapes":                   {"shapes", func(e *gates.Evidence) { e.Shapes = nil }},
		"a shape less":                {"shapes", func(e *gates.Evidence) { e.Shapes = e.Shapes[1:] }},
		"a smaller shape":             {"shapes", func(e *gates.Evidence) { e.Shapes[0].Dims = "N=1" }},
		"less work":                   {"shapes", func(e *gates.Evidence) { e.Shapes[0].FLOPs = 1 }},
		"a wider tolerance":           {"correctness.tolerance", func(e *gates.Evidence) { e.Correctness.Tolerance.Abs = 99 }},
		"a smaller case":              {"correctness.cases[0].dims", func(e *gates.Evidence) { e.Correctness.Cases[0].Dims = "N=1" }},
		"an unknown case":             {"correctness.cases[0].shape", func(e *gates.Evidence) { e.Correctness.Cases[0].Shape = "tiny" }},
		"a secret that is none":       {"correctness.cases[2].dims", func(e *gates.Evidence) { e.Correctness.Cases[2].Dims = "N=501" }},
		"a secret of another kernel":  {"correctness.cases[2].dims", func(e *gates.Evidence) { e.Correctness.Cases[2].Dims = "M=5" }},
		"a secret with more":          {"correctness.cases[2].dims", func(e *gates.Evidence) { e.Correctness.Cases[2].Dims = "N=5 M=1" }},
		"the same secret twice":       {"correctness.cases", func(e *gates.Evidence) { e.Correctness.Cases[3] = e.Correctness.Cases[2] }},
		"a baseline that was not run": {"correctness.cases[0].baseline", func(e *gates.Evidence) { e.Correctness.Cases[0].Baseline = nil }},
		"a baseline of another size":  {"correctness.cases[0].baseline", func(e *gates.Evidence) { e.Correctness.Cases[0].Baseline.Elements = 7 }},
		"equal bits, other errors": {"correctness.cases[0].baseline", func(e *gates.Evidence) {
			e.Correctness.Cases[0].BitParity, e.Correctness.Cases[0].Baseline.Bad = new(true), 90
		}},
		"a baseline of nothing": {"correctness.cases[1]", func(e *gates.Evidence) { e.Correctness.Cases[1].Baseline.Bad = 101 }},
		"a baseline that varies, unasked": {"correctness.cases[0].baseline_deterministic", func(e *gates.Evidence) {
			e.Correctness.Cases[0].BaselineDeterministic = new(false)
		}},
		"unquantised inputs of the baseline alone": {"correctness.cases[0].baseline_end_to_end", func(e *gates.Evidence) {
			e.Correctness.Cases[0].BaselineEndToEnd = &gates.Errors{Elements: 100}
		}},
		"findings of the baseline alone": {"sanitize.tools[0].baseline", func(e *gates.Evidence) {
			e.Sanitize.Tools[0].Baseline = []gates.Finding{{Kind: gates.KindRace, Text: "a race"}}
		}},
		"more timed outputs than were checked": {"performance.rounds[0].series[0].outputs", func(e *gates.Evidence) {
			round(e).Series[0].Outputs = []gates.TimedOutput{{Candidate: gates.Errors{Elements: 1, Bad: 1}, Baseline: gates.Errors{Elements: 1, Bad: 1}}}
		}},
		"timed outputs without a mistake": {"performance.rounds[0].series[0].outputs[0]", func(e *gates.Evidence) {
			round(e).Series[0].Referenced = 1
			round(e).Series[0].Outputs = []gates.TimedOutput{{Candidate: gates.Errors{Elements: 1}, Baseline: gates.Errors{Elements: 1}}}
		}},
		"a timed output beyond the worst": {"performance.rounds[0].series[0].outputs[0]: it is worse", func(e *gates.Evidence) {
			round(e).Series[0].Referenced = 1
			round(e).Series[0].Outputs = []gates.TimedOutput{{Candidate: gates.Errors{Elements: 100, Bad: 99}, Baseline: gates.Errors{Elements: 100, Bad: 99}}}
		}},
		"errors of nothing":                 {"correctness.cases[0]", func(e *gates.Evidence) { e.Correctness.Cases[0].Errors = &gates.Errors{} }},
		"less than no error":                {"correctness.cases[0]", func(e *gates.Evidence) { e.Correctness.Cases[0].Errors.Norm = -yes }},
		"a tool with nothing to do":         {"sanitize.tools[0].not_applicable", func(e *gates.Evidence) { e.Sanitize.Tools[0].NotApplicable = "it is fine" }},
		"another sanitized case":            {"sanitize.cases[0].dims", func(e *gates.Evidence) { e.Sanitize.Cases[0].Dims = "N=1" }},
		"a slow shape left out":             {"performance.rounds[0].series", func(e *gates.Evidence) { round(e).Series = round(e).Series[1:] }},
		"a shape twice":                     {"performance.rounds[0].series", func(e *gates.Evidence) { round(e).Series = append(round(e).Series, round(e).Series[0]) }},
		"no secret shape":                   {"shapes: there is no secret shape", func(e *gates.Evidence) { e.Shapes = e.Shapes[:2] }},
		"a secret shape that is not marked": {"shapes", func(e *gates.Evidence) { e.Shapes[2].Secret = false }},
		"two secret shapes": {"shapes", func(e *gates.Evidence) {
			e.Shapes = append(e.Shapes, gates.Shape{Name: "other", Dims: "N=7", Secret: true})
		}},
		"a secret shape beyond its range":    {"shapes[2].dims", func(e *gates.Evidence) { e.Shapes[2].Dims = "N=501" }},
		"a secret shape of another kernel":   {"shapes[2].dims", func(e *gates.Evidence) { e.Shapes[2].Dims = "M=5" }},
		"a secret shape that has a name":     {"shapes[2].dims: N=10 is the size of the shape small", func(e *gates.Evidence) { e.Shapes[2].Dims = "N=10" }},
		"a secret shape with a shape's name": {"shapes[2]", func(e *gates.Evidence) { e.Shapes[2].Name = "small" }},
		"a secret shape with more work":      {"shapes[2]", func(e *gates.Evidence) { e.Shapes[2].FLOPs = 1e9 }},
		"the secret shape not timed": {"performance.rounds[0].series", func(e *gates.Evidence) {
			round(e).Series = slices.DeleteFunc(round(e).Series, func(s gates.Series) bool { return s.Shape == "secret" })
		}},
		"no control": {"performance.rounds[0].series[0].order", func(e *gates.Evidence) {
			round(e).Series[0].Order = strings.ReplaceAll(round(e).Series[0].Order, "a", "b")
		}},
		"no launch ran alone": {"performance.rounds[0].series[0].single_ns", func(e *gates.Evidence) { round(e).Series[0].Batch = 8 }},
		"launches that others may have served": {"performance.rounds[0].series[0].single_ns", func(e *gates.Evidence) {
			round(e).Series[0].Batch, round(e).Series[0].Single = 8, &gates.Singles{Baseline: []float64{2, 2}, Candidate: []float64{1, 1}}
		}},
		"one launch that ran alone": {"performance.rounds[0].series[0].single_ns", func(e *gates.Evidence) {
			round(e).Series[0].Batch, round(e).Series[0].Single = 8, &gates.Singles{Baseline: []float64{2}, Candidate: []float64{1}, Isolated: true}
		}},
		"more rounds than asked": {"performance.rounds", func(e *gates.Evidence) {
			for range 9 {
				e.Performance.Rounds = append(e.Performance.Rounds, e.Performance.Rounds[0])
			}
		}},
		"on after a failure": {"performance.rounds[0].failure", func(e *gates.Evidence) { round(e).Failure = &gates.Failure{Kind: "crash", Detail: "x"} }},
		"a budget not spent": {"performance.exhausted", func(e *gates.Evidence) { e.Performance.Exhausted = true }},
		"no cases":           {"correctness", func(e *gates.Evidence) { e.Correctness.Cases = nil }},
		"a case left out":    {"correctness.cases", func(e *gates.Evidence) { e.Correctness.Cases = e.Correctness.Cases[1:] }},
		"a secret left out":  {"correctness.cases", func(e *gates.Evidence) { e.Correctness.Cases = e.Correctness.Cases[:3] }},
		"nothing compared":   {"correctness", func(e *gates.Evidence) { e.Correctness = nil }},
		"a tool left out":    {"sanitize.tools", func(e *gates.Evidence) { e.Sanitize.Tools = e.Sanitize.Tools[:1] }},
		"nothing timed":      {"performance", func(e *gates.Evidence) { e.Performance = nil }},
		"too few rounds":     {"performance", func(e *gates.Evidence) { e.Performance.Rounds = e.Performance.Rounds[:3] }},
		"rivals": {"rivals", func(e *gates.Evidence) {
			e.Rivals = []gates.Rival{{Name: "x", Shape: "mission", Stats: stats.Summary{N: 1}}}
		}},
	} {
		err := verify.Check(job, 0, told(t, e, c.lie))
		if err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v, want a word on %s", name, err, c.field)
		}
	}
}

// A rebench has as many rounds as it was asked for, whatever the first of them show.
func TestRoundsOfARebench(t *testing.T) {
	job := asked(t, "0.1")
	e := honest(t, job)
	job.Rounds = 3
	own := func(n int) *gates.Evidence {
		return told(t, e, func(e *gates.Evidence) {
			for range n {
				e.Performance.Rounds = append(e.Performance.Rounds, e.Performance.Rounds[0])
			}
		})
	}
	earlier := len(e.Performance.Rounds)
	for n, fine := range map[int]bool{0: true, 1: false, 2: false, 3: true, 4: false} {
		if err := verify.Check(job, earlier, own(n)); (err == nil) != fine {
			t.Errorf("%d rounds of 3: %v", n, err)
		}
	}
}

// Rounds that were measured before there were secret shapes go on without one; where nobody
// asks for one there is none.
func TestSecretShapeOfEarlierRounds(t *testing.T) {
	job := asked(t, "0.1")
	e := honest(t, job)
	earlier := len(e.Performance.Rounds)
	without := told(t, e, func(e *gates.Evidence) {
		e.Shapes = e.Shapes[:2]
		for i := range e.Performance.Rounds {
			r := &e.Performance.Rounds[i]
			r.Series = slices.DeleteFunc(r.Series, func(s gates.Series) bool { return s.Shape == "secret" })
		}
	})
	if err := verify.Check(job, earlier, without); err != nil {
		t.Error(err)
	}
	if err := verify.Check(job, 0, without); err == nil || !strings.Contains(err.Error(), "there is no secret shape") {
		t.Errorf("in a run of its own: %v", err)
	}
	for i := range job.Policy.Rules {
		job.Policy.Rules[i].Gates.Performance.SecretShape = new(false)
	}
	if err := verify.Check(job, 0, without); err != nil {
		t.Error(err)
	}
	if err := verify.Check(job, 0, e); err == nil || !strings.Contains(err.Error(), "nobody asked for a secret shape") {
		t.Errorf("where nobody asks for one: %v", err)
	}
}

// word is what a runner alone can see, and may say as it likes.
var word = regexp.MustCompile(`^(correctness\.cases\.\d+\.(errors|seed|distribution|secret)|candidate\.(ok|error|code|compiler)|baseline\.(ok|code)|` +
	`sanitize\.tools\.\d+\.(tool|findings)|performance\.rounds\.\d+\.series\.\d+\.(verified|worst|ns|order|batch)|fault)`)

// No single field that a runner changes makes a kernel that is ten times slower
// pass; and unless it is the runner's own word, the verdict stays as it is or becomes
// ERROR.
func TestEveryField(t *testing.T) {
	job := asked(t, "0.1")
	e := honest(t, job)
	want := verdict(t, e)
	if want.Outcome != gates.Defer {
		t.Fatalf("an honest answer is %s", want.Outcome)
	}
	e.Performance.Rounds = e.Performance.Rounds[:6]
	var tree any
	if err := json.Unmarshal(encode(t, e), &tree); err != nil {
		t.Fatal(err)
	}
	tried, judged := 0, 0
	mutate(tree, "", func(path string) {
		tried++
		data, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		got, err := gates.ParseEvidence("mutated", data)
		if err != nil || verify.Check(job, 0, got) != nil {
			return
		}
		judged++
		v := verdict(t, got)
		switch {
		case v.Outcome == gates.Pass:
			t.Errorf("%s: PASS", path)
		case v.Outcome == gates.Error || word.MatchString(path):
		case v.Outcome != want.Outcome || v.Reason != want.Reason || v.Rule != want.Rule:
			t.Errorf("%s: %s (%s) by %s, and an honest answer is %s (%s)", path, v.Outcome, v.Reason, v.Rule, want.Outcome, want.Reason)
		}
	})
	t.Logf("%d changes, %d of them judged", tried, judged)
	if tried < 300 || judged == 0 || judged == tried {
		t.Error("the test does not try what it is for")
	}
}

// mutate changes every value of a JSON tree in turn, tells of it, and puts it back.
func mutate(v any, path string, try func(path string)) {
	at := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	others := func(v any) []any {
		switch v := v.(type) {
		case string:
			return []any{v + "x", ""}
		case float64:
			return []any{v*10 + 1, -v, 0.0}
		case bool:
			return []any{!v}
		case []any:
			out := []any{[]any{}}
			if len(v) > 0 {
				out = append(out, v[1:], append(v[:len(v):len(v)], v[0]))
			}
			return out
		}
		return []any{nil}
	}
	switch v := v.(type) {
	case map[string]any:
		for key, was := range v {
			for _, other := range others(was) {
				v[key] = other
				try(at(key))
			}
			delete(v, key)
			try(at(key))
			v[key] = was
			mutate(was, at(key), try)
		}
	case []any:
		for i, was := range v {
			if i >= 1 && len(v) > 4 {
				break // rounds and samples are all alike
			}
			for _, other := range others(was) {
				v[i] = other
				try(at(fmt.Sprint(i)))
			}
			v[i] = was
			mutate(was, at(fmt.Sprint(i)), try)
		}
	}
}

// A new kernel has no baseline, so that nothing of it can have been there before.
func TestNoBaseline(t *testing.T) {
	job := asked(t, "1.5")
	e := honest(t, job)
	job.Baseline, e.Baseline = nil, nil
	for name, lie := range map[string]func(*gates.Case){
		"errors":      func(k *gates.Case) { k.Baseline = &gates.Errors{Elements: 100} },
		"failure":     func(k *gates.Case) { k.BaselineFailure = &gates.Failure{Kind: gates.FailureCrash, Detail: "x"} },
		"determinism": func(k *gates.Case) { k.BaselineDeterministic = new(false) },
	} {
		err := verify.Check(job, 0, told(t, e, func(e *gates.Evidence) {
			for i := range e.Correctness.Cases {
				e.Correctness.Cases[i].Baseline = nil
			}
			e.Shapes = slices.DeleteFunc(e.Shapes, func(s gates.Shape) bool { return s.Secret })
			lie(&e.Correctness.Cases[0])
		}))
		if err == nil || !strings.Contains(err.Error(), "correctness.cases[0].baseline: there is no baseline") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
