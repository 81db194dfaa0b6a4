package present

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no golden file (go test ./bot/present -update writes it): %v", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-golden +got; -update accepts):\n%s", path, diff)
	}
}

// dump is checks as a reader of a golden file wants them.
func dump(checks []Check) string {
	var b strings.Builder
	for _, c := range checks {
		state, description := c.CommitStatus()
		fmt.Fprintf(&b, "==== %s @ %s (%s)\n%s %s: %s\nas a status: %s: %s\n", c.Name, c.HeadSHA[:6], c.ExternalID, c.Status, c.Conclusion, c.Title, state, description)
		if c.DetailsURL != "" {
			fmt.Fprintf(&b, "leads to %s\n", c.DetailsURL)
		}
		if !c.StartedAt.IsZero() {
			fmt.Fprintf(&b, "started %s", c.StartedAt.Format(time.TimeOnly))
			if !c.CompletedAt.IsZero() {
				fmt.Fprintf(&b, ", completed %s", c.CompletedAt.Format(time.TimeOnly))
			}
			b.WriteByte('\n')
		}
		for _, a := range c.Actions {
			fmt.Fprintf(&b, "button %s: %s (%s)\n", a.Identifier, a.Label, a.Description)
		}
		for _, a := range c.Annotations {
			fmt.Fprintf(&b, "annotation %s:%d-%d %s: %s: %s\n", a.Path, a.StartLine, a.EndLine, a.Level, a.Title, a.Message)
		}
		fmt.Fprintf(&b, "---- summary\n%s", c.Summary)
		if c.Text != "" {
			fmt.Fprintf(&b, "---- text\n%s", c.Text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	pass, slow, broken, spills := judge(t, "stage1", nil), judge(t, "stage3a", nil), judge(t, "broken", nil), judge(t, "spills", nil)
	noBuild := judge(t, "stage1", unbuilt)
	fault := judge(t, "stage1", func(e *gates.Evidence) { e.Fault = "the GPU fell off the bus (Xid 79)" })

	stories := map[string]*story{
		"reading":     tell(t).seen(nil),
		"no-kernel":   tell(t).seen(nil).planned(nil),
		"no-kernel-2": tell(t).seen(nil).planned(nil, "sdpa_fp8").started("sdpa_fp8").push(sha2).planned(nil),
		"queued":      tell(t).seen(nil).planned(func(p *change.Plan) { p.Kernels[0].Labels = []string{"l4", "a100"} }, "sdpa_fp8"),
		"pass":        tell(t).seen(nil).planned(nil, "sdpa_fp8").started("sdpa_fp8").finished("sdpa_fp8", pass),
		"defer-build": tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", noBuild),
		"defer-spill": tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", spills),
		"error":       tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", fault),
		"several": tell(t).seen(nil).planned(nil, "sdpa_fp8", "sdpa_long", "gemm_fp8").
			finished("sdpa_fp8", pass).finished("sdpa_long", broken).finished("gemm_fp8", fault),
		"all-pass": tell(t).seen(nil).planned(nil, "sdpa_fp8", "gemm_fp8").finished("sdpa_fp8", pass).finished("gemm_fp8", pass),
		"no-policy": tell(t).seen(nil).planned(func(p *change.Plan) { p.NoPolicy = true }, "sdpa_fp8").
			started("sdpa_fp8").finished("sdpa_fp8", slow),
		"mistakes": tell(t).seen(nil).planned(func(p *change.Plan) {
			p.Problems = []gates.Diagnostic{{File: ".github/kernelgate.yaml", Line: 12, Message: "gates.ptxas.registers: \"many\" is not a number (write e.g. 128)"},
				{File: "kernels/sdpa_fp8/kernel.yaml", Message: "is missing"}}
		}),
		"fork":           tell(t).seen(func(f *change.Facts) { f.Fork = true }).planned(nil, "sdpa_fp8", "gemm_fp8"),
		"fork-never":     tell(t).seen(func(f *change.Facts) { f.Fork = true }).planned(func(p *change.Plan) { p.Forks = "never" }, "sdpa_fp8"),
		"cancelled":      tell(t).seen(nil).planned(nil, "sdpa_fp8").started("sdpa_fp8").commanded("comment-1", "ada", "/cancel", true, change.Effect{Cancel: sha1}),
		"closed":         tell(t).seen(nil).planned(nil, "sdpa_fp8").started("sdpa_fp8").seen(func(f *change.Facts) { f.Open = false }),
		"closed-bare":    tell(t).seen(func(f *change.Facts) { f.Open = false }),
		"merge-group":    tellOf(t, change.ID{Kind: change.Group, Repo: 7, SHA: sha1}).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", slow),
		"push":           tellOf(t, change.ID{Kind: change.Push, Repo: 7, SHA: sha1}).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", slow),
		"rules":          tell(t).seen(nil).planned(rules(true)),
		"rules-tighten":  tell(t).seen(nil).planned(rules(false)),
		"rules-pass":     tell(t).seen(nil).planned(rules(true), "sdpa_fp8").finished("sdpa_fp8", pass),
		"rules-defer":    tell(t).seen(nil).planned(rules(true), "sdpa_fp8").finished("sdpa_fp8", slow),
		"rules-running":  tell(t).seen(nil).planned(rules(true), "sdpa_fp8").started("sdpa_fp8"),
		"rules-approved": tell(t).seen(nil).planned(rules(true), "sdpa_fp8").finished("sdpa_fp8", pass).commanded("comment-5", "grace", "/approve-policy "+sha1, true, approvedBy("grace", "d")),
		"rules-other":    tell(t).seen(nil).planned(rules(true)).commanded("comment-5", "grace", "/approve-policy "+sha1, true, approvedBy("grace", "of other rules")),
		"rules-group":    tellOf(t, change.ID{Kind: change.Group, Repo: 7, SHA: sha1}).seen(nil).planned(rules(true)),
		"shadow":         tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", enforced(slow, policy.EnforceShadow)),
		"warn-several":   tell(t).seen(nil).planned(nil, "sdpa_fp8", "gemm_fp8").finished("sdpa_fp8", enforced(broken, policy.EnforceWarn)).finished("gemm_fp8", pass),
		"running":        running(t),
		"overridden":     overridden(t, slow),
		"history":        history(t, slow, pass),
		"beside":         beside(t, pass, broken),
		"pages":          tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", slow).shown(true),
		"pages-several":  tell(t).seen(nil).planned(nil, "sdpa_fp8", "gemm_fp8").finished("sdpa_fp8", slow).finished("gemm_fp8", pass).shown(false),
	}
	maps.Copy(stories, kindsOfVerdict(t))
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".txt", dump(Checks(s.view)))
			if text := Comment(s.view); text != "" {
				golden(t, name+".md", text)
			} else if _, err := os.Stat(filepath.Join("testdata", name+".md")); err == nil {
				t.Error("there is a golden comment, but no comment")
			}
		})
	}
}

