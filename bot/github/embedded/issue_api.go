package embedded

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

// hasIssues refuses a call if issues are turned off. Calls about pull requests do not go through it.
func hasIssues(handle func(*request) error) func(*request) error {
	return func(rq *request) error {
		if rq.repo.noIssues {
			return &apiError{Status: http.StatusGone, Message: "Issues are disabled for this repo"}
		}
		return handle(rq)
	}
}

func (rq *request) findIssue() (*Issue, error) {
	number := int(rq.pathInt("number"))
	if slices.Contains(rq.repo.deleted, number) {
		return nil, &apiError{Status: http.StatusGone, Message: "This issue was deleted"}
	}
	return there(rq.repo.issue(number))
}

// getIssue answers for pull requests, too.
func getIssue(rq *request) error {
	if pr, err := rq.pull(); err == nil {
		return rq.ok(pr.renderIssue())
	}
	return hasIssues(on((*request).findIssue, func(rq *request, i *Issue) error { return rq.ok(i.render()) }))(rq)
}

// listIssues lists issues and pull requests together, newest first.
func listIssues(rq *request) error {
	if err := cmp.Or(rq.oneOf("Issue", "state", "open", "closed", "all"), rq.oneOf("Issue", "direction", "asc", "desc"),
		rq.oneOf("Issue", "sort", "created", "updated", "comments")); err != nil {
		return err
	}
	var all []*github.Issue
	for _, i := range rq.repo.issues {
		all = append(all, i.render())
	}
	for _, pr := range rq.repo.pulls {
		if pr.shown() != nil {
			all = append(all, pr.renderIssue())
		}
	}
	state := cmp.Or(rq.query("state"), "open")
	all = slices.DeleteFunc(all, func(i *github.Issue) bool {
		if state != "all" && i.GetState() != state || rq.query("creator") != "" && !strings.EqualFold(i.GetUser().GetLogin(), rq.query("creator")) {
			return true
		}
		for name := range strings.SplitSeq(rq.query("labels"), ",") {
			if name != "" && !slices.ContainsFunc(i.Labels, func(l *github.Label) bool { return strings.EqualFold(l.GetName(), name) }) {
				return true
			}
		}
		return false
	})
	slices.SortFunc(all, func(a, b *github.Issue) int { return cmp.Compare(b.GetNumber(), a.GetNumber()) })
	if rq.query("direction") == "asc" {
		slices.Reverse(all)
	}
	return rq.ok(page(rq, all))
}

func postIssue(rq *request) error {
	var in struct {
		Title  string
		Body   string
		Labels []string
	}
	if err := rq.read(&in); err != nil {
		return err
	}
	i, err := rq.repo.openIssue(rq.actor.user, rq.actor.inst() != nil, in.Title, in.Body, in.Labels)
	if err != nil {
		return err
	}
	rq.header.Set("Location", rq.repo.api("/issues/%d", i.number))
	return rq.reply(http.StatusCreated, i.render())
}

// patchIssue edits issues, but not pull requests, because no caller needs that.
func patchIssue(rq *request, i *Issue) error {
	var in issueEdit
	if err := rq.read(&in); err != nil {
		return err
	}
	if err := i.edit(rq.actor.user, in); err != nil {
		return err
	}
	return rq.ok(i.render())
}
