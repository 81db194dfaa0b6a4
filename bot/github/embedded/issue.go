package embedded

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

// An Issue is an issue that is not a pull request.
type Issue struct {
	repo             *Repo
	id               int64
	number           int
	title, body      string
	author           *account
	state            string // open or closed
	reason           string // why it is closed, or that it was opened again; empty at first
	labels           []*label
	created, updated time.Time
	closedAt         time.Time
	closedBy         *account
}

// An IssueState is a snapshot of an issue.
type IssueState struct {
	Number      int
	Title, Body string
	Author      string
	Open        bool
	Labels      []string
	Comments    []Comment
}

// Issues returns the issues of the repository that are no pull requests, oldest first.
func (r *Repo) Issues() []IssueState {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return each(r.issues, func(i *Issue) IssueState {
		return IssueState{Number: i.number, Title: i.title, Body: i.body, Author: i.author.login, Open: i.state == "open",
			Labels: each(i.labels, func(l *label) string { return l.name }), Comments: each(i.comments(), (*comment).snapshot)}
	})
}

// DisableIssues turns issues off, as the owner can in the settings. Pull requests stay.
func (r *Repo) DisableIssues() { r.setIssues(false) }

// EnableIssues turns issues on again.
func (r *Repo) EnableIssues() { r.setIssues(true) }

func (r *Repo) setIssues(on bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.noIssues = !on
}

// CloseIssue closes an issue as a user.
func (r *Repo) CloseIssue(user string, number int) error {
	return r.actOnIssue(user, "close", number, func(i *Issue, who *account) error { return i.edit(who, issueEdit{State: ptr("closed")}) })
}

// DeleteIssue deletes an issue as a user, which takes admin rights.
func (r *Repo) DeleteIssue(user string, number int) error {
	return r.actOnIssue(user, "delete", number, func(i *Issue, who *account) error {
		if !r.role(who).atLeast(Admin) {
			return forbidden("Must have admin rights to Repository.")
		}
		r.issues = slices.DeleteFunc(r.issues, func(other *Issue) bool { return other == i })
		r.deleted = append(r.deleted, i.number)
		i.emit(who, "deleted")
		return nil
	})
}

func (r *Repo) actOnIssue(user, doing string, number int, do func(*Issue, *account) error) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	err := r.writable()
	i := r.issue(number)
	if err == nil && i == nil {
		err = errNotFound()
	}
	if err == nil {
		err = do(i, r.s.user(user))
	}
	if err != nil {
		return fmt.Errorf("%s %s#%d as %s: %w", doing, r.fullName(), number, user, err)
	}
	r.s.touch()
	return nil
}

func (r *Repo) issue(number int) *Issue {
	return find(r.issues, func(i *Issue) bool { return i.number == number })
}

func (i *Issue) comments() []*comment {
	return slices.DeleteFunc(slices.Clone(i.repo.comments), func(c *comment) bool { return c.issue != i })
}

func (i *Issue) comment(who *account, body string) (*comment, error) {
	if err := checkCommentBody(body); err != nil {
		return nil, err
	}
	s := i.repo.s
	c := &comment{id: s.id(), issue: i, author: who, body: body, created: s.now(), updated: s.now()}
	i.repo.comments = append(i.repo.comments, c)
	i.updated = c.created
	c.emit(who, "created", nil)
	return c, nil
}

// maxIssueTitle is in characters.
const maxIssueTitle = 256

func checkIssue(title, body string) error {
	switch n := len([]rune(title)); {
	case n == 0:
		return invalid("Issue", "title", "missing_field", "")
	case n > maxIssueTitle:
		return invalid("Issue", "title", "custom", fmt.Sprintf("title is too long (maximum is %d characters)", maxIssueTitle))
	case len(body) > maxCommentBody:
		return invalid("Issue", "body", "custom", fmt.Sprintf("body is too long (maximum is %d characters)", maxCommentBody))
	}
	return nil
}

