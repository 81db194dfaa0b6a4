// Package scripted is a backend for tests that measures nothing: a kernel's source
// says what there would be to see. All else is the runners' own code. Nothing that
// it makes is ever judged as measured.
package scripted

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// Manifest is that of the kernel scale, which tests of the bot gate, up to its shapes.
const Manifest = `version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.1}
`

// A Runner reads what it would have measured from the kernel's source: how fast it
// is ("speed 1.2"), whether it compiles ("BROKEN"), whether it is right ("WRONG"; "WRONG-UNTIL" is, once Hold is closed),
// whether it races ("RACE"),
// whether it waits ("HOLD") and whether the runner itself fails ("FAULT"), both
// until Hold is closed. Its machine code is the source but for remarks in /* */; with
// __TIME__ in it, every build is another.
type Runner struct {
	Script  func(source string) string // the words for a source that is not its own script; may be nil
	Nanos   float64                    // how long speed 1 takes; unless given, every baseline takes 100 µs
	Hold    <-chan struct{}
	Stopped func() // told when a held measurement is cancelled; may be nil
	Refusal string // what the compiler says of BROKEN; "it is broken" unless given
}

type backend struct {
	runners.WithoutNotes
	runners.WithoutEnergy
	runners.WithoutArtifacts
	runners.WithoutDisassembly
	runners.WithoutReference
	runners.WithoutArms
	Runner
	job runners.Job
	rng *rand.Rand
}

// Open returns the backend for a job; it is an arm.Opener.
func (r Runner) Open(_ context.Context, job runners.Job, _ string) (runners.Backend, error) {
	return backend{Runner: r, job: job, rng: rand.New(rand.NewPCG(1, 2))}, nil
}

// Explain counts nothing: a script says how fast it is, and does nothing.
func (backend) Explain(context.Context, runners.Explanation, runners.Progress) (*gates.Explained, *gates.Profile, error) {
	return &gates.Explained{}, nil, nil
}

// LayIn does nothing: scripts include nothing.
func (r Runner) LayIn(context.Context, runners.Job, runners.Side) error { return nil }

// Measure gathers evidence about a job; it is agent.Config's.
func (r Runner) Measure(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
	b, _ := r.Open(ctx, job, scratch)
	e, err := gather.Gather(ctx, job, b, p)
	return runners.Measured{Evidence: e, BuildLog: b.BuildLog()}, err
}

// file is the source that a side is built from.
func (b backend) file(side runners.Side) string {
	v, _ := b.job.Of(side).Variant(side.Variant)
	return v.Source
}

func (b backend) source(side runners.Side) string {
	m := b.job.Of(side)
	v, _ := m.Variant(side.Variant)
	data, err := os.ReadFile(filepath.Join(side.Dir, m.SourceFile(v)))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// script is what there would be to see of a side.
func (b backend) script(side runners.Side) string {
	if b.Script == nil {
		return b.source(side)
	}
	return b.Script(b.source(side))
}

// remark is what leaves no trace in the machine code.
var remark = regexp.MustCompile(`(?s)/\*.*?\*/\n?`)

var speedPattern = regexp.MustCompile(`speed ([0-9.]+)`)

func (b backend) speed(side runners.Side) float64 {
	if m := speedPattern.FindStringSubmatch(b.script(side)); m != nil {
		if v, err := strconv.ParseFloat(m[1], 64); err == nil {
			return v
		}
	}
	return 1
}

// Abilities are those of the mode that the job has.
func (b backend) Abilities() gates.Abilities { return runners.ModeOf(b.job.Manifest).Abilities }

func (b backend) BuildLog() string { return "scripted\n" }

func (b backend) Device() gates.Device {
	return gates.Device{Kind: gates.DeviceCPU, Name: "scripted", Arch: "none", Units: 1}
}

// Seed is always the same: scripts have no secrets.
func (b backend) Seed() uint64 { return 1 }

func (b backend) Tools() map[string]string { return map[string]string{"cc": "scripted 1"} }

func (b backend) Build(ctx context.Context, role runners.Role, side runners.Side) (gates.Build, error) {
	if side.Variant == manifest.Choice {
		return runners.BuildParts(b.job.Of(side), side, "", func(part runners.Side) (gates.Build, error) { return b.Build(ctx, role, part) })
	}
	file, text := b.file(side), remark.ReplaceAllString(b.source(side), "")
	if strings.Contains(text, "__TIME__") {
		text += time.Now().String()
	}
	code := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	out := gates.Build{Variant: side.Variant, Source: file, EntryLine: 1, OK: true, Code: code, Compiler: "scripted 1"}
	if b.job.Rule().Gates.PTXAS != nil {
		little := 1000
		out.Resources = &gates.Resources{Stack: &little, CodeSize: &little}
	}
	if strings.Contains(b.script(side), "BROKEN") {
		out.OK, out.Code, out.Error = false, "", file+":1: error: it is broken"
		out.Diagnostics = []gates.Diagnostic{{File: file, Line: 1, Column: 4, Severity: "error", Message: cmp.Or(b.Refusal, "it is broken")}}
	}
	return out, nil
}

func (b backend) Correctness(_ context.Context, gate *policy.CorrectnessGate, p runners.Progress) (*gates.Correctness, error) {
	out := &gates.Correctness{Tolerance: gates.Tolerance(b.job.Manifest.Tolerance), Tolerances: runners.OwnTolerances(b.job.Manifest)}
	figures := func(wrong bool) *gates.Errors {
		if wrong {
			return &gates.Errors{Elements: 100, MaxAbs: 3, MeanAbs: 1, Norm: 0.8, Bad: 90}
		}
		return &gates.Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: 1e-6}
	}
	for _, c := range runners.Cases(b.job, gate, b.rng) {
		e := c.Evidence()
		e.Errors = figures(b.wrong())
		if b.job.Baseline != nil {
			e.Baseline = figures(strings.Contains(b.script(*b.job.Baseline), "WRONG"))
		}
		if gate.EndToEnd != nil {
			e.EndToEnd = e.Errors
		}
		if yes := true; gate.Determinism {
			e.Deterministic = &yes
		}
		out.Cases = append(out.Cases, e)
	}
	return out, nil
}

