package present

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Checks is every check that should exist: the required one first, then one for each
// kernel that has something of its own to say, then those whose conclusion does not hold any more,
// then those of earlier heads that nobody has concluded yet. A push and a sweep have none.
func Checks(v View) []Check {
	all, still := v.checks(), v.still().checks()
	for i := range all {
		all[i].Digest = still[i].digest()
	}
	return all
}

func (v View) checks() []Check {
	s := v.State
	if s.ID.Kind.OnMain() || s.Facts.Head == "" {
		return nil
	}
	var all []Check
	// Nobody asks for a check on what was closed before it was looked at.
	if s.Facts.Open || v.plan() != nil || v.posted(v.checkName()) {
		closed := !s.Facts.Open && len(v.Beside) > 0 // it is the other's from now on
		unplanned := v.plan() == nil && v.answeredBy() != nil
		if !closed && !unplanned {
			all = append(all, v.aggregate())
		}
		for _, r := range s.Runs {
			if c := v.kernelCheck(r); c.Status == completed || v.Workflow || v.posted(c.Name) {
				all = append(all, c) // while it is measured for the first time, the required check tells of it
			}
		}
		all = append(all, v.retracted(all)...)
	}
	return append(all, v.leftBehind(all)...)
}

func (v View) posted(name string) bool {
	_, ok := v.State.Checks[change.CheckKey(name, v.State.Facts.Head)]
	return ok
}

func (v View) aggregate() Check {
	s, at := v.State, v.overall()
	c := Check{Check: client.Check{
		Name: v.checkName(), HeadSHA: s.Facts.Head, ExternalID: externalID(s.ID, change.KernelKey{}), DetailsURL: v.RunURL,
		Status: at.status, Conclusion: at.conclusion, Title: at.title,
	}, State: at.state()}
	for _, r := range s.Runs {
		if c.StartedAt.IsZero() || r.Asked.Before(c.StartedAt) {
			c.StartedAt = r.Asked
		}
		if at.status == completed && r.Ended.After(c.CompletedAt) {
			c.CompletedAt = r.Ended
		}
	}
	c.Summary = joined(at.whole(), v.body(at), v.foot())
	p := v.plan()
	if p == nil {
		c.Mark = "unplanned"
	} else {
		c.Annotations = problemAnnotations(p.Problems)
	}
	if at.status != completed && slices.ContainsFunc(s.Runs, func(r change.Run) bool { return r.Phase == change.Queued && r.Compiled != nil }) {
		c.Mark = "built" // it waits for somebody else than before, and nobody may come for long
	}
	c.Actions = v.actions(c)
	return c
}

func (v View) kernelCheck(r change.Run) Check {
	s, at := v.State, v.ofRun(r)
	c := Check{Check: client.Check{
		Name: v.checkName() + " / " + report.Clip(report.Plain(r.Name), nameRunes), HeadSHA: s.Facts.Head, ExternalID: externalID(s.ID, r.Key()),
		DetailsURL: cmp.Or(v.Pages[r.Job].URL, v.RunURL), Status: at.status, Conclusion: at.conclusion, Title: at.title, StartedAt: r.Begun,
	}, State: at.state()}
	if at.status == completed {
		c.CompletedAt = r.Ended
	}
	var annotated string
	c.Annotations, annotated = v.annotations(r)
	c.Text = joined(annotated, v.tried([]change.Run{r}), v.attempts(r))
	c.Summary = joined(at.whole(), at.lead, v.reportOf(r, report.Whole, maxOutput-outsideReport), v.again(r), v.about(r))
	c.Actions = v.actions(c)
	return c
}

// outsideReport is room for what stands around a report in a summary.
const outsideReport = 12_000

// actions are the buttons, which GitHub shows on completed checks alone.
func (v View) actions(c Check) []client.Action {
	s := v.State
	if c.Status != completed || !v.Buttons || s.ID.Kind != change.Pull || !s.Facts.Open || len(s.Runs) == 0 || s.Held() {
		return nil
	}
	return []client.Action{
		{Label: "Rebench", Description: "Measure again; add to the evidence", Identifier: "rebench"},
		{Label: "Explain", Description: "Show which rule applies, what it asks", Identifier: "explain"},
	}
}

// leftBehind concludes the checks that GitHub still shows as unfinished and that
// nobody works at any more, and those of the head whose conclusion was for a different base or different rules.
func (v View) leftBehind(wanted []Check) []Check {
	s := v.State
	keep := map[string]bool{}
	for _, c := range wanted {
		keep[change.CheckKey(c.Name, c.HeadSHA)] = true
	}
	var out []Check
	for _, key := range slices.Sorted(maps.Keys(s.Checks)) {
		at := strings.LastIndex(key, "@")
		if at < 0 || keep[key] || s.Checks[key].Done && !v.voids(s.Checks[key], key[at+1:]) {
			continue
		}
		c := Check{Check: client.Check{
			Name: key[:at], HeadSHA: key[at+1:], ExternalID: externalID(s.ID, change.KernelKey{}), DetailsURL: v.RunURL, Status: completed, Conclusion: cancelled,
		}, State: "error"}
		switch {
		case c.HeadSHA != s.Facts.Head:
			c.Title = "Superseded by " + report.Short(s.Facts.Head)
			c.Summary = "There is a newer commit: " + report.EscapeCode(s.Facts.Head) + ". The history has what was measured for this one.\n"
		case !s.Facts.Open:
			c.Title = closedTitle(s)
			c.Summary = "Nothing is measured any more.\n"
		default:
			c.Title = "No longer part of this change"
			c.Summary = "The change was planned again, and the new plan does not have this check.\n"
		}
		out = append(out, c)
	}
	return out
}

// voids tells whether a concluded check of the head does not hold for the base and the rules as they are.
func (v View) voids(c change.Posted, sha string) bool {
	now, known := v.State.Scope()
	return v.State.Facts.Open && sha == v.State.Facts.Head && known && c.For != now
}

// digest is of all that is worth a write of its own. What an unfinished check says
// beside its mark is progress, which is told by the clock.
func (c Check) digest() string {
	if c.Status != completed {
		return digest([]string{c.Name, c.HeadSHA, c.ExternalID, c.Status, c.Mark})
	}
	c.StartedAt, c.CompletedAt, c.Digest = time.Time{}, time.Time{}, ""
	return digest(c)
}

func digest(x any) string {
	text, err := json.Marshal(x)
	if err != nil {
		panic(err) // texts, numbers and times always marshal
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
