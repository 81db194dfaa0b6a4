package present

import (
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// hostile are words that want to act.
var hostile = []string{
	"plain words", "@octocat", "-->", "<!-- kernelgate:pr-7-12 -->", "a|b|c", "</details>", "<script>alert(1)</script>", "`", "```\n# out", "~~~",
	"\n\n## heading", "\n/rebench all", "#12", "GH-3", "https://example.com/x", "www.example.com", "[a](b)", "![i](u)", "&#64;octocat", "\\", "$x$", "*b* _i_",
	"\u202eright", "\x00\x07", "\xff\xfe", ":100:", "- item", "1. item", "", strings.Repeat("wide | load @all ", 60),
}

// A dice tells a story of anything that can happen, in any order.
type dice struct {
	*rand.Rand
	verdicts []*gates.Verdict
}

func (d dice) word() string {
	return hostile[d.IntN(len(hostile))] + hostile[d.IntN(len(hostile))]
}

func (d dice) maybe(one, of int) bool { return d.IntN(of) < one }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

func (d dice) story(t testing.TB) *story {
	s := tellOf(t, pick(d, change.ID{Kind: change.Pull, Repo: 7, Number: 12}, change.ID{Kind: change.Pull, Repo: 7, Number: 12}, change.ID{Kind: change.Group, Repo: 7, SHA: sha1}))
	s.view.Buttons = d.maybe(4, 5)
	s.seen(func(f *change.Facts) { f.Fork = d.maybe(1, 6) })
	for range d.IntN(25) {
		s.do(d.event(s))
		for _, r := range slices.Concat(s.state.Runs, s.state.ExtraRuns) {
			if d.maybe(1, 2) && s.view.Verdicts[r.Job] == nil && r.Result != nil {
				s.view.Verdicts[r.Job] = d.verdict(r.Name, r.Result.Outcome)
			}
			if d.maybe(1, 3) {
				s.view.Progress[r.Job] = runners.LogEntry{Event: runners.Event{Gate: gates.Gate(d.word()), Text: d.word(), Done: d.IntN(9), Total: d.IntN(9), Unit: d.word(), Detail: d.word(), Left: runners.Seconds(d.Int64N(1e4))}, At: s.at}
			}
			if d.maybe(1, 3) {
				s.view.Tried[r.Folder] = append(s.view.Tried[r.Folder], change.Tried{Number: d.IntN(99), Title: d.word(), Outcome: gates.Defer, Reason: gates.ReasonTooSlow, Line: d.word(), At: s.at})
			}
		}
	}
	return s
}

func (d dice) verdict(kernel string, outcome gates.Outcome) *gates.Verdict {
	v := *d.verdicts[d.IntN(len(d.verdicts))]
	v.Kernel, v.Outcome, v.Summary = kernel, outcome, d.word()
	v.ToPass, v.Notes = []string{d.word(), d.word()}, []string{d.word()}
	many := 3
	if d.maybe(1, 40) {
		many = maxAnnotations + 50
	}
	for range d.IntN(many) {
		v.Findings = append(v.Findings, gates.Diagnostic{File: pick(d, "k.cu", d.word(), "../x.h"), Line: d.IntN(5), Severity: pick(d, "error", "warning", d.word()), Message: d.word()})
	}
	return &v
}

func (d dice) event(s *story) change.Event {
	head := pick(d, sha1, sha1, sha2)
	job := "none"
	if runs := slices.Concat(s.state.Runs, s.state.ExtraRuns); len(runs) > 0 {
		job = runs[d.IntN(len(runs))].Job
	}
	switch d.IntN(9) {
	case 0:
		f := facts(head)
		f.Title, f.Fork, f.Open, f.Merged, f.Base = pick(d, "t", d.word()), d.maybe(1, 4), d.maybe(5, 6), d.maybe(1, 4), pick(d, "main", d.word())
		return change.Seen{Facts: f}
	case 1, 2:
		p := change.Plan{Key: s.state.Facts.PlanKey(), Head: s.state.Facts.Head, Base: base, Check: pick(d, "kernelgate", "gpu"), PolicyFile: d.word(), NoPolicy: d.maybe(1, 6), Forks: pick(d, "never", "")}
		for range d.IntN(2) * d.IntN(2) * d.IntN(40) {
			p.Problems = append(p.Problems, gates.Diagnostic{File: d.word(), Line: d.IntN(5), Message: d.word()})
		}
		for i := range pick(d, 0, 1, 1, 1, 2, 2, 3, 3, 9) {
			k := change.Kernel{KernelSpec: change.KernelSpec{Name: fmt.Sprintf("k%d%s", i, d.word()), Folder: fmt.Sprintf("f%d/%s", i, d.word()), Rule: d.word(), Labels: []string{d.word(), d.word()}}, Reused: d.maybe(1, 2)}
			if d.maybe(1, 4) {
				k.Result = d.result()
			}
			p.Kernels = append(p.Kernels, k)
		}
		return change.Planned{Plan: p}
	case 3:
		return change.Asked{ID: fmt.Sprint("comment-", d.IntN(20)), By: d.word(), Request: grammar.Read(d.word())}
	case 4:
		e := change.Answered{ID: fmt.Sprint("comment-", d.IntN(20)), OK: d.maybe(1, 2), Answer: change.Answer{Kind: change.AnswerCannotServe, Quote: d.word()}}
		folder := "none"
		if len(s.state.Runs) > 0 {
			folder = s.state.Runs[d.IntN(len(s.state.Runs))].Folder
		}
		e.Effect = pick(d, change.Effect{Approve: &change.ForkApproved{For: given(head), By: d.word()}}, change.Effect{Cancel: head}, change.Effect{Override: &change.Override{For: given(head), By: d.word(), Reason: d.word(), At: d.word()}},
			change.Effect{Rebench: []change.Rerun{{Folder: folder}}}, change.Effect{ExtraRuns: []change.ExtraRun{{Folder: folder, Rebench: grammar.Rebench{Versus: d.word(), Shapes: []string{d.word()}}}}})
		return e
	case 5:
		return change.Started{Job: job, Token: s.state.Seq, Runner: d.word()}
	case 8:
		posted := map[string]change.Posted{}
		for _, c := range Checks(s.view) {
			posted[change.CheckKey(c.Name, c.HeadSHA)] = change.Posted{ID: 1, Digest: c.Digest, Done: c.Status == completed}
		}
		return change.Published{Checks: posted, Comment: &change.Posted{ID: int64(d.IntN(2))}}
	}
	return change.Finished{Job: job, Token: s.state.Seq, Runner: d.word(), Result: *d.result()}
}

func (d dice) result() *change.Result {
	return &change.Result{Outcome: pick(d, gates.Pass, gates.Pass, gates.Pass, gates.Defer, gates.Error, gates.Outcome("MAYBE")), Reason: pick(d, "", gates.ReasonTooSlow, gates.ReasonRunner), Line: d.word(), Device: d.word()}
}

// Whatever happens, what is shown is within GitHub's limits, is never better
// than the facts, and does nothing but show.
func TestAnyStoryIsShown(t *testing.T) {
	pool := []*gates.Verdict{judge(t, "spills", nil), judge(t, "broken", nil), {}}
	commented := 0
	for seed := range uint64(25) {
		d := dice{rand.New(rand.NewPCG(seed, 1)), pool}
		s := d.story(t)
		checks, comment := Checks(s.view), Comment(s.view)
		if diff := cmp.Diff(checks, Checks(s.view)); diff != "" || comment != Comment(s.view) {
			t.Fatalf("seed %d: shown twice, it differs: %s", seed, diff)
		}
		checkLimits(t, checks)
		checkHonest(t, s, checks)
		checkSteady(t, s.view, checks)
		for _, c := range checks {
			checkInert(t, c.Summary)
			checkInert(t, c.Text)
		}
		if comment == "" {
			continue
		}
		commented++
		rest, ok := strings.CutPrefix(comment, Marker(s.state.ID)+"\n")
		if !ok || len(comment) > maxComment || !utf8.ValidString(comment) {
			t.Fatalf("seed %d: the comment is %d bytes and begins with %.60q", seed, len(comment), comment)
		}
		checkInert(t, rest)
		if r, found := grammar.Parse(comment); found {
			t.Fatalf("seed %d: the comment commands: %v", seed, r)
		}
		for _, c := range s.state.Commands {
			if text := s.view.Reply(c); text != "" {
				checkInert(t, strings.TrimPrefix(text, ReplyMarker(c.ID)+"\n> "))
			}
		}
	}
	if commented < 10 {
		t.Errorf("%d stories had comments: too few to tell", commented)
	}
}

func checkLimits(t *testing.T, checks []Check) {
	t.Helper()
	names := map[string]bool{}
	for _, c := range checks {
		key := change.CheckKey(c.Name, c.HeadSHA)
		if names[key] || c.HeadSHA == "" {
			t.Fatalf("two checks of one name, or of no commit: %q", key)
		}
		names[key] = true
		allowed := []string{""}
		if c.Status == completed {
			allowed = []string{success, failure, actionRequired, cancelled}
		}
		if !slices.Contains([]string{queued, inProgress, completed}, c.Status) || !slices.Contains(allowed, c.Conclusion) {
			t.Fatalf("%q is %q, %q", key, c.Status, c.Conclusion)
		}
		state, description := c.CommitStatus()
		if n := utf8.RuneCountInString(c.Title); n == 0 || n > titleRunes || c.Summary == "" || len(c.Summary) > maxOutput || len(c.Text) > maxOutput || utf8.RuneCountInString(description) > 140 {
			t.Fatalf("%q: title %q, summary of %d, text of %d bytes, status %q", key, c.Title, len(c.Summary), len(c.Text), description)
		}
		if (state == "success") != (c.Conclusion == success) {
			t.Fatalf("%q concludes %q as a check and %q as a status", key, c.Conclusion, state)
		}
		if len(c.Actions) > 3 || len(c.Actions) > 0 && c.Status != completed || len(c.Annotations) > maxAnnotations {
			t.Fatalf("%q has %d buttons and %d annotations", key, len(c.Actions), len(c.Annotations))
		}
		for _, a := range c.Actions {
			if len(a.Label) > 20 || len(a.Identifier) > 20 || len(a.Description) > 40 {
				t.Fatalf("a button is too long: %+v", a)
			}
		}
		for _, a := range c.Annotations {
			if a.Path == "" || strings.HasPrefix(a.Path, "/") || strings.HasPrefix(a.Path, "..") || a.StartLine < 1 || a.Message == "" || !slices.Contains([]string{"failure", "warning", "notice"}, a.Level) {
				t.Fatalf("an annotation that GitHub refuses: %+v", a)
			}
		}
	}
}

// checkHonest asks the state, not the package, whether a success is earned.
func checkHonest(t *testing.T, s *story, checks []Check) {
	t.Helper()
	st := s.state
	plan := st.Plan
	for _, c := range checks {
		if c.Conclusion != success {
			continue
		}
		if c.HeadSHA != st.Facts.Head {
			t.Fatalf("%q of an earlier head is a success", c.Name)
		}
		excused := plan != nil && plan.Head == st.Facts.Head && plan.NoPolicy
		i := slices.IndexFunc(st.Runs, func(r change.Run) bool { return externalID(st.ID, r.Key()) == c.ExternalID })
		if i >= 0 {
			if r := st.Runs[i]; r.Phase != change.Done || r.Result.Outcome != gates.Pass && !excused {
				t.Fatalf("%q is a success, but its run is %s with %+v", c.Name, r.Phase, r.Result)
			}
			continue
		}
		if st.Overridden() != nil {
			continue
		}
		proven := plan != nil && plan.Head == st.Facts.Head && len(plan.Problems) == 0 && !slices.ContainsFunc(st.Runs, func(r change.Run) bool {
			return r.Phase != change.Done || r.Result.Outcome != gates.Pass
		})
		if !proven && !excused {
			t.Fatalf("%q is a success (%s) with plan %+v and runs %+v", c.Name, c.Title, plan, st.Runs)
		}
	}
}

// checkSteady wants digests that neither progress nor publishing changes.
func checkSteady(t *testing.T, v View, checks []Check) {
	t.Helper()
	later := v
	later.State = v.State.Clone()
	later.Progress, later.Now = map[string]runners.LogEntry{}, v.Now.Add(time.Hour)
	posted := map[string]change.Posted{}
	for _, c := range checks {
		posted[change.CheckKey(c.Name, c.HeadSHA)] = change.Posted{ID: 9, Digest: c.Digest, Done: c.Status == completed}
	}
	e := change.Published{Checks: posted, Complete: true}
	if before := CommentDigest(v); before != "" {
		e.Comment = &change.Posted{ID: 5, Digest: before}
	}
	later.State.Apply(v.State.Seq+1, v.Now, e)
	if CommentDigest(later) != CommentDigest(v) {
		t.Fatal("the comment's digest changes when it is published")
	}
	after := Checks(later)
	for i, c := range checks {
		if i < len(after) && after[i].Digest != c.Digest {
			t.Fatalf("the digest of %q changes when it is published", c.Name)
		}
		if i >= len(after) && c.Conclusion != cancelled {
			t.Fatalf("%q is gone once it is published", c.Name)
		}
	}
}

var (
	fences  = regexp.MustCompile("(?s)```text\n.*?\n```\n")
	pres    = regexp.MustCompile(`(?s)<pre>\n.*?\n</pre>`)
	codes   = regexp.MustCompile(`<code>[^<]*</code>`)
	spans   = regexp.MustCompile("`[^`\n]+`")
	ownTags = regexp.MustCompile(`</?(details|summary|b)>`)
	folds   = regexp.MustCompile(`<summary>.*</summary>`)
	pulls   = regexp.MustCompile(`in #[0-9]+ \(`)
	escaped = regexp.MustCompile("\\\\([!-/:-@\\[-`{-~])")
	markup  = regexp.MustCompile("[<>`$]|(^|[^\\\\])\\[|[\\x00-\\x09\\x0b-\\x1f\\x7f\\x{202e}]")
	active  = regexp.MustCompile(`@[A-Za-z0-9]|#[0-9]|(?i:gh-[0-9])|://|(?i:www\.)|:[A-Za-z0-9_+-]+:`)
)

// checkInert fails where text could act: as a tag, a hidden comment, a mention,
// a reference or a link, or by breaking out of a table.
func checkInert(t *testing.T, md string) {
	t.Helper()
	if strings.Contains(md, "-->") || strings.Contains(md, "<!--") {
		t.Fatalf("a hidden comment can be opened or closed:\n%s", md)
	}
	if strings.Count(md, "<details>") != strings.Count(md, "</details>") {
		t.Fatalf("details are not closed:\n%s", md)
	}
	bare := pres.ReplaceAllString(fences.ReplaceAllString(md, ""), "")
	bare = codes.ReplaceAllString(bare, "code")
	cells := 0
	for line := range strings.Lines(bare) {
		if !strings.HasPrefix(line, "| ") {
			cells = 0
			continue
		}
		n := strings.Count(line, "|")
		if cells != 0 && n != cells || !strings.HasSuffix(line, "|\n") {
			t.Fatalf("a row has %d bars instead of %d: %s", n, cells, line)
		}
		cells = n
	}
	// A summary stands in a block of HTML, where Markdown does nothing: mentions and
	// references are all that is looked for in it.
	bare = folds.ReplaceAllStringFunc(bare, func(s string) string {
		return strings.NewReplacer("`", "", "$", "", "[", "", ".", "").Replace(s)
	})
	bare = strings.NewReplacer(`\\`, "⧵", "\\`", "ˋ").Replace(bare)
	bare = ownTags.ReplaceAllString(spans.ReplaceAllString(bare, "code"), "")
	if at := markup.FindStringIndex(bare); at != nil {
		t.Fatalf("markup is active: …%q…", bare[max(0, at[0]-60):min(len(bare), at[1]+60)])
	}
	seen := html.UnescapeString(escaped.ReplaceAllString(pulls.ReplaceAllString(bare, ""), "$1"))
	if at := active.FindStringIndex(seen); at != nil {
		t.Fatalf("it acts: …%q…", seen[max(0, at[0]-60):min(len(seen), at[1]+60)])
	}
}
