package verify_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/verify"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// order is a job by a manifest and the gates of a policy, and evidence that answers it: both sides were built and nothing was run.
func order(t *testing.T, manifestYAML, gate string, device gates.Device) (runners.Job, *gates.Evidence) {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte("version: 1\ngates: {"+gate+"}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	job := runners.Job{
		Manifest: m, ManifestText: manifestYAML, Policy: p, PolicyFile: "policy.yaml",
		Baseline: &runners.Side{Variant: m.DefaultVariant}, Candidate: runners.Side{Variant: m.DefaultVariant},
	}
	shapes, err := job.ShapesOnRecord()
	if err != nil {
		t.Fatal(err)
	}
	build := func(code string) *gates.Build {
		v, err := m.Variant(m.DefaultVariant)
		if err != nil {
			t.Fatal(err)
		}
		b := &gates.Build{Variant: m.DefaultVariant, Source: v.Source, OK: true, Code: code}
		if m.DefaultVariant != manifest.Choice {
			return b
		}
		for _, name := range m.Parts(manifest.Choice, device.Arch) {
			v, err := m.Variant(name)
			if err != nil {
				t.Fatal(err)
			}
			part := gates.Part{Build: gates.Build{Variant: name, Source: v.Source, OK: true, Code: code + name}}
			for _, s := range m.ServedBy(manifest.Choice, name, device.Arch) {
				part.Shapes = append(part.Shapes, s.Name)
			}
			b.Parts = append(b.Parts, part)
		}
		return b
	}
	return job, &gates.Evidence{
		Schema: gates.EvidenceSchema, Kernel: m.Name, Mode: string(m.Mode), Device: device, Shapes: shapes, Baseline: build("a"), Candidate: build("b"),
	}
}

// A lie is a change of an honest answer, and the field that a refusal names; empty where it is believed.
type lie struct {
	name, field string
	tell        func(*gates.Evidence)
}

func tell(t *testing.T, job runners.Job, e *gates.Evidence, lies []lie) {
	t.Helper()
	if err := verify.Check(job, 0, told(t, e, func(*gates.Evidence) {})); err != nil {
		t.Fatalf("an honest answer: %v", err)
	}
	for _, l := range lies {
		err := verify.Check(job, 0, told(t, e, l.tell))
		if l.field == "" && err != nil || l.field != "" && (err == nil || !strings.Contains(err.Error(), l.field)) {
			t.Errorf("%s: %v, want a word on %q", l.name, err, l.field)
		}
	}
}

const cudaManifest = `version: 1
name: fill
mode: cuda
entry: fill
arch: [sm_89, sm_90a]
launch: {grid: [1], block: [32]}
arguments: [{name: y, dtype: f32, access: out, shape: [N]}, {name: N, dtype: i32, access: scalar, value: N}]
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.1, rel: 0.2}
shapes: {small: {N: 32}, large: {N: 4096}}
limits: {N: 1..4096}
secret: {N: 1..500}
variants:
  fast: {source: fast.cu, arch: [sm_90a], limits: {N: 256..4096}}
  plain: {source: plain.cu}
`

const (
	oneVariant = cudaManifest + "default_variant: plain\n"
	choosing   = cudaManifest + "choose: [{when: \"N >= 256\", variant: fast}, {variant: plain}]\n"
)

var h200 = gates.Device{Kind: "gpu", Name: "H200", Arch: "sm_90"}

