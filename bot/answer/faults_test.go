package answer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

var errAway = errors.New("GitHub is away")

// broken is a planner that cannot pack anything.
type broken struct{}

func (broken) Rerun(context.Context, change.ID, change.Facts, planner.Rerun) (string, error) {
	return "", errAway
}

func (broken) Explain(context.Context, change.ID, change.Facts, planner.Rerun) (string, []string, error) {
	return "", nil, errAway
}

func (broken) Search(context.Context, change.ID, change.Facts, planner.Search) (string, error) {
	return "", errAway
}

// A fault is no answer: the command is decided on later.
func TestFaultsAreNoAnswers(t *testing.T) {
	for _, text := range []string{"/rebench kernels/scale", "/rebench kernels/scale vs=self", "/why kernels/scale", "/tune kernels/scale", "/bisect kernels/scale"} {
		d := answer.Decider{People: people{}, Planner: broken{}, Verdict: verdicts, Now: time.Now}
		a, err := d.To(t.Context(), stateOf(nil), change.Command{Asked: change.Asked{ID: "c", By: "admin", Request: grammar.Read(text), Head: head, Base: "main"}})
		if !errors.Is(err, errAway) || a.Answer.Kind != "" || a.OK || a.ID != "" {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	bad := stateOf(func(s *change.State) { s.Plan.Policy = "version: [" })
	d := answer.Decider{People: people{}, Planner: packer{}, Now: time.Now}
	if a, err := d.To(t.Context(), bad, change.Command{Asked: change.Asked{By: "admin", Request: grammar.Read("/help")}}); err == nil {
		t.Errorf("a policy that cannot be read: %+v", a)
	}
}

// What is no command is refused, and nobody is asked about it.
func TestNoCommand(t *testing.T) {
	d := answer.Decider{People: people{}, Planner: packer{}, Now: time.Now}
	a, err := d.To(t.Context(), stateOf(nil), change.Command{Asked: change.Asked{ID: "c", By: "outage"}})
	if err != nil || a.OK || a.ID != "c" || a.Answer.Kind != change.AnswerNoCommand {
		t.Errorf("%+v, %v", a, err)
	}
}

// Policy is the plan's, and none where there is none or it has mistakes.
func TestPolicy(t *testing.T) {
	const text = "version: 1\ncommands: {help: admin}\ngates: {}\nrules: [{name: default}]\n"
	for name, c := range map[string]struct {
		plan *change.Plan
		is   bool
	}{
		"no plan":             {nil, false},
		"no policy":           {&change.Plan{}, false},
		"a default one":       {&change.Plan{Policy: text, NoPolicy: true}, false},
		"one that was given ": {&change.Plan{Policy: text}, true},
	} {
		p, err := answer.Policy(&change.State{Plan: c.plan})
		if err != nil || (p != nil) != c.is {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	s := stateOf(func(s *change.State) { s.Plan.Policy = text })
	d := answer.Decider{People: people{}, Planner: packer{}, Now: time.Now}
	a, err := d.To(t.Context(), s, change.Command{Asked: change.Asked{By: "maintain", Request: grammar.Read("/help")}})
	if err != nil || a.OK || !strings.Contains(words("/help", a), "needs the role `admin`") {
		t.Errorf("the policy's commands do not count: %+v, %v", a, err)
	}
}

// A profile can be asked for where the rule of a kernel that is named has a profile gate.
func TestProfile(t *testing.T) {
	const text = `version: 1
gates: {}
rules:
  - name: profiled
    when: {labels: [x]}
    gates: {profile: {shapes: all, all: [{sm: "> 1"}]}}
  - name: default
`
	for _, c := range []struct {
		name, ask string
		rules     [2]string // of scale and of the other kernel of that name
		workflow  bool
		ok        bool
		says      string
	}{
		{"with a profile gate", "/rebench kernels/scale profile", [2]string{"profiled", "default"}, false, true, "Measuring again"},
		{"of another kernel", "/rebench kernels/other profile", [2]string{"profiled", "default"}, false, false, "nothing to profile"},
		{"of one of several", "/rebench kernels/scale kernels/other profile", [2]string{"default", "profiled"}, false, true, "Measuring again"},
		{"nowhere", "/rebench kernels/scale profile", [2]string{"default", "default"}, false, false, "nothing to profile"},
		{"in a workflow", "/rebench kernels/scale profile", [2]string{"profiled", "profiled"}, true, false, "write only kernels"},
	} {
		s := stateOf(func(s *change.State) {
			s.Plan.Policy = text
			s.Runs[0].Rule, s.Runs[1].Rule = c.rules[0], c.rules[1]
		})
		d := answer.Decider{People: people{}, Planner: packer{}, Now: time.Now}
		if c.workflow {
			d.Planner, d.Spent = nil, func(change.Run) error { return nil }
		}
		a, err := d.To(t.Context(), s, change.Command{Asked: change.Asked{By: "admin", Request: grammar.Read(c.ask), Head: head, Base: "main"}})
		if err != nil || a.OK != c.ok || !strings.Contains(words(c.ask, a), c.says) {
			t.Errorf("%s: %+v, %v", c.name, a, err)
		}
	}
}

// The reply says which verdicts stand whatever is measured now: those that rounds have decided.
func TestDecidedVerdictsAreNamed(t *testing.T) {
	for _, c := range []struct {
		name    string
		result  *change.Result
		decided bool
	}{
		{"too slow", &change.Result{Outcome: gates.Defer, Reason: gates.ReasonTooSlow, Attempt: 1}, true},
		{"passed", &change.Result{Outcome: gates.Pass, Attempt: 1}, true},
		{"not decided", &change.Result{Outcome: gates.Defer, Reason: gates.ReasonInconclusive, Attempt: 1}, false},
		{"before anything was timed", &change.Result{Outcome: gates.Defer, Reason: gates.ReasonBuild}, false},
		{"an error", &change.Result{Outcome: gates.Error, Attempt: 1}, false},
		{"no result", nil, false},
	} {
		s := stateOf(func(s *change.State) { s.Runs = s.Runs[:1]; s.Runs[0].Result = c.result })
		d := answer.Decider{People: people{}, Planner: packer{}, Now: time.Now}
		a, err := d.To(t.Context(), s, change.Command{Asked: change.Asked{By: "admin", Request: grammar.Read("/rebench"), Head: head, Base: "main"}})
		if err != nil || !a.OK || strings.Contains(words("/rebench", a), "already decided the verdict on `scale`") != c.decided || len(a.Answer.Busy) > 0 {
			t.Errorf("%s: %+v, %v", c.name, a, err)
		}
	}
}

// reviewers fail at one of the questions.
type reviewers struct {
	said
	fails string
}

func (r reviewers) fault(question string) error {
	if r.fails == question {
		return errAway
	}
	return nil
}

func (r reviewers) Reviews(context.Context, string, int) ([]client.Review, error) {
	return r.reviews, r.fault("reviews")
}
func (r reviewers) Retargeted(context.Context, string, int) (time.Time, error) {
	return r.moved, r.fault("retargeted")
}
func (r reviewers) Owners(context.Context, string, string, []string) ([][]string, error) {
	return r.owners, r.fault("owners")
}
func (r reviewers) Permission(context.Context, string, string) (policy.Role, error) {
	return "write", r.fault("permission")
}

func (r reviewers) Pushers(context.Context, string, int, string) ([]string, error) {
	return []string{"somebody"}, r.fault("pushers")
}

// Whatever cannot be asked about reviews is a fault, and no approval.
func TestReviewFaults(t *testing.T) {
	for _, fails := range []string{"reviews", "owners", "retargeted", "permission", "pushers", ""} {
		r := reviewers{said{reviews: []client.Review{{ID: 1, Author: "write", State: client.Approved, SHA: head, At: time.Unix(60, 0)}}, owners: [][]string{{"write"}}}, fails}
		s := stateOf(func(s *change.State) { loosens(s); s.Plan.RuleChange.Files = []string{"policy.yaml"} })
		given, err := answer.Decider{People: r, Now: time.Now}.RulesByReview(t.Context(), s, r, r)
		if fails == "" && (err != nil || given == nil || !slices.Equal(given.Reviews, []int64{1})) || fails != "" && (!errors.Is(err, errAway) || given != nil) {
			t.Errorf("%q fails: %+v, %v", fails, given, err)
		}
	}
}