// openIssue opens an issue. As on GitHub, it drops the labels if the author has no triage rights. For an App,
// the caller has already checked the permission.
func (r *Repo) openIssue(who *account, app bool, title, body string, labels []string) (*Issue, error) {
	if err := checkIssue(title, body); err != nil {
		return nil, err
	}
	r.lastNumber++
	i := &Issue{repo: r, id: r.s.id(), number: r.lastNumber, title: title, body: body, author: who, state: "open", created: r.s.now(), updated: r.s.now()}
	if app || r.role(who).atLeast(Triage) {
		i.labels = each(labels, r.label)
	}
	r.issues = append(r.issues, i)
	i.emit(who, "opened")
	return i, nil
}

// An issueEdit has the fields that a request changes. A nil field stays as it is.
type issueEdit struct {
	Title  *string `json:"title"`
	Body   *string `json:"body"`
	State  *string `json:"state"`
	Reason *string `json:"state_reason"`
}

func (i *Issue) edit(who *account, e issueEdit) error {
	if who != i.author && who.kind != "Bot" && !i.repo.role(who).atLeast(Triage) {
		return forbidden("Must have admin rights to Repository.")
	}
	title, body := i.title, i.body
	if e.Title != nil {
		title = *e.Title
	}
	if e.Body != nil {
		body = *e.Body
	}
	if err := checkIssue(title, body); err != nil {
		return err
	}
	if e.State != nil && *e.State != "open" && *e.State != "closed" {
		return invalid("Issue", "state", "invalid", *e.State+" is not included in the list")
	}
	if e.Reason != nil && !slices.Contains([]string{"completed", "not_planned", "reopened"}, *e.Reason) {
		return invalid("Issue", "state_reason", "invalid", *e.Reason+" is not included in the list")
	}
	edited := title != i.title || body != i.body
	i.title, i.body, i.updated = title, body, i.repo.s.now()
	if edited {
		i.emit(who, "edited")
	}
	if e.State == nil || *e.State == i.state {
		return nil
	}
	i.state = *e.State
	if i.state == "open" {
		i.reason, i.closedAt, i.closedBy = "reopened", time.Time{}, nil
		i.emit(who, "reopened")
		return nil
	}
	i.reason, i.closedAt, i.closedBy = "completed", i.updated, who
	if e.Reason != nil {
		i.reason = *e.Reason
	}
	i.emit(who, "closed")
	return nil
}

func (i *Issue) emit(who *account, action string) {
	e := map[string]any{"issue": i.render()}
	if action == "edited" {
		e["changes"] = map[string]any{}
	}
	i.repo.emit(who, "issues", action, nil, e)
}

func (i *Issue) render() *github.Issue {
	r := i.repo
	url, html := r.api("/issues/%d", i.number), r.html("/issues/%d", i.number)
	out := &github.Issue{ID: &i.id, NodeID: ptr(nodeID("Issue", i.id)), Number: ptr(i.number), State: ptr(i.state), StateReason: orNil(i.reason), Locked: ptr(false),
		Title: ptr(i.title), Body: orNil(i.body), AuthorAssociation: ptr(r.association(i.author)), User: i.author.render(r.s.url),
		Comments: ptr(len(i.comments())), CreatedAt: when(i.created), UpdatedAt: when(i.updated), ClosedAt: when(i.closedAt),
		URL: &url, HTMLURL: &html, CommentsURL: ptr(url + "/comments"), EventsURL: ptr(url + "/events"), LabelsURL: ptr(url + "/labels{/name}"),
		RepositoryURL: ptr(r.api("")), Reactions: renderReactions(nil, url), Labels: each(i.labels, (*label).render)}
	if i.closedBy != nil {
		out.ClosedBy = i.closedBy.render(r.s.url)
	}
	return out
}

func (i *Issue) view() *view {
	v := &view{Title: fmt.Sprintf("%s #%d", i.title, i.number), Path: []row{{URL: i.repo.html("/issues/%d", i.number), Text: fmt.Sprintf("#%d", i.number)}}}
	v.Boxes = append(v.Boxes, box{Title: i.state + ", by " + i.author.login, HTML: rendered(i.body)})
	for _, c := range i.comments() {
		v.Boxes = append(v.Boxes, box{Title: c.author.login + " commented", HTML: rendered(c.body)})
	}
	return v
}