func TestLiesAboutCUDA(t *testing.T) {
	job, e := order(t, oneVariant, "", h200)
	tell(t, job, e, []lie{
		{"a processor", "device.kind", func(e *gates.Evidence) { e.Device.Kind = "cpu" }},
		{"a device without a name", "device", func(e *gates.Evidence) { e.Device.Name = "" }},
		{"a device without a kind", "device", func(e *gates.Evidence) { e.Device.Kind = "" }},
		{"parts of what is no choice", "candidate.parts", func(e *gates.Evidence) { e.Candidate.Parts = []gates.Part{{}} }},
		{"parts of a build that failed", "candidate.parts", func(e *gates.Evidence) {
			e.Candidate.OK, e.Candidate.Error, e.Candidate.Parts = false, "no", []gates.Part{{}}
		}},
		{"no hash of a build that failed", "", func(e *gates.Evidence) { e.Candidate.OK, e.Candidate.Code, e.Candidate.Error = false, "", "no" }},
		{"no hash", "candidate.code", func(e *gates.Evidence) { e.Candidate.Code = "" }},
		{"the baseline's hash is missing", "baseline.code", func(e *gates.Evidence) { e.Baseline.Code = "" }},
		{"the same code, and not told", "same_code", func(e *gates.Evidence) { e.Candidate.Code = e.Baseline.Code }},
		{"the same code", "", func(e *gates.Evidence) { e.Candidate.Code, e.SameCode = e.Baseline.Code, true }},
		{"another code, told as the same", "same_code", func(e *gates.Evidence) { e.SameCode = true }},
		{"another kernel", "kernel", func(e *gates.Evidence) { e.Kernel = "other" }},
		{"times that nobody asked for", "performance", func(e *gates.Evidence) { e.Performance = &gates.Performance{Rounds: []gates.Round{{Attempt: 1}}} }},
		{"a fault, whatever else", "", func(e *gates.Evidence) { e.Fault, e.Kernel = "no space", "other" }},
	})
}

func TestLiesAboutAChoice(t *testing.T) {
	job, e := order(t, choosing, "", h200)
	if n := len(e.Candidate.Parts); n != 2 {
		t.Fatalf("the choice has %d parts on %s", n, h200.Arch)
	}
	tell(t, job, e, []lie{
		{"a part left out", "candidate.parts", func(e *gates.Evidence) { e.Candidate.Parts = e.Candidate.Parts[:1] }},
		{"a part too many", "candidate.parts", func(e *gates.Evidence) { e.Candidate.Parts = append(e.Candidate.Parts, e.Candidate.Parts[0]) }},
		{"parts in another order", "candidate.parts[0].variant", func(e *gates.Evidence) {
			e.Candidate.Parts[0], e.Candidate.Parts[1] = e.Candidate.Parts[1], e.Candidate.Parts[0]
		}},
		{"a part of another source", "candidate.parts[1].variant", func(e *gates.Evidence) { e.Candidate.Parts[1].Source = "fast.cu" }},
		{"a shape of another part", "candidate.parts[0].shapes", func(e *gates.Evidence) { e.Candidate.Parts[0].Shapes = []string{"small", "large"} }},
		{"a part that was not built", "candidate.parts[0]", func(e *gates.Evidence) { e.Candidate.Parts[0].OK = false }},
		{"a part without a hash", "candidate.parts[0]", func(e *gates.Evidence) { e.Candidate.Parts[0].Code = "" }},
		{"a part of parts", "candidate.parts[1]", func(e *gates.Evidence) { e.Candidate.Parts[1].Parts = []gates.Part{{}} }},
		{"a part that failed, in a build that failed", "", func(e *gates.Evidence) {
			e.Candidate.OK, e.Candidate.Error, e.Candidate.Parts[0].OK = false, "no", false
		}},
		{"no parts of a build that failed", "", func(e *gates.Evidence) {
			e.Candidate.OK, e.Candidate.Error, e.Candidate.Parts = false, "no", nil
		}},
		{"the parts of another device", "candidate.parts", func(e *gates.Evidence) { e.Device.Arch = "sm_89" }},
	})
	job, e = order(t, choosing, "", gates.Device{Kind: "gpu", Name: "L4", Arch: "sm_89"})
	if n := len(e.Candidate.Parts); n != 1 {
		t.Fatalf("the choice has %d parts on an L4", n)
	}
	tell(t, job, e, nil)
}

