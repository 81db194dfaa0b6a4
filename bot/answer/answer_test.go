package answer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
)

var (
	head  = strings.Repeat("a", 40)
	other = strings.Repeat("b", 40)
	scope = change.NewScope(head, "main", "rules")
)

// people have the role that they are called.
type people struct{}

func (people) Permission(_ context.Context, _, login string) (policy.Role, error) {
	if login == "outage" {
		return "", errors.New("GitHub is away")
	}
	return policy.Role(login), nil
}

// Pushers is somebody who has no other part in it, unless the repository is called o/pushed-by-somebody-else.
func (people) Pushers(_ context.Context, repo string, _ int, _ string) ([]string, error) {
	switch _, who, _ := strings.Cut(repo, "/pushed-by-"); who {
	case "":
		return []string{"somebody"}, nil
	case "nobody":
		return nil, nil
	case "outage":
		return nil, errors.New("GitHub is away")
	default:
		return []string{"somebody", who}, nil
	}
}

// packer names a bundle after what was asked of it.
type packer struct{}

func (packer) Rerun(_ context.Context, _ change.ID, _ change.Facts, r planner.Rerun) (string, error) {
	if slices.Contains(r.Shapes, "huge") {
		return "", usage.Error{Err: errors.New("no shape ```huge```")}
	}
	return fmt.Sprintf("%s rounds=%d vs=%s", r.Folder, r.Rounds, r.Versus), nil
}

func (packer) Explain(_ context.Context, _ change.ID, _ change.Facts, r planner.Rerun) (string, []string, error) {
	if slices.Contains(r.Shapes, "huge") {
		return "", nil, usage.Error{Err: errors.New("no shape huge")}
	}
	if len(r.Shapes) == 0 {
		r.Shapes = []string{"mission"}
	}
	return fmt.Sprintf("profiles of %s on %s", r.Folder, strings.Join(r.Shapes, "+")), r.Shapes, nil
}

// stateOf is a pull request with two kernels of one name that were measured, one that is
// being measured, and one that is gone.
func (packer) Search(_ context.Context, _ change.ID, _ change.Facts, r planner.Search) (string, error) {
	if r.Bisect != nil && r.Bisect.Good == "nowhere" {
		return "", usage.Error{Err: errors.New("no commit nowhere")}
	}
	if r.Tune == nil && r.Bisect == nil {
		return "", errors.New("a search of nothing")
	}
	return "search of " + r.Folder, nil
}

func stateOf(bend func(*change.State)) *change.State {
	result := &change.Result{Outcome: gates.Defer, Reason: gates.ReasonTooSlow, Attempt: 1}
	s := &change.State{
		ID: change.ID{Kind: change.Pull, Repo: 7, Number: 12}, Facts: change.Facts{Repo: "o/r", Head: head, Base: "main", Open: true},
		Runs: []change.Run{
			{KernelSpec: change.KernelSpec{Name: "scale", Folder: "kernels/scale", Sources: "s"}, Phase: change.Done, Result: result},
			{KernelSpec: change.KernelSpec{Name: "scale (kernels/other)", Folder: "kernels/other", Sources: "s"}, Phase: change.Done, Result: &change.Result{Outcome: gates.Error}},
			{KernelSpec: change.KernelSpec{Name: "gemm", Folder: "kernels/gemm", Sources: "s"}, Phase: change.Running},
			{KernelSpec: change.KernelSpec{Name: "gone", Folder: "kernels/gone"}, Phase: change.Done, Result: result},
		},
	}
	s.Plan = &change.Plan{Key: s.Facts.PlanKey(), Head: head, Rules: "rules-sources"}
	if bend != nil {
		bend(s)
	}
	return s
}

// devices has one kernel, on two devices.
func devices(s *change.State) {
	one := s.Runs[0]
	s.Runs = nil
	for _, device := range []string{"l4", "h200"} {
		one.Name, one.Device = "scale on "+device, device
		one.Result = &change.Result{Outcome: gates.Error}
		s.Runs = append(s.Runs, one)
	}
}

func fork(s *change.State) { s.Facts.Fork = true }

func baseGone(s *change.State) { loosens(s); s.Facts.BaseGone = true }

// unread has the plan of an earlier base, whose policy may let others decide.
func unread(s *change.State) { s.Facts.Base = "release" }