// wrong tells whether the output is; with WRONG-UNTIL it is until Hold is closed.
func (b backend) wrong() bool {
	script := b.script(b.job.Candidate)
	if strings.Contains(script, "WRONG-UNTIL") {
		select {
		case <-b.Hold:
			return false
		default:
		}
	}
	return strings.Contains(script, "WRONG")
}

func (b backend) Round(ctx context.Context, gate *policy.PerformanceGate, shapes []manifest.Shape, p runners.Progress) (gates.Round, error) {
	p.Report(runners.Event{Gate: gates.GatePerformance, Text: "mission"})
	if strings.Contains(b.script(b.job.Candidate), "HOLD") {
		select {
		case <-b.Hold:
		case <-ctx.Done():
			if b.Stopped != nil {
				b.Stopped()
			}
			return gates.Round{}, context.Cause(ctx)
		}
	}
	if strings.Contains(b.script(b.job.Candidate), "FAULT") {
		select {
		case <-b.Hold:
		default:
			return gates.Round{}, errors.New("the device fell off the bus")
		}
	}
	noise := simulate.Noise{Between: 0.001, Within: 0.005}
	round := gates.Round{Seed: b.rng.Uint64() >> 16}
	after := b.speed(b.job.Candidate)
	before := after // a new kernel is timed beside itself
	if b.job.Baseline != nil {
		before = b.speed(*b.job.Baseline)
	}
	nanos := 1e5
	if b.Nanos > 0 {
		nanos = b.Nanos / before
	}
	for _, shape := range shapes {
		pairs := int(gate.Pairs)
		gain := noise.Ratios(b.rng, after/before, 1, pairs).Rounds[0]
		control := noise.Ratios(b.rng, 1, 1, pairs).Rounds[0]
		s := gates.Series{Shape: shape.Name, Batch: 1, Verified: pairs, Worst: &gates.Errors{Elements: 100, Norm: 1e-6}}
		for i := range pairs {
			s.Order = strings.TrimSpace(s.Order + " bca")
			s.Nanos = append(s.Nanos, nanos, nanos/gain[i], nanos/control[i])
		}
		round.Series = append(round.Series, s)
	}
	return round, nil
}

// Sanitize finds a race in the kernel's first line where the script says "RACE".
func (b backend) Sanitize(_ context.Context, gate *policy.SanitizeGate, _ runners.Progress) (*gates.Sanitize, error) {
	out := &gates.Sanitize{}
	for _, c := range runners.SanitizeCases(b.job, gate, rand.New(rand.NewPCG(3, 4))) {
		out.Cases = append(out.Cases, c.Input())
	}
	for _, tool := range gate.Tools {
		run := gates.Sanitized{Tool: string(tool), With: "scripted 1"}
		if tool == policy.Racecheck && strings.Contains(b.script(b.job.Candidate), "RACE") {
			run.Findings = []gates.Finding{{
				Kind: gates.KindRace, Text: "a race between write and read of shared memory", File: b.file(b.job.Candidate), Line: 1, Count: 6144,
			}}
		}
		out.Tools = append(out.Tools, run)
	}
	return out, nil
}

func (b backend) Profile(context.Context, *policy.ProfileGate, runners.Progress) (*gates.Profile, error) {
	return nil, errors.New("nothing profiles a script")
}
