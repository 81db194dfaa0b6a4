package answer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/why"
)

// verdicts has an explanation of mission under "explained", and none under "bare".
func verdicts(_ context.Context, r change.Result) (*gates.Verdict, error) {
	micros := func(p50 float64) *stats.Summary { return &stats.Summary{P50: p50} }
	speedup := gates.Estimate{Value: 0.4, Lower: new(0.3), Upper: new(0.5)}
	compared := gates.Comparison{Shape: "long", Role: gates.RoleTarget, Baseline: micros(3), Candidate: micros(2), Speedup: speedup}
	switch r.Verdict {
	case "explained":
		rows := []why.Row{{ID: "conflicts", Name: "bank conflicts", Baseline: new(15.5), Candidate: new(0.0), Moved: true}}
		return &gates.Verdict{Why: []gates.Why{{
			Shape: "mission", Sentence: "fewer bank conflicts in shared memory",
			Explanation: why.Explanation{Rows: rows, Stalls: []why.Stall{{Reason: "barrier"}}}, Roofline: &gates.Roofline{},
		}}, Comparisons: []gates.Comparison{compared}}, nil
	case "bare":
		return &gates.Verdict{Comparisons: []gates.Comparison{compared}}, nil
	}
	return nil, errors.New("the store is away")
}

// Stored evidence answers at once. What it does not explain is profiled, by whoever may measure.
func TestWhy(t *testing.T) {
	with := func(verdict string) func(*change.State) {
		return func(s *change.State) {
			s.Runs = s.Runs[:1]
			s.Runs[0].Result.Verdict = verdict
		}
	}
	profile := func(shapes ...string) change.Effect {
		return change.Effect{ExtraRuns: []change.ExtraRun{{
			Folder: "kernels/scale", Bundle: "profiles of kernels/scale on " + strings.Join(shapes, "+"),
			Rebench: grammar.Rebench{Kernels: []string{"kernels/scale"}, Shapes: shapes}, OnlyExplain: true,
		}}}
	}
	extra := func(phase change.Phase, verdict string) func(*change.State) {
		return func(s *change.State) {
			with("bare")(s)
			spec := s.Runs[0].KernelSpec
			s.ExtraRuns = []change.Run{
				{KernelSpec: spec, Phase: change.Done, Result: &change.Result{Verdict: "explained"}, ExtraRun: &grammar.Rebench{Versus: grammar.Self}},
				{KernelSpec: spec, Phase: phase, Result: &change.Result{Verdict: verdict}, ExtraRun: &grammar.Rebench{}, OnlyExplain: true},
			}
		}
	}
	for _, test := range []struct {
		name, by, text string
		bend           func(*change.State)
		ok             bool
		says           string
		effect         change.Effect
	}{
		{"from the evidence", "read", "/why", with("explained"), true, "**Why** on `mission`: Fewer bank conflicts in shared memory", change.Effect{}},
		{"of its shape", "read", "/why scale mission", with("explained"), true, "bank conflicts | 15.5 | 0", change.Effect{}},
		{"of a different shape", "write", "/why long", with("explained"), true, "Profiling both sides of `scale`", profile("long")},
		{"of two shapes, one of them explained", "write", "/why shapes=mission,long", with("explained"), true, "Profiling both sides", profile("mission", "long")},
		{"of what differs most", "write", "/why", with("bare"), true, "Profiling both sides", profile("long")},
		{"without a verdict", "write", "/why", with(""), true, "Profiling both sides", profile("mission")},
		{"by a reader", "read", "/why", with("bare"), false, "needs the role `write` in this repository, and you have `read`", change.Effect{}},
		{"of a shape that is not there", "write", "/why huge", with("bare"), false, "no shape huge", change.Effect{}},
		{"from an earlier run that profiled", "read", "/why", extra(change.Done, "explained"), true, "Fewer bank conflicts", change.Effect{}},
		{"of a fork, from the evidence", "read", "/why", func(s *change.State) { with("explained")(s); fork(s) }, true, "Fewer bank conflicts", change.Effect{}},
		{"of a fork that waits", "write", "/why", func(s *change.State) { with("bare")(s); fork(s) }, false, "waits for `/ok-to-test", change.Effect{}},
		{"while it is profiled", "write", "/why", extra(change.Running, ""), true, "is queued or being measured already", change.Effect{}},
		{"while it is measured", "write", "/why gemm", nil, true, "`gemm` is queued or being measured already. Its report explains", change.Effect{}},
		{"of what is gone", "write", "/why gone", nil, false, "the kernel is gone", change.Effect{}},
		{"of an ambiguous kernel", "write", "/why scale", nil, false, "2 kernels are called", change.Effect{}},
		{"of nothing", "write", "/why", func(s *change.State) { s.Runs = nil }, false, "no kernel changed", change.Effect{}},
		{"by mistaken rules", "write", "/why", func(s *change.State) { s.Plan.Problems = []gates.Diagnostic{{}} }, false, "has mistakes", change.Effect{}},
		{"without a base branch", "write", "/why", baseGone, false, "The base branch is gone", change.Effect{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := answer.Decider{People: people{}, Planner: packer{}, Verdict: verdicts, Now: time.Now}
			a, err := d.To(t.Context(), stateOf(test.bend), change.Command{Asked: change.Asked{ID: "comment-1", By: test.by, Request: grammar.Read(test.text), Head: head, Base: "main"}})
			reply := words(test.text, a)
			if err != nil || a.OK != test.ok || !strings.Contains(reply, test.says) {
				t.Errorf("got %+v, %v: %s; want %v and %q", a, err, reply, test.ok, test.says)
			}
			if diff := cmp.Diff(test.effect, a.Effect); diff != "" {
				t.Error(diff)
			}
			for _, r := range a.Answer.Reasons {
				if w := r.Shapes[0]; w.Stalls != nil || w.Roofline != nil {
					t.Error("the answer has what only the report shows")
				}
			}
		})
	}
}

// A verdict that cannot be read is an error, so that the command is tried again. A decider without a planner and without a profiler
// has no answer.
func TestWhyWithoutVerdicts(t *testing.T) {
	asked := change.Command{Asked: change.Asked{By: "write", Request: grammar.Read("/why scale"), Head: head, Base: "main"}}
	s := stateOf(func(s *change.State) { s.Runs = s.Runs[:1]; s.Runs[0].Result.Verdict = "lost" })
	d := answer.Decider{People: people{}, Planner: packer{}, Verdict: verdicts, Now: time.Now}
	if _, err := d.To(t.Context(), s, asked); err == nil || !strings.Contains(err.Error(), "the store is away") {
		t.Errorf("got %v", err)
	}
	a, err := answer.Decider{People: people{}, Now: time.Now}.To(t.Context(), s, asked)
	if err != nil || a.OK || a.Answer.Kind != change.AnswerUnavailable {
		t.Errorf("got %+v, %v", a, err)
	}
}
