// Package scripted is a backend for tests that measures nothing: a kernel's source
// says what there would be to see. All else is the runners' own code. Nothing that
// it makes is ever judged as measured.
package scripted

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/agent"
	"github.com/kernelgate/kernelgate/runners/bundle"
)

// A Runner reads what it would have measured from the source scale.c: how fast it
// is ("speed 1.2"), whether it compiles ("BROKEN"), whether it is right ("WRONG"),
// whether it waits ("HOLD") and whether the runner itself fails ("FAULT"), both
// until Hold is closed.
type Runner struct {
	Hold    <-chan struct{}
	Stopped func() // told when a held measurement is cancelled; may be nil
	Refusal string // what the compiler says of BROKEN; "it is broken" unless given
}

type backend struct {
	Runner
	job bundle.Job
	rng *rand.Rand
}

// Measure gathers evidence about a job; it is agent.Config's.
func (r Runner) Measure(ctx context.Context, job bundle.Job, _ string, p runners.Progress) (agent.Outcome, error) {
	job.Policy.Narrow(job.Shapes, job.Seeds)
	b := backend{Runner: r, job: job, rng: rand.New(rand.NewPCG(1, 2))}
	var e *gates.Evidence
	var err error
	if job.Earlier == nil {
		e, err = runners.Gather(ctx, job.Job, b, p)
	} else {
		e, err = runners.Rebench(ctx, job.Job, b, job.Earlier, job.Rounds, p)
	}
	return agent.Outcome{Evidence: e, BuildLog: "scripted\n"}, err
}

func (b backend) source(side runners.Side) string {
	data, err := os.ReadFile(filepath.Join(side.Dir, "scale.c"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

var speedPattern = regexp.MustCompile(`speed ([0-9.]+)`)

func (b backend) speed(side runners.Side) float64 {
	if m := speedPattern.FindStringSubmatch(b.source(side)); m != nil {
		if v, err := strconv.ParseFloat(m[1], 64); err == nil {
			return v
		}
	}
	return 1
}

func (b backend) Device() gates.Device {
	return gates.Device{Kind: "cpu", Name: "scripted", Arch: "none", Units: 1}
}
func (b backend) Tools() map[string]string { return map[string]string{"cc": "scripted 1"} }

func (b backend) Build(_ context.Context, _ runners.Role, side runners.Side) (gates.Build, error) {
	text := b.source(side)
	sum := sha256.Sum256([]byte(text))
	out := gates.Build{Variant: side.Variant, Source: "scale.c", EntryLine: 1, OK: true, Code: hex.EncodeToString(sum[:]), Compiler: "scripted 1"}
	if strings.Contains(text, "BROKEN") {
		out.OK, out.Code, out.Error = false, "", "scale.c:1: error: it is broken"
		out.Diagnostics = []gates.Diagnostic{{File: "scale.c", Line: 1, Column: 4, Severity: "error", Message: cmp.Or(b.Refusal, "it is broken")}}
	}
	return out, nil
}

func (b backend) Correctness(_ context.Context, gate *policies.CorrectnessGate, p runners.Progress) (*gates.Correctness, error) {
	out := &gates.Correctness{Tolerance: gates.Tolerance{Abs: 0.1}}
	for _, c := range runners.Cases(b.job.Job, gate, b.rng) {
		e := c.Evidence()
		e.Errors = &gates.Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: 1e-6}
		if strings.Contains(b.source(b.job.Candidate), "WRONG") {
			e.Errors = &gates.Errors{Elements: 100, MaxAbs: 3, MeanAbs: 1, Norm: 0.8, Bad: 90}
		}
		out.Cases = append(out.Cases, e)
	}
	return out, nil
}

func (b backend) Round(ctx context.Context, gate *policies.PerformanceGate, shapes []string, p runners.Progress) (gates.Round, error) {
	p.Report(runners.Event{Gate: "performance", Text: "mission"})
	if strings.Contains(b.source(b.job.Candidate), "HOLD") {
		select {
		case <-b.Hold:
		case <-ctx.Done():
			if b.Stopped != nil {
				b.Stopped()
			}
			return gates.Round{}, context.Cause(ctx)
		}
	}
	if strings.Contains(b.source(b.job.Candidate), "FAULT") {
		select {
		case <-b.Hold:
		default:
			return gates.Round{}, errors.New("the device fell off the bus")
		}
	}
	noise := simulate.Noise{Between: 0.001, Within: 0.005}
	round := gates.Round{Seed: b.rng.Uint64() >> 16}
	for _, name := range shapes {
		pairs := int(gate.Pairs)
		gain := noise.Ratios(b.rng, b.speed(b.job.Candidate)/b.speed(*b.job.Baseline), 1, pairs).Rounds[0]
		control := noise.Ratios(b.rng, 1, 1, pairs).Rounds[0]
		s := gates.Series{Shape: name, Batch: 1, Verified: pairs, Worst: &gates.Errors{Elements: 100, Norm: 1e-6}}
		for i := range pairs {
			s.Order = strings.TrimSpace(s.Order + " bca")
			s.Nanos = append(s.Nanos, 1e5, 1e5/gain[i], 1e5/control[i])
		}
		round.Series = append(round.Series, s)
	}
	return round, nil
}

func (b backend) Profile(context.Context, *policies.ProfileGate, runners.Progress) (*gates.Profile, error) {
	return nil, errors.New("nothing profiles a script")
}