// A harness with a test command has its own tolerance and cases; one without has cases as others do.
func TestLiesAboutACommand(t *testing.T) {
	const manifest = `version: 1
name: histogram
mode: command
command: {build: [make], bench: [./bench], test: [./t]}
shapes: {small: {N: 1024}}
`
	const gate = `correctness: {shapes: all, seeds: [0], norm_error: "<= 1%"}`
	job, e := order(t, manifest, gate, gates.Device{Kind: "gpu", Name: "H200"})
	e.Correctness = &gates.Correctness{Test: &gates.Test{Command: "./t"}}
	tested := gates.Case{Input: gates.Input{Shape: "small", Dims: "N=1024", Distribution: "normal"}, Errors: &gates.Errors{}}
	tell(t, job, e, []lie{
		{"on a processor", "", func(e *gates.Evidence) { e.Device.Kind = "cpu" }},
		{"a tolerance", "correctness.tolerance", func(e *gates.Evidence) { e.Correctness.Tolerance.Abs = 1 }},
		{"cases beside the test", "correctness.test", func(e *gates.Evidence) { e.Correctness.Cases = []gates.Case{tested} }},
		{"cases in its place", "correctness.test", func(e *gates.Evidence) {
			e.Correctness.Test, e.Correctness.Cases = nil, []gates.Case{tested}
		}},
		{"nothing in its place", "correctness.test", func(e *gates.Evidence) { e.Correctness.Test = nil }},
		{"nothing at all", "correctness", func(e *gates.Evidence) { e.Correctness = nil }},
		{"the device's clock", "abilities", func(e *gates.Evidence) { e.Abilities = &gates.Abilities{Clock: gates.ClockDevice} }},
		{"machine code", "machine_code", func(e *gates.Evidence) { e.MachineCode = &gates.MachineCode{Tool: "objdump"} }},
		{"counters", "explained.shapes", func(e *gates.Evidence) {
			e.Explained = &gates.Explained{Shapes: []gates.ExplainedShape{{Shape: "small"}}}
		}},
		{"a sanitizer", "sanitize.tools[0]", func(e *gates.Evidence) {
			e.Sanitize = &gates.Sanitize{Tools: []gates.Sanitized{{Tool: "racecheck", NotApplicable: "one thread"}}}
		}},
	})
	without := strings.Replace(manifest, ", test: [./t]", "", 1)
	job, e = order(t, without, gate, gates.Device{Kind: "gpu", Name: "H200"})
	e.Correctness = &gates.Correctness{Cases: []gates.Case{tested}}
	tell(t, job, e, []lie{
		{"errors as the harness counts them", "", func(e *gates.Evidence) { e.Correctness.Cases[0].Errors = &gates.Errors{Norm: -1} }},
		{"a test that nobody asked for", "correctness.test", func(e *gates.Evidence) { e.Correctness = &gates.Correctness{Test: &gates.Test{Command: "./t"}} }},
		{"another case", "correctness.cases[0].dims", func(e *gates.Evidence) { e.Correctness.Cases[0].Dims = "N=1" }},
	})
}