// retargeted went to a different base after the command was written.
func retargeted(s *change.State) {
	s.Facts.Base = "release"
	s.Plan.Key = s.Facts.PlanKey()
}

func never(s *change.State) {
	s.Facts.Fork, s.Plan.Forks = true, string(policy.ForksNever)
}

func loosens(s *change.State) {
	s.Plan.RuleChange = &change.RuleChange{Loosens: true, Digest: "d"}
}

func ownRules(author string) func(*change.State) {
	return func(s *change.State) { loosens(s); s.Facts.Author = author }
}

func pushedBy(login string) func(*change.State) {
	return func(s *change.State) { loosens(s); s.Facts.Repo = "o/pushed-by-" + login }
}

func TestAnswers(t *testing.T) {
	idle := func(s *change.State) { s.Runs = s.Runs[:2] }
	for _, test := range []struct {
		name, by, text string
		bend           func(*change.State)
		seen           string // the head when it was asked; head if empty
		ok             bool
		says           string
		effect         change.Effect
	}{
		{"no role", "read", "/rebench", nil, "", false, "needs the role `write` in this repository, and you have `read`", change.Effect{}},
		{"a mistake", "none", "/rebench speed=3", nil, "", false, "`speed=` is not an argument", change.Effect{}},
		{"help", "read", "/help", nil, "", true, "| `/cancel` |", change.Effect{}},
		{"explain", "read", "/explain", nil, "", true, "The base branch has no policy", change.Effect{}},
		{"override", "admin", "/override why not", nil, "", true, "aaaaaaaaaaaa", change.Effect{Override: &change.Override{For: scope, By: "admin", Reason: "why not", At: "2026-01-02T03:04:05Z"}}},
		{"override of what nobody saw", "admin", "/override why not", nil, other, false, "The head has moved to aaaaaaaaaaaa.", change.Effect{}},
		{"override while the change is being read", "admin", "/override why not", unread, "", false, "still being read", change.Effect{}},
		{"override of a different base", "admin", "/override why not", retargeted, "", false, "The base branch is now `release`", change.Effect{}},
		{"override of different rules", "admin", "/override why not", func(s *change.State) { s.Plan.Rules = "others-sources" }, "", false, "have changed since this command", change.Effect{}},
		{"approval while the change is being read", "write", "/ok-to-test " + head, func(s *change.State) { fork(s); unread(s) }, "", false, "still being read", change.Effect{}},
		{"approval of a different base", "write", "/ok-to-test " + head, func(s *change.State) { fork(s); retargeted(s) }, "", false, "The base branch is now `release`", change.Effect{}},
		{"approval without a base branch", "write", "/ok-to-test " + head, func(s *change.State) { fork(s); baseGone(s) }, "", false, "The base branch is gone", change.Effect{}},
		{"approval of rules of a different base", "maintain", "/approve-policy " + head, func(s *change.State) { loosens(s); retargeted(s) }, "", false, "The base branch is now `release`", change.Effect{}},
		{"cancel", "write", "/cancel", nil, "", true, "is cancelled", change.Effect{Cancel: head}},
		{"cancel nothing", "write", "/cancel", idle, "", false, "Nothing is queued or running.", change.Effect{}},

		{"approval", "write", "/ok-to-test " + head, fork, "", true, "Runners may now run aaaaaaaaaaaa", change.Effect{Approve: &change.ForkApproved{For: scope, By: "write"}}},
		{"approval without need", "write", "/ok-to-test " + head, nil, "", false, "not from a fork", change.Effect{}},
		{"approval of a short id", "write", "/ok-to-test " + head[:39], fork, "", false, "comment `/ok-to-test " + head + "`", change.Effect{}},
		{"approval of another", "write", "/ok-to-test " + other, fork, "", false, "which is `" + head + "`", change.Effect{}},
		{"approval of what was no head yet", "write", "/ok-to-test " + head, fork, other, false, "The head has moved", change.Effect{}},
		{"approval of a longer id", "write", "/ok-to-test " + head + "aaaa", fork, "", false, "which is `" + head + "`", change.Effect{}},
		{"approval where forks never run", "write", "/ok-to-test " + head, never, "", false, "never runs code from forks", change.Effect{}},

		{"approval of rules", "maintain", "/approve-policy " + head, loosens, "", true, "aaaaaaaaaaaa may now change the rules", change.Effect{
			ApproveRules: &change.RulesApproved{For: scope, By: "maintain", At: "2026-01-02T03:04:05Z", Digest: "d"}}},
		{"approval of rules by a writer", "write", "/approve-policy " + head, loosens, "", false, "needs the role `maintain`", change.Effect{}},
		{"approval of rules by a short id", "maintain", "/approve-policy " + head[:39], loosens, "", false, "comment `/approve-policy " + head + "`", change.Effect{}},
		{"approval of rules of another", "maintain", "/approve-policy " + other, loosens, "", false, "which is `" + head + "`", change.Effect{}},
		{"approval of rules that nobody saw", "maintain", "/approve-policy " + head, loosens, other, false, "The head has moved", change.Effect{}},
		{"approval of one's own rules", "maintain", "/approve-policy " + head, ownRules("Maintain"), "", false, "You are the author", change.Effect{}},
		{"approval of rules that one has pushed", "maintain", "/approve-policy " + head, pushedBy("Maintain"), "", false, "You pushed `" + head + "`", change.Effect{}},
		{"approval of rules that nobody knows the pusher of", "maintain", "/approve-policy " + head, pushedBy("nobody"), "", false, "GitHub does not say who pushed `" + head + "`", change.Effect{}},
		{"approval of an administrator's own rules", "admin", "/approve-policy " + head, ownRules("admin"), "", true, "may now change the rules", change.Effect{
			ApproveRules: &change.RulesApproved{For: scope, By: "admin", At: "2026-01-02T03:04:05Z", Digest: "d"}}},
		{"approval of rules without need", "maintain", "/approve-policy " + head, nil, "", false, "nothing to approve", change.Effect{}},
		{"approval of stricter rules", "maintain", "/approve-policy " + head, func(s *change.State) { loosens(s); s.Plan.RuleChange.Loosens = false }, "", false, "only tightens", change.Effect{}},
		{"approval of what is being read", "maintain", "/approve-policy " + head, func(s *change.State) { loosens(s); s.Plan.Key = "old" }, "", false, "still being read", change.Effect{}},
		{"override where rules wait", "admin", "/override why not", loosens, "", true, "still wait for `/approve-policy`", change.Effect{Override: &change.Override{For: scope, By: "admin", Reason: "why not", At: "2026-01-02T03:04:05Z"}}},

		{"override without a base branch", "admin", "/override why not", baseGone, "", false, "The base branch is gone", change.Effect{}},
		{"approval of rules without a base branch", "maintain", "/approve-policy " + head, baseGone, "", false, "The base branch is gone", change.Effect{}},
		{"rebench without a base branch", "write", "/rebench", baseGone, "", false, "The base branch is gone", change.Effect{}},
		{"explanation without a base branch", "write", "/explain", baseGone, "", true, "The base branch is gone", change.Effect{}},

		{"tune", "write", "/tune kernels/scale", nil, "", true, "Searching the variants and toggles of `scale`", change.Effect{
			Search: &change.Search{Folder: "kernels/scale", Bundle: "search of kernels/scale", Request: grammar.Read("/tune kernels/scale")}}},
		{"tune of several", "write", "/tune", nil, "", false, "A search takes one kernel, and this change touches `gemm`, `scale (kernels/other)`, `scale`. Name one kernel, as in `/tune gemm`", change.Effect{}},
		{"bisect while the same runs", "write", "/bisect gemm", func(s *change.State) {
			asked := grammar.Read("/bisect")
			s.Searches = []change.Run{{KernelSpec: change.KernelSpec{Name: "gemm", Folder: "kernels/gemm"}, Phase: change.Queued, Search: &asked}}
		}, "", false, "A `/bisect` of `gemm` is already queued or running", change.Effect{}},
		{"bisect from nowhere", "write", "/bisect gemm nowhere..main", nil, "", false, "no commit nowhere", change.Effect{}},
		{"bisect of a fork that waits", "write", "/bisect gemm", fork, "", false, "waits for `/ok-to-test", change.Effect{}},
		{"bisect of what is gone", "write", "/bisect gone", nil, "", false, "the kernel is gone", change.Effect{}},
		{"bisect without a base branch", "write", "/bisect gemm", baseGone, "", false, "The base branch is gone", change.Effect{}},
		{"tune of what is being read", "write", "/tune gemm", func(s *change.State) { s.Plan.Key = "old" }, "", false, "still being read", change.Effect{}},
		{"rebench all", "write", "/rebench rounds=3", nil, "", true, "decided the verdict on `scale`: more rounds", change.Effect{
			Rebench: []change.Rerun{{Folder: "kernels/scale", Bundle: "kernels/scale rounds=3 vs="}, {Folder: "kernels/other", Bundle: "kernels/other rounds=3 vs="}}}},
		{"rebench says what is busy", "write", "/rebench", nil, "", true, "`gemm` is queued or being measured already.", change.Effect{
			Rebench: []change.Rerun{{Folder: "kernels/scale", Bundle: "kernels/scale rounds=0 vs="}, {Folder: "kernels/other", Bundle: "kernels/other rounds=0 vs="}}}},
		{"rebench by folder", "write", "/rebench kernels/other", nil, "", true, "Measuring again", change.Effect{Rebench: []change.Rerun{{Folder: "kernels/other", Bundle: "kernels/other rounds=0 vs="}}}},
		{"rebench on every device", "write", "/rebench scale", devices, "", true, "Measuring again", change.Effect{Rebench: []change.Rerun{
			{Folder: "kernels/scale", Device: "l4", Bundle: "kernels/scale rounds=0 vs="}, {Folder: "kernels/scale", Device: "h200", Bundle: "kernels/scale rounds=0 vs="}}}},
		{"rebench on one device", "write", "/rebench scale on h200", devices, "", true, "Measuring again", change.Effect{Rebench: []change.Rerun{
			{Folder: "kernels/scale", Device: "h200", Bundle: "kernels/scale rounds=0 vs="}}}},
		{"rebench all on one device", "write", "/rebench on l4", devices, "", true, "Measuring again", change.Effect{Rebench: []change.Rerun{
			{Folder: "kernels/scale", Device: "l4", Bundle: "kernels/scale rounds=0 vs="}}}},
		{"rebench on a device that the policy does not name", "write", "/rebench on a100", devices, "", false, "does not ask for a run on `a100`. It asks for `h200`, `l4`.", change.Effect{}},
		{"rebench on a device where one is enough", "write", "/rebench on l4", nil, "", false, "one run of a kernel, on any of its runners, so `l4` cannot be chosen", change.Effect{}},
		{"an unknown kernel on devices", "write", "/rebench nothing", devices, "", false, "It touches `scale`.", change.Effect{}},
		{"an extra on a device", "write", "/rebench scale on h200 vs=self", devices, "", true, "an extra", change.Effect{ExtraRuns: []change.ExtraRun{
			{Folder: "kernels/scale", Device: "h200", Bundle: "kernels/scale rounds=0 vs=self", Rebench: grammar.Rebench{Kernels: []string{"kernels/scale"}, Device: "h200", Versus: grammar.Self}}}}},
		{"tune on the first device", "write", "/tune", devices, "", true, "toggles of `scale on l4`", change.Effect{
			Search: &change.Search{Folder: "kernels/scale", Device: "l4", Bundle: "search of kernels/scale", Request: grammar.Read("/tune")}}},
		{"bisect on a device", "write", "/bisect scale on h200", devices, "", true, "made `scale on h200` slower", change.Effect{
			Search: &change.Search{Folder: "kernels/scale", Device: "h200", Bundle: "search of kernels/scale", Request: grammar.Read("/bisect scale on h200")}}},
		{"rebench by an ambiguous name", "write", "/rebench scale", nil, "", false, "2 kernels are called `scale`: name the folder that you mean, `kernels/scale` or `kernels/other`.", change.Effect{}},
		{"rebench what is busy", "write", "/rebench gemm", nil, "", false, "`gemm` is queued or being measured already.", change.Effect{}},
		{"rebench what is gone", "write", "/rebench gone", nil, "", false, "the kernel is gone", change.Effect{}},
		{"rebench the unknown", "write", "/rebench nothing", nil, "", false, "touches no kernel `nothing`. It touches `gemm`, `gone`, `scale (kernels/other)`, `scale`.", change.Effect{}},
		{"rebench nothing", "write", "/rebench", func(s *change.State) { s.Runs = nil }, "", false, "no kernel changed", change.Effect{}},
		{"rebench a fork", "write", "/rebench", fork, "", false, "waits for `/ok-to-test " + head + "`", change.Effect{}},
		{"rebench by mistaken rules", "write", "/rebench", func(s *change.State) { s.Plan.Problems = []gates.Diagnostic{{}} }, "", false, "has mistakes", change.Effect{}},
		{"profile nothing", "write", "/rebench profile", nil, "", false, "nothing to profile", change.Effect{}},
		{"a shape that is not there", "write", "/rebench kernels/scale shapes=huge", nil, "", false, "```text\nno shape '''huge'''\n```", change.Effect{}},
		{"an extra, named twice", "write", "/rebench kernels/gemm gemm vs=self", nil, "", true, "an extra", change.Effect{ExtraRuns: []change.ExtraRun{
			{Folder: "kernels/gemm", Bundle: "kernels/gemm rounds=0 vs=self", Rebench: grammar.Rebench{Kernels: []string{"kernels/gemm"}, Versus: grammar.Self}}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := answer.Decider{People: people{}, Planner: packer{}, Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }}
			seen := head
			if test.seen != "" {
				seen = test.seen
			}
			a, err := d.To(t.Context(), stateOf(test.bend), change.Command{Asked: change.Asked{ID: "comment-1", By: test.by, Request: grammar.Read(test.text), Head: seen, Base: "main", Rules: "rules"}})
			reply := words(test.text, a)
			if err != nil || a.ID != "comment-1" || a.OK != test.ok || !strings.Contains(reply, test.says) {
				t.Errorf("got %+v, %v; want %v and %q", a, err, test.ok, test.says)
			}
			if diff := cmp.Diff(test.effect, a.Effect); diff != "" {
				t.Error(diff)
			}
			if r, ok := grammar.Parse(reply); ok {
				t.Errorf("the reply commands %v", r)
			}
		})
	}
}

