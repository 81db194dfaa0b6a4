package present

import (
	"cmp"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

// CodeAnchor is where a run's page shows how the machine code changed.
const CodeAnchor = "#machine-code"

var fullCommit = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// at is an address below the repository's at GitHub, or "".
func (v View) at(parts ...string) string {
	repo := v.State.Facts.Repo
	if v.Web == "" || strings.Count(repo, "/") != 1 {
		return ""
	}
	return strings.TrimSuffix(v.Web, "/") + (&url.URL{Path: "/" + repo + "/" + strings.Join(parts, "/")}).EscapedPath()
}

// commit leads to a commit, where GitHub has it.
func (v View) commit(sha string) report.Link {
	l := report.Link{Text: report.Short(sha)}
	if fullCommit.MatchString(sha) {
		l.URL = v.at("commit", sha)
	}
	return l
}

// fullCommit is a commit by its full id, for who copies it.
func (v View) fullCommit(sha string) string {
	l := v.commit(sha)
	l.Text = sha
	return l.Markdown()
}

// linksOf is where a reader finds more about a run.
func (v View) linksOf(r change.Run) report.Links {
	page := v.Pages[r.Job]
	run, _, _ := strings.Cut(v.RunURL, "?") // which says to whom a status belongs
	l := report.Links{Report: cmp.Or(page.URL, run), History: page.History, Candidate: v.commit(v.State.Facts.Head)}
	if page.URL != "" {
		l.MachineCode = page.URL + CodeAnchor
	}
	if p := v.plan(); p != nil {
		l.Baseline = v.commit(v.baseline(r, p))
		if p.PolicyFile != "" && v.State.Facts.Base != "" {
			l.Rule = v.at("blob", v.State.Facts.Base, p.PolicyFile)
		}
	}
	return l
}

// baseline is the commit that a run was compared with: the merge base, unless the policy names another. A new kernel has none.
func (v View) baseline(r change.Run, p *change.Plan) string {
	switch verdict := v.known(r); {
	case verdict != nil && len(verdict.Builds) == 1:
		return ""
	case verdict != nil && fullCommit.MatchString(verdict.Provenance.Baseline):
		return verdict.Provenance.Baseline
	case verdict != nil && fullCommit.MatchString(verdict.Provenance.Base.SHA):
		return verdict.Provenance.Base.SHA
	}
	return p.Base
}

// compared says which commits this is about, unless a report in sight does.
func (v View) compared() string {
	s, attempt := v.State, ""
	if r := v.alone(); r != nil {
		attempt = fmt.Sprintf("attempt %d", r.Count())
		if r.Runner != "" {
			attempt += " on " + report.EscapeCode(report.Clip(r.Runner, 60))
		}
		if v.known(*r) != nil {
			return "This is " + attempt + "."
		}
		attempt = ", " + attempt
	}
	text := "Commit " + v.commit(s.Facts.Head).Markdown()
	if p := v.plan(); p != nil && p.Base != "" {
		text += " against " + v.commit(p.Base).Markdown()
		if s.Facts.Base != "" {
			text += " of " + report.EscapeCode(s.Facts.Base)
		}
	}
	return text + attempt + "."
}

// foot is what it was about, and how to ask for more.
func (v View) foot() string {
	return strings.TrimSpace(strings.TrimSpace(v.compared()+" "+v.reports())+" "+v.howToAsk()) + "\n"
}

// linksShown is how many kernels' pages a comment names.
const linksShown = 10

// reports leads to the pages of several kernels' runs; one kernel's is among its links.
func (v View) reports() string {
	if v.alone() != nil {
		return ""
	}
	var list []string
	for _, r := range v.inOrder() {
		if page := v.Pages[r.Job].URL; page != "" && r.Phase == change.Done && len(list) < linksShown {
			list = append(list, report.Link{Text: report.Clip(r.Name, nameRunes), URL: page}.Markdown())
		}
	}
	if list == nil {
		return ""
	}
	return "Full reports: " + strings.Join(list, ", ") + "."
}

// picture is the intervals on one scale.
func (v View) picture(r change.Run) string {
	verdict, page := v.known(r), v.Pages[r.Job]
	if verdict == nil || page.Picture == "" {
		return ""
	}
	for _, c := range verdict.Comparisons {
		if c.Baseline != nil {
			return fmt.Sprintf(`<a href="%s"><picture><source media="(prefers-color-scheme: dark)" srcset="%s?look=dark"><img alt="Each shape's speedup with its interval and its goal, on one scale" src="%s" width="600"></picture></a>`+"\n",
				html.EscapeString(page.URL), html.EscapeString(page.Picture), html.EscapeString(page.Picture))
		}
	}
	return ""
}