// Figures of an output are whole numbers within its elements; each is checked at its limits, wherever it stands.
func TestLiesAboutErrors(t *testing.T) {
	const gate = `correctness: {shapes: [small], seeds: [0], distributions: [normal], secret_cases: 2, norm_error: "<= 1%"}, sanitize: {shapes: [small], distributions: [normal], tools: [memcheck, racecheck], secret_cases: 1}`
	job, e := order(t, oneVariant, gate, h200)
	one := func(shape, dims string, seed uint64, secret bool) gates.Case {
		return gates.Case{Input: gates.Input{Shape: shape, Dims: dims, Seed: seed, Distribution: "normal", Secret: secret}, Errors: &gates.Errors{Elements: 32}, Baseline: &gates.Errors{Elements: 32}}
	}
	e.Correctness = &gates.Correctness{Tolerance: gates.Tolerance{Abs: 0.1, Rel: 0.2}, Cases: []gates.Case{
		one("small", "N=32", 0, false), one("s1", "N=1", 7, true), one("s2", "N=500", 8, true),
	}}
	e.Sanitize = &gates.Sanitize{
		Cases: []gates.Input{e.Correctness.Cases[0].Input, e.Correctness.Cases[1].Input},
		Tools: []gates.Sanitized{{Tool: "memcheck"}, {Tool: "racecheck"}},
	}
	errors := func(set func(*gates.Errors)) func(*gates.Evidence) {
		return func(e *gates.Evidence) { set(e.Correctness.Cases[0].Errors) }
	}
	lies := []lie{
		{"no elements", "correctness.cases[0]", errors(func(e *gates.Errors) { e.Elements = 0 })},
		{"a negative maximum", "correctness.cases[0]", errors(func(e *gates.Errors) { e.MaxAbs = -1 })},
		{"a negative mean", "correctness.cases[0]", errors(func(e *gates.Errors) { e.MeanAbs = -1 })},
		{"a negative norm", "correctness.cases[0]", errors(func(e *gates.Errors) { e.Norm = -1 })},
		{"of the baseline", "correctness.cases[0]", func(e *gates.Evidence) { e.Correctness.Cases[0].Baseline = &gates.Errors{Elements: 1, Bad: 2} }},
		{"end to end", "correctness.cases[0]", func(e *gates.Evidence) { e.Correctness.Cases[0].EndToEnd = &gates.Errors{Elements: 1, Bad: 2} }},
		{"another tolerance", "correctness.tolerance", func(e *gates.Evidence) { e.Correctness.Tolerance.Rel = 0.3 }},
		{"the secret below its range", "correctness.cases[1].dims", func(e *gates.Evidence) { e.Correctness.Cases[1].Dims = "N=0" }},
		{"the secret above its range", "correctness.cases[1].dims", func(e *gates.Evidence) { e.Correctness.Cases[1].Dims = "N=501" }},
		{"another seed of the same secret", "", func(e *gates.Evidence) { e.Correctness.Cases[2].Dims = "N=1" }},
		{"the same secret twice", "correctness.cases", func(e *gates.Evidence) { e.Correctness.Cases[2] = e.Correctness.Cases[1] }},
		{"a public case marked as secret", "correctness.cases", func(e *gates.Evidence) { e.Correctness.Cases[0].Secret = true }},
		{"another public seed", "correctness.cases", func(e *gates.Evidence) { e.Correctness.Cases[0].Seed = 1 }},
		{"another public distribution", "correctness.cases", func(e *gates.Evidence) { e.Correctness.Cases[0].Distribution = "zero" }},
		{"another public shape", "correctness.cases", func(e *gates.Evidence) {
			e.Correctness.Cases[0].Shape, e.Correctness.Cases[0].Dims = "large", "N=4096"
		}},
		{"a launch that fails ends the comparing", "", func(e *gates.Evidence) {
			e.Correctness.Cases = e.Correctness.Cases[:1]
			e.Correctness.Cases[0].Failure = &gates.Failure{Kind: gates.FailureCrash, Detail: "crashed"}
			e.Sanitize = nil
		}},
		{"a tool left out", "sanitize.tools", func(e *gates.Evidence) { e.Sanitize.Tools = e.Sanitize.Tools[1:] }},
		{"a tool with nothing to look for", "sanitize.tools[1].not_applicable", func(e *gates.Evidence) { e.Sanitize.Tools[1].NotApplicable = "one thread" }},
		{"no secret case", "sanitize.cases", func(e *gates.Evidence) { e.Sanitize.Cases = e.Sanitize.Cases[:1] }},
		{"no public case", "sanitize.cases", func(e *gates.Evidence) { e.Sanitize.Cases = e.Sanitize.Cases[1:] }},
		{"a public case marked as secret", "sanitize.cases", func(e *gates.Evidence) { e.Sanitize.Cases[0].Secret = true }},
		{"another public distribution", "sanitize.cases", func(e *gates.Evidence) { e.Sanitize.Cases[0].Distribution = "zero" }},
		{"none of it, with a reason", "", func(e *gates.Evidence) { e.Sanitize = &gates.Sanitize{Skipped: "not installed"} }},
	}
	for name, part := range map[string]func(*gates.Errors) *int{
		"bad":       func(e *gates.Errors) *int { return &e.Bad },
		"NaN":       func(e *gates.Errors) *int { return &e.NaN },
		"infinite":  func(e *gates.Errors) *int { return &e.Inf },
		"unwritten": func(e *gates.Errors) *int { return &e.Unwritten },
	} {
		lies = append(lies,
			lie{"all elements are " + name, "", errors(func(e *gates.Errors) { *part(e) = 32 })},
			lie{"more are " + name + " than there are", "correctness.cases[0]", errors(func(e *gates.Errors) { *part(e) = 33 })},
			lie{"fewer than none are " + name, "correctness.cases[0]", errors(func(e *gates.Errors) { *part(e) = -1 })})
	}
	tell(t, job, e, lies)
}

