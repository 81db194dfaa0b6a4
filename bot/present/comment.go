package present

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Comment is the one sticky comment on a pull request: where its newest head
// stands, and what was before. It is empty where none is called for: merge groups
// and pushes have none, nor does a pull request of which nothing has been said
// yet and that touches no kernel, or whose first measurement goes on.
func Comment(v View) string {
	if !v.commented() {
		return ""
	}
	return v.compose().text()
}

// CommentDigest is of everything in the comment that is worth a write: while a head is
// measured, that it is. It is empty where there is no comment.
func CommentDigest(v View) string {
	text := Comment(v.still())
	switch {
	case text == "":
		return ""
	case v.Measuring() && v.partial():
		return digest([]any{"measuring", v.State.Facts.Head, v.override(), extrasDone(v.State), v.lacking(v.State.Runs), v.matrix()})
	case v.Measuring():
		return digest([]any{"measuring", v.State.Facts.Head, v.override(), extrasDone(v.State)})
	}
	return digest(text)
}

func extrasDone(s *change.State) (n int) {
	for _, r := range s.ExtraRuns {
		if r.Phase == change.Done {
			n++
		}
	}
	return n
}

// Measuring tells whether verdicts of the head are still to come.
func (v View) Measuring() bool {
	s := v.State
	return s.Facts.Open && !s.Held() && slices.ContainsFunc(s.Runs, change.Run.Awaited)
}

func (v View) commented() bool {
	s, plan := v.State, v.plan()
	switch {
	case s.ID.Kind != change.Pull || s.Facts.Head == "":
		return false
	case s.Comment.ID != 0 || v.override() != nil:
		return true
	case v.Measuring() && !v.Workflow && !v.partial(): // a workflow that is killed leaves its memory in the comment
		return false
	case len(s.Runs) > 0 || len(s.Past) > 0:
		return true
	}
	return plan != nil && (len(plan.Problems) > 0 || len(plan.Kernels) > 0 || plan.RuleChange != nil)
}

// A composition is a comment in its parts, the most important first: what stands in sight,
// one fold with everything else, and the foot. Each part that always stays is bounded, so
// that together they fit.
type composition struct {
	always  string // in sight
	reports []*folded
	open    bool // the one report needs no fold of its own
	tried   string
	extra   string
	extras  []*folded
	past    string
	audit   string
	foot    string
	left    []string // what was left out
}

// A folded report is one run's.
type folded struct {
	title string // HTML
	pass  bool
	text  func(limit int) string
	now   string
}

func (v View) compose() *composition {
	s, at := v.State, v.overall()
	c := &composition{
		always: joined(Marker(s.ID)+"\n### "+at.sign+" "+report.EscapeProse(at.heading)+"\n", v.body(at)),
		open:   v.alone() != nil,
		tried:  v.tried(s.Runs), extra: v.extraTable(), past: v.past(), audit: v.audit(), foot: v.foot(),
	}
	done := slices.DeleteFunc(v.inOrder(), func(r change.Run) bool { return r.Phase != change.Done })
	if len(done) > maxReports {
		done, c.left = done[:maxReports], append(c.left, fmt.Sprintf("reports of %d kernels", len(done)-maxReports))
	}
	for _, r := range done {
		if c.open {
			c.reports = v.fold(c.reports, r, "", func(limit int) string { return joined(v.picture(r), v.reportOf(r, report.Folded, limit)) })
			continue
		}
		c.reports = v.fold(c.reports, r, v.done(r).sign+" "+report.EscapeSummary(report.Clip(r.Name, nameRunes)),
			func(limit int) string {
				return joined(v.about(r), v.again(r), v.reportOf(r, report.Flat, limit))
			})
	}
	for _, r := range s.ExtraRuns {
		if r.Phase == change.Done {
			c.extras = v.fold(c.extras, r, signInform+" "+report.EscapeSummary(report.Clip("For information — "+r.Name+": "+extraOf(r), 200)),
				func(limit int) string { return v.reportOf(r, report.Flat, limit) })
		}
	}
	return c
}

// alone is the one run of a change whose verdict is there.
func (v View) alone() *change.Run {
	if runs := v.State.Runs; len(runs) == 1 && runs[0].Phase == change.Done {
		return &runs[0]
	}
	return nil
}

// body is what stands below the heading. The table comes first where the heading is the
// verdict that it belongs to; else what the heading says is explained before it.
func (v View) body(at checkStatus) string {
	if r := v.alone(); r != nil {
		if verdict := v.known(*r); verdict != nil && at.heading == report.Headline(verdict) {
			return joined(v.visibleSummary(), at.lead)
		}
	}
	return joined(at.lead, v.visibleSummary())
}