// words is an answer as people read it.
func words(text string, a change.Answered) string {
	return present.AnswerText(change.Command{Asked: change.Asked{Request: grammar.Read(text)}, Answered: true, Answer: a.Answer})
}

// A workflow measures anew, and all that it was asked for in the policy.
func TestAnswersOfAWorkflow(t *testing.T) {
	spent := errors.New("this commit was measured 6 times already")
	for _, test := range []struct {
		text  string
		spent error
		ok    bool
		says  string
	}{
		{"/rebench rounds=3", nil, true, "Measuring `gemm`, `gone`, `scale (kernels/other)`, `scale` from the start"},
		{"/rebench gemm", spent, false, "`scale`: this commit was measured 6 times already."},
		{"/rebench vs=self", nil, false, "write only kernels and `rounds`"},
		{"/rebench nothing", nil, false, "touches no kernel `nothing`"},
		{"/cancel", nil, false, "not available"},
		{"/help", nil, true, "Other commands need the bot"},
	} {
		d := answer.Decider{People: people{}, Spent: func(change.Run) error { return test.spent }, Now: time.Now}
		a, err := d.To(t.Context(), stateOf(nil), change.Command{Asked: change.Asked{By: "admin", Request: grammar.Read(test.text), Head: head, Base: "main"}})
		if err != nil || a.OK != test.ok || !strings.Contains(words(test.text, a), test.says) || !cmp.Equal(a.Effect, change.Effect{}) {
			t.Errorf("%s: got %+v, %v; want %v and %q", test.text, a, err, test.ok, test.says)
		}
	}
}

// A workflow without a kernel may be told to measure, which runs it again; of a named kernel it knows that it is not there.
func TestWorkflowWithoutKernels(t *testing.T) {
	for text, ok := range map[string]bool{"/rebench": true, "/rebench scale": false} {
		d := answer.Decider{People: people{}, Now: time.Now}
		a, err := d.To(t.Context(), stateOf(func(s *change.State) { s.Runs = nil }), change.Command{Asked: change.Asked{By: "admin", Request: grammar.Read(text), Head: head, Base: "main"}})
		if err != nil || a.OK != ok || a.Answer.Kind != change.AnswerNoKernel {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
}

// Where nobody can be asked, nothing is decided.
func TestNoAnswerWithoutARole(t *testing.T) {
	d := answer.Decider{People: people{}, Planner: packer{}, Now: time.Now}
	_, err := d.To(t.Context(), stateOf(nil), change.Command{Asked: change.Asked{By: "outage", Request: grammar.Read("/help")}})
	if err == nil || !strings.Contains(err.Error(), "answering /help by outage: GitHub is away") {
		t.Errorf("got %v", err)
	}
}
