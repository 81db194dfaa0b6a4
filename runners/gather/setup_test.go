package gather

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// slow builds some sides until it is stopped.
type slow struct {
	*scripted
	roles []runners.Role
}

func (s slow) Build(ctx context.Context, role runners.Role, side runners.Side) (gates.Build, error) {
	if slices.Contains(s.roles, role) {
		<-ctx.Done()
		return gates.Build{}, ctx.Err()
	}
	return s.scripted.Build(ctx, role, side)
}

// TestLateBuildIsTheSides checks that a build that takes too long is its side's fault. If both
// sides do, it is the setup's.
func TestLateBuildIsTheSides(t *testing.T) {
	for _, c := range []struct {
		roles   []runners.Role
		outcome gates.Outcome
		reason  gates.Reason
		says    string
	}{
		{[]runners.Role{runners.Candidate}, gates.Defer, gates.ReasonBuild, "The candidate does not build: the build took longer than 20ms and was stopped"},
		{[]runners.Role{runners.Baseline}, gates.Error, gates.ReasonSetup, "The baseline does not build on this runner: the build took longer than 20ms"},
		{[]runners.Role{runners.Baseline, runners.Candidate}, gates.Error, gates.ReasonSetup, "Neither the baseline nor the candidate builds, for the same reason: the build took longer"},
	} {
		j := job(t)
		j.Policy.Rules[0].Gates.Build.Timeout = quantity.Duration(20 * time.Millisecond)
		e, err := Gather(t.Context(), j, slow{&scripted{job: j, compile: true, ratio: 1}, c.roles}, silence{})
		if err != nil {
			t.Fatal(err)
		}
		v := gates.Judge(j.Policy, "p.yaml", e)
		if v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
			t.Errorf("%v: %s (%s): %s", c.roles, v.Outcome, v.Reason, v.Summary)
		}
	}
}

// TestLateBuildOfAnOwnVariant checks that a variant that only the head has is named by its source.
func TestLateBuildOfAnOwnVariant(t *testing.T) {
	j := job(t)
	own := *j.Manifest
	own.Variants = append(slices.Clone(own.Variants), manifest.Variant{Name: "own", Source: "own.c"})
	j.Candidate.Variant, j.Candidate.Manifest = "own", &own
	g := gatherer{job: j, rule: j.Rule()}
	if b := g.late(gates.Build{}, j.Candidate, time.Second); b.Source != "own.c" {
		t.Errorf("its source is %q", b.Source)
	}
}

type silence struct{}

func (silence) Report(runners.Event) {}

// broken has a setup that cannot be measured.
type broken struct{ *scripted }

func (b broken) Correctness(context.Context, *policy.CorrectnessGate, runners.Progress) (*gates.Correctness, error) {
	return nil, errors.Join(runners.SetupErrorf("the reference r.c does not compile: %w", &output.CompileError{
		Summary: "r.c:3: 'x' undeclared", Diagnostics: []gates.Diagnostic{{File: "r.c", Line: 3, Severity: "error", Message: "'x' undeclared"}},
	}))
}

// TestSetupIsNotTheRunners checks that a mistake that the base supplies is neither the runner's
// fault nor the change's, and that its lines are named.
func TestSetupIsNotTheRunners(t *testing.T) {
	j := job(t)
	e, err := Gather(t.Context(), j, broken{&scripted{job: j, compile: true, ratio: 1}}, silence{})
	if err != nil {
		t.Fatal(err)
	}
	v := gates.Judge(j.Policy, "p.yaml", e)
	if v.Outcome != gates.Error || v.Reason != gates.ReasonSetup || !strings.Contains(v.Summary, "The setup is at fault, not the change: comparing outputs: the reference r.c does not compile: r.c:3: 'x' undeclared") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	if len(v.Findings) != 1 || v.Findings[0].Line != 3 {
		t.Errorf("findings %+v", v.Findings)
	}
}

// equal builds both sides to the same code.
type equal struct{ *scripted }

func (s equal) Build(ctx context.Context, role runners.Role, side runners.Side) (gates.Build, error) {
	b, err := s.scripted.Build(ctx, role, side)
	b.Code = "1"
	return b, err
}

// TestEqualCodeRunsNothing checks that equal machine code decides alone: nothing runs, whatever the
// baseline is like.
func TestEqualCodeRunsNothing(t *testing.T) {
	j := job(t)
	j.Policy.Rules[0].Gates.Performance.Target = nil
	s := &scripted{job: j, compile: true, wrong: true}
	e, err := Gather(t.Context(), j, equal{s}, silence{})
	if err != nil {
		t.Fatal(err)
	}
	if asked := strings.Join(s.asked, ", "); asked != "build baseline, build candidate" {
		t.Errorf("asked for %s", asked)
	}
	if v := gates.Judge(j.Policy, "p.yaml", e); v.Outcome != gates.Pass || !strings.Contains(v.Summary, "The machine code is the same as the baseline's") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}