// On a processor one thread has no races; memcheck has something to look for everywhere.
func TestNotApplicable(t *testing.T) {
	job := asked(t, "0.1")
	e := honest(t, job)
	at := func(i int) func(*gates.Evidence) {
		return func(e *gates.Evidence) { e.Sanitize.Tools[i].NotApplicable = "one thread" }
	}
	tell(t, job, e, []lie{{"memcheck", "not_applicable", at(0)}, {"racecheck", "", at(1)}, {"another tool", "not_applicable", func(e *gates.Evidence) {
		e.Sanitize.Tools = append(e.Sanitize.Tools, gates.Sanitized{Tool: "leakcheck", NotApplicable: "one thread"})
	}}})
}

// Rounds are whole, as many as were asked for, and end with a failure or where the budget was spent.
func TestLiesAboutRounds(t *testing.T) {
	job := asked(t, "0.1")
	e := honest(t, job)
	first := len(e.Performance.Rounds)
	worst := func(set func(*gates.Errors)) func(*gates.Evidence) {
		return func(e *gates.Evidence) { set(e.Performance.Rounds[0].Series[0].Worst) }
	}
	notes := func(n int) func(*gates.Evidence) {
		return func(e *gates.Evidence) { e.Notes = append(e.Notes[:1], make([]string, n)...) }
	}
	without := func(side string) func(*gates.Evidence) {
		return func(e *gates.Evidence) {
			s := &e.Performance.Rounds[0].Series[0]
			other := map[string]string{"a": "b", "b": "c", "c": "a"}[side]
			s.Order = strings.ReplaceAll(s.Order, side, other)
		}
	}
	fixed := job
	fixed.Rounds = 3 // of a later attempt, of which this is none
	tell(t, fixed, e, nil)
	tell(t, job, e, []lie{
		{"fewer than no bad elements", "series[0].worst", worst(func(e *gates.Errors) { e.Bad = -1 })},
		{"fewer than no NaN", "series[0].worst", worst(func(e *gates.Errors) { e.NaN = -1 })},
		{"fewer than no infinite ones", "series[0].worst", worst(func(e *gates.Errors) { e.Inf = -1 })},
		{"fewer than no unwritten ones", "series[0].worst", worst(func(e *gates.Errors) { e.Unwritten = -1 })},
		{"no baseline", "series[0].order", without("b")},
		{"no candidate", "series[0].order", without("c")},
		{"no control", "series[0].order", without("a")},
		{"50 notes", "", notes(50)},
		{"51 notes", "notes", notes(51)},
		{"another note first", "notes", func(e *gates.Evidence) { e.Notes = append([]string{"Mine."}, e.Notes...) }},
		{"a failure in the last round", "", func(e *gates.Evidence) {
			e.Performance.Rounds[first-1].Failure = &gates.Failure{Kind: gates.FailureCrash, Detail: "crashed"}
			e.Performance.Rounds[first-1].Series = nil
		}},
		{"a failure in the round before", "failure", func(e *gates.Evidence) {
			e.Performance.Rounds[first-2].Failure = &gates.Failure{Kind: gates.FailureCrash, Detail: "crashed"}
		}},
		{"a budget that was just spent", "", func(e *gates.Evidence) {
			e.Performance.Exhausted = true
			for i := range e.Performance.Rounds {
				e.Performance.Rounds[i].Seconds = 3600 / float64(first)
			}
		}},
		{"a budget that was nearly spent", "performance.exhausted", func(e *gates.Evidence) {
			e.Performance.Exhausted = true
			for i := range e.Performance.Rounds {
				e.Performance.Rounds[i].Seconds = 3599 / float64(first)
			}
		}},
	})
}