// rules is a plan that finds a change of the rules; what people wrote in them acts on
// nobody.
func rules(loosens bool) func(*change.Plan) {
	difference := func(file, path, old, is string, d compare.Direction) change.RuleDifference {
		return change.RuleDifference{File: file, Difference: compare.Difference{Path: path, Old: old, New: is, Direction: d}}
	}
	return func(p *change.Plan) {
		p.RuleChange = &change.RuleChange{Loosens: loosens, Digest: "d", Judged: 7}
		if loosens {
			p.RuleChange.Differences = []change.RuleDifference{
				difference(".github/kernelgate.yaml", "rules[default].gates.performance.target.speedup", ">= +10%", ">= +1%", compare.Loosens),
				difference("kernels/sdpa_fp8/kernel.yaml", "tolerance.abs", "0.06", "0.6", compare.Loosens),
				difference(".github/kernelgate.yaml", "rules[@octocat].when", "labels a|b", "labels `<b>`\n/approve-policy", compare.Changes),
			}
			p.RuleChange.More = 3
			p.RuleChange.Past = []change.PastVerdict{{Kernel: "sdpa_fp8", Change: change.ID{Kind: change.Pull, Number: 9}, Head: sha2, Old: change.Judgement{Outcome: gates.Defer, Reason: "too-slow"}, New: change.Judgement{Outcome: gates.Pass}, Why: "Proven: speedup +3.1 % on mission"},
				{Kernel: "gemm|fp8", Change: change.ID{Kind: change.Pull, Number: 8}, Head: sha2, Old: change.Judgement{Outcome: gates.Defer, Reason: "regression"}, New: change.Judgement{Outcome: gates.Defer, Reason: "regression", Enforce: "shadow"}, Why: "Slower | @octocat"}}
			p.RuleChange.Lacking = []change.PastVerdict{{Kernel: "sdpa_fp8", Change: change.ID{Kind: change.Push}, Head: sha1, Old: change.Judgement{Outcome: gates.Pass}, New: change.Judgement{Outcome: gates.Defer, Reason: "inconclusive"}, Why: "6 rounds are there, and it decides after 8 at the earliest"}}
			p.RuleChange.Unjudged, p.RuleChange.OldSeconds, p.RuleChange.NewSeconds = 2, 3.25, 4.5
		}
		p.RuleChange.Differences = append(p.RuleChange.Differences,
			difference(".github/kernelgate.yaml", "rules[*].gates.correctness.seeds", "0, 1", "0, 1, 2", compare.Tightens))
	}
}

// given is what a decision on a head holds for, by plans without rules.
func given(head string) change.Scope { return change.NewScope(head, "main", "") }

func approvedBy(who, digest string) change.Effect {
	return change.Effect{ApproveRules: &change.RulesApproved{For: given(sha1), By: who, At: "2025-03-14T10:30:00Z", Digest: digest}}
}

