package actions_test

import (
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

// A scripted backend does not measure: a kernel's source says how fast it is
// ("speed 1.2"), and whether it compiles ("BROKEN"). All else is the runners' own
// code.
type scripted struct {
	job bundle.Job
	rng *rand.Rand
}

func measureScripted(ctx context.Context, job bundle.Job, _ string, p runners.Progress) (agent.Outcome, error) {
	e, err := runners.Gather(ctx, job.Job, scripted{job, rand.New(rand.NewPCG(1, 2))}, p)
	return agent.Outcome{Evidence: e, BuildLog: "scripted\n"}, err
}

func (b scripted) source(side runners.Side) string {
	data, err := os.ReadFile(filepath.Join(side.Dir, "scale.c"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

var speedPattern = regexp.MustCompile(`speed ([0-9.]+)`)

func (b scripted) speed(side runners.Side) float64 {
	if m := speedPattern.FindStringSubmatch(b.source(side)); m != nil {
		if v, err := strconv.ParseFloat(m[1], 64); err == nil {
			return v
		}
	}
	return 1
}

func (b scripted) Device() gates.Device {
	return gates.Device{Kind: "cpu", Name: "scripted", Arch: "none", Units: 1}
}
func (b scripted) Tools() map[string]string { return map[string]string{"cc": "scripted 1"} }

func (b scripted) Build(_ context.Context, _ runners.Role, side runners.Side) (gates.Build, error) {
	text := b.source(side)
	sum := sha256.Sum256([]byte(text))
	out := gates.Build{Variant: side.Variant, Source: "scale.c", EntryLine: 1, OK: true, Code: hex.EncodeToString(sum[:]), Compiler: "scripted 1"}
	if strings.Contains(text, "BROKEN") {
		// A compiler repeats what it reads.
		message := "it is broken: 100%, really\n::error::forged"
		out.OK, out.Code, out.Error = false, "", "scale.c:1: error: it is broken"
		out.Diagnostics = []gates.Diagnostic{{File: "scale.c", Line: 1, Column: 4, Severity: "error", Message: message}}
	}
	return out, nil
}

func (b scripted) Correctness(_ context.Context, gate *policies.CorrectnessGate, _ runners.Progress) (*gates.Correctness, error) {
	out := &gates.Correctness{Tolerance: gates.Tolerance{Abs: 0.1}}
	for _, c := range runners.Cases(b.job.Job, gate, b.rng) {
		e := c.Evidence()
		e.Errors = &gates.Errors{Elements: 100, MaxAbs: 1e-6, MeanAbs: 1e-7, Norm: 1e-6}
		out.Cases = append(out.Cases, e)
	}
	return out, nil
}

func (b scripted) Round(_ context.Context, gate *policies.PerformanceGate, shapes []string, _ runners.Progress) (gates.Round, error) {
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

func (b scripted) Profile(context.Context, *policies.ProfileGate, runners.Progress) (*gates.Profile, error) {
	return nil, errors.New("nothing profiles a script")
}

type silent struct{}

func (silent) Report(runners.Event) {}