// A secret shape differs from the manifest's first in its secret dimensions only.
func TestLiesAboutDimensions(t *testing.T) {
	manifest := strings.NewReplacer("shape: [N]", "shape: [N, D]", "{N: 32}", "{N: 32, D: 4}", "{N: 4096}", "{N: 4096, D: 4}", "limits: {N: 1..4096}", "limits: {N: 1..4096, D: 1..8}").Replace(oneVariant)
	job, e := order(t, manifest, "", h200)
	e.Correctness = &gates.Correctness{Tolerance: gates.Tolerance{Abs: 0.1, Rel: 0.2}, Cases: []gates.Case{
		{Input: gates.Input{Shape: "s", Dims: "N=77 D=4", Distribution: "normal", Secret: true}, Errors: &gates.Errors{Elements: 1}, Baseline: &gates.Errors{Elements: 1}},
	}}
	dims := func(text string) func(*gates.Evidence) {
		return func(e *gates.Evidence) { e.Correctness.Cases[0].Dims = text }
	}
	tell(t, job, e, []lie{
		{"at the least", "", dims("N=1 D=4")},
		{"at the most", "", dims("N=500 D=4")},
		{"another dimension that is not secret", "correctness.cases[0].dims", dims("N=77 D=5")},
		{"a dimension left out", "correctness.cases[0].dims", dims("N=77")},
		{"the other order", "correctness.cases[0].dims", dims("D=4 N=77")},
		{"one too many", "correctness.cases[0].dims", dims("N=77 D=4 M=1")},
		{"other spaces", "correctness.cases[0].dims", dims("N=77  D=4")},
	})
}

// Every part of a choice is built by the pinned compiler.
func TestPinnedParts(t *testing.T) {
	job, e := order(t, choosing, "", h200)
	pin := policy.Toolchains{NVCC: &policy.Toolchain{Version: "13.0.88"}}
	job.Candidate.Toolchains = pin
	e.Candidate.Compiler = "nvcc 13.0.88"
	for i := range e.Candidate.Parts {
		e.Candidate.Parts[i].Compiler = "nvcc 13.0.88"
	}
	tell(t, job, e, []lie{
		{"a part by another", "candidate.compiler", func(e *gates.Evidence) { e.Candidate.Parts[1].Compiler = "nvcc 12.0" }},
		{"a part by another build of it", "candidate.compiler_digest", func(e *gates.Evidence) { e.Candidate.Parts[1].Digest = "sha256:x" }},
		{"the whole by another", "candidate.compiler", func(e *gates.Evidence) { e.Candidate.Compiler = "nvcc 12.0" }},
		{"a build that failed", "", func(e *gates.Evidence) { e.Candidate.OK, e.Candidate.Compiler, e.Candidate.Error = false, "", "no" }},
	})
}