func running(t testing.TB) *story {
	s := tell(t).seen(nil).planned(nil, "sdpa_fp8", "gemm_fp8").started("sdpa_fp8")
	s.view.Runners[0].Busy = true
	s.view.Progress[s.job("sdpa_fp8")] = runners.LogEntry{Event: runners.Event{Gate: "performance", Text: "mission", Done: 3, Total: 20, Unit: "rounds",
		Detail: "+15.9 % [+14.1 %, +17.6 %]", Left: 95}, At: s.at.Add(-5 * time.Second)}
	return s
}

// beside passes by itself, and has the head of one that does not.
func beside(t testing.TB, pass, broken *gates.Verdict) *story {
	s := tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", pass)
	for number, v := range map[int]*gates.Verdict{9: pass, 10: broken} {
		id := s.state.ID
		id.Number = number
		s.view.Beside = append(s.view.Beside, BesideOf(tellOf(t, id).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", v).view))
	}
	return s
}

func overridden(t testing.TB, slow *gates.Verdict) *story {
	s := tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", slow)
	return s.commanded("comment-5", "grace", "/override needed for the release | <b>now</b>", true, change.Effect{Override: &change.Override{
		For: given(sha1), By: "grace", Reason: "needed for the release | <b>now</b>, says @octocat -->", At: "2025-03-14T10:30:00Z"}})
}

// history has a first head that was superseded while it ran, a second attempt,
// and extras.
func history(t testing.TB, slow, pass *gates.Verdict) *story {
	s := tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", slow)
	s.do(change.Published{Checks: map[string]change.Posted{"kernelgate@" + sha1: {ID: 1, Done: true}}})
	s.push(sha2).planned(nil, "sdpa_fp8").started("sdpa_fp8")
	s.do(change.Published{Checks: map[string]change.Posted{"kernelgate@" + sha2: {ID: 2}, "kernelgate / sdpa_fp8@" + sha2: {ID: 3}}})
	s.push(strings.Repeat("d4", 20)).planned(nil, "sdpa_fp8").finished("sdpa_fp8", slow)
	s.commanded("comment-8", "ada", "Once more, please.\n\n/rebench sdpa_fp8 rounds=40", true, change.Effect{Rebench: []change.Rerun{{Folder: "kernels/sdpa_fp8", Bundle: "b2"}}})
	s.finished("sdpa_fp8", slow)
	s.commanded("comment-9", "mallory", "/override `|` @everyone", false, change.Effect{})
	s.commanded("button-0f3a", "ada", "/rebench vs=self", true, change.Effect{ExtraRuns: []change.ExtraRun{{Folder: "kernels/sdpa_fp8", Bundle: "b3", Rebench: grammar.Rebench{Versus: grammar.Self}}}})
	s.finishedJob(s.state.ExtraRuns[0].Job, "sdpa_fp8", pass)
	s.do(change.Asked{ID: "comment-10", By: "ada", Request: grammar.Read("/rebench vs=v1.0 shapes=long")})
	s.view.Tried["kernels/sdpa_fp8"] = []change.Tried{{Number: 4, Title: "Reuse the score buffer | @octocat", Outcome: gates.Defer, Reason: gates.ReasonTooSlow,
		Line: "DEFER (too-slow) sdpa_fp8: +0.16 % on mission, goal ≥ +10 %", At: time.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC)}}
	return s
}

func TestReply(t *testing.T) {
	var b strings.Builder
	for _, c := range []change.Command{
		{Asked: change.Asked{ID: "comment-77", By: "ada", Request: grammar.Read("Looks better now.\n> /cancel\n\n/rebench   sdpa_fp8 rounds=20")}, Answered: true, OK: true, Answer: change.Answer{Kind: change.AnswerMoreRounds}},
		{Asked: change.Asked{ID: "x --><b>", By: "mallory", Request: grammar.Read("/rebanch `a|b` --> <script>@everyone")}, Answered: true, Answer: change.Answer{Kind: change.AnswerMisread}},
	} {
		fmt.Fprintf(&b, "%s====\n", View{State: &change.State{}}.Reply(c))
	}
	golden(t, "replies.md", b.String())
	if text := (View{State: &change.State{}}).Reply(change.Command{}); text != "" {
		t.Errorf("a command that nobody answered has a reply: %q", text)
	}
	long := View{State: &change.State{}}.Reply(change.Command{Asked: change.Asked{ID: "comment-1", Request: grammar.Read("/help")}, Answered: true, Answer: change.Answer{Kind: change.AnswerCannotServe, Quote: strings.Repeat("many words\n", 10_000)}})
	if len(long) > maxComment || !strings.Contains(long, "```\n\nShortened") {
		t.Errorf("a long reply is %d bytes and ends with %q", len(long), long[len(long)-100:])
	}
}