// visibleSummary is what everybody sees of the kernels' verdicts: of one kernel its table and what
// would make it pass, of several a table for each.
func (v View) visibleSummary() string {
	r := v.alone()
	switch {
	case r == nil && len(v.State.Runs) < 2 && !v.forInformation():
		return v.howToAdd() // the heading says the rest
	case r == nil:
		return v.kernelTables()
	}
	named := ""
	if verdict := v.known(*r); verdict == nil {
		named = v.kernelRows(v.State.Runs)
	} else if v.forInformation() { // the heading is about something else
		named = v.done(*r).sign + " **" + report.EscapeProse(report.Headline(verdict)) + "**\n"
	}
	return joined(named, v.reportOf(*r, report.Above, maxInSight), v.again(*r))
}

// maxInSight is far more than a verdict has to say above its fold.
const maxInSight = 8000

// maxReports is more than a comment has room for.
const maxReports = 40

// manyReports are folded together once more.
const manyReports = 8

func (v View) fold(list []*folded, r change.Run, title string, text func(limit int) string) []*folded {
	if v.Verdicts[r.Job] == nil {
		return list
	}
	return append(list, &folded{title: title, pass: outcome(r) == gates.Pass, text: text, now: text(0)})
}

// text leaves out what matters least until the rest fits.
func (c *composition) text() string {
	text := c.join()
	for cut := range c.cuts {
		if len(text) <= maxComment {
			break
		}
		cut()
		text = c.join()
	}
	return text
}

func (c *composition) cuts(yield func(func()) bool) {
	drop := func(part *string, name string) func() {
		return func() {
			if *part != "" {
				*part, c.left = "", append(c.left, name)
			}
		}
	}
	last := func(list *[]*folded, name string, which func(*folded) bool) bool {
		for i := len(*list) - 1; i >= 0; i-- {
			if !which((*list)[i]) {
				continue
			}
			if !yield(func() {
				*list = slices.Delete(*list, i, i+1)
				if !slices.Contains(c.left, name) {
					c.left = append(c.left, name)
				}
			}) {
				return false
			}
		}
		return true
	}
	all := func(*folded) bool { return true }
	if !yield(drop(&c.audit, "the commands")) || !yield(drop(&c.past, "the earlier attempts")) ||
		!last(&c.extras, "reports for information", all) || !yield(drop(&c.extra, "measurements for information")) ||
		!last(&c.reports, "reports of kernels that passed", func(f *folded) bool { return f.pass && !c.open }) {
		return
	}
	if !yield(c.share) {
		return
	}
	_ = last(&c.reports, "reports of kernels that did not pass", all) && yield(drop(&c.tried, "what was tried before"))
}

// share gives each report its part of the room that the rest leaves.
func (c *composition) share() {
	rest := *c
	rest.reports = nil
	room := (maxComment-len(rest.join()))/max(len(c.reports), 1) - aroundReport
	for _, f := range c.reports {
		f.now = f.text(max(room, leastReport))
	}
}

const (
	aroundReport = 1000 // for its title, which is HTML
	leastReport  = 2000 // less says nothing that the table does not say
)

func (c *composition) join() string {
	var reports []string
	for _, f := range c.reports {
		if c.open {
			reports = append(reports, f.now)
			continue
		}
		reports = append(reports, f.details())
	}
	if len(reports) > manyReports {
		reports = []string{details(fmt.Sprintf("Reports of %d kernels", len(reports)), joined(reports...))}
	}
	parts := append(reports, c.tried, c.extra)
	for _, f := range c.extras {
		parts = append(parts, f.details())
	}
	parts = append(parts, c.past, c.audit)
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	below := joined(parts...)
	if len(parts) > 1 || c.open && len(reports) > 0 { // else it is a fold already
		below = details(c.foldTitle(), below)
	}
	left := ""
	if len(c.left) > 0 {
		left = "Left out, because the comment would be too long: " + strings.Join(c.left, ", ") + ".\n"
	}
	return joined(c.always, below, left, c.foot)
}

// foldTitle names what is in the one fold.
func (c *composition) foldTitle() string {
	title := "Details"
	var names []string
	for _, part := range []struct {
		there bool
		name  string
	}{
		{len(c.reports) > 0, strings.TrimPrefix(report.FoldTitle, title+": ")}, {c.tried != "", "what was tried before"},
		{c.extra != "" || len(c.extras) > 0, "measurements for information"}, {c.past != "", "earlier attempts"}, {c.audit != "", "commands"},
	} {
		if part.there {
			names = append(names, part.name)
		}
	}
	return title + ": " + strings.Join(names, ", ")
}

func (f *folded) details() string { return details(f.title, f.now) }
