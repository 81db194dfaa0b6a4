package webhook

import (
	"fmt"
	"slices"
	"strings"
)

// used are the actions that matter, by event; push and ping have none.
var used = map[string][]string{
	"pull_request": {"opened", "synchronize", "reopened", "ready_for_review", "converted_to_draft", "labeled", "unlabeled", "edited", "closed"},
	// Who edits a comment could put words into another's mouth.
	"issue_comment":             {"created"},
	"merge_group":               {"checks_requested", "destroyed"},
	"check_run":                 {"rerequested", "requested_action"},
	"check_suite":               {"rerequested"},
	"installation":              {"created", "deleted", "suspend", "unsuspend", "new_permissions_accepted"},
	"installation_repositories": {"added", "removed"},
	"push":                      nil,
	"ping":                      nil,
}

// Decode reads the body of a delivery. Events and actions that are not used are
// Ignored, whatever their bodies hold. Otherwise the commit ids, numbers and
// names in the result have been checked; an error names the field.
func Decode(event string, body []byte) (Event, error) {
	actions, known := used[event]
	if !known {
		return Ignored{fmt.Sprintf("event %.64q is not used", event)}, nil
	}
	p := open(body)
	action := ""
	if actions != nil {
		action = required[string](p, "action")
	}
	if p.err == nil && actions != nil && !slices.Contains(actions, action) {
		return Ignored{fmt.Sprintf("action %.64q of %s is not used", action, event)}, nil
	}
	e := p.event(event, action)
	if p.err != nil {
		return nil, fmt.Errorf("reading a %s delivery: %w", event, p.err)
	}
	return e, nil
}

func (p *payload) event(event, action string) Event {
	switch event {
	case "pull_request":
		return p.pullRequest(action)
	case "issue_comment":
		return p.issueComment()
	case "merge_group":
		return p.mergeGroup(action)
	case "check_run":
		return p.checkRun(action)
	case "check_suite":
		return p.checkSuite()
	case "push":
		return p.push()
	case "installation":
		return Installation{p.installed(), action, p.account(), p.repositories("repositories")}
	case "installation_repositories":
		return InstallationRepositories{p.installed(), p.account(), p.repositories("repositories_added"), p.repositories("repositories_removed")}
	}
	o := p.origin()
	if o.Repository.ID != 0 {
		p.checkRepository("repository", o.Repository)
	}
	return Ping{o, optional[int64](p, "hook_id")}
}

func (p *payload) pullRequest(action string) Event {
	pr := required[wirePullRequest](p, "pull_request")
	const at = "pull_request."
	e := PullRequest{
		Origin: p.inRepository(), Action: action, Number: p.number(at+"number", pr.Number), Title: pr.Title, Author: pr.User.user(),
		Draft: pr.Draft, Open: pr.State == "open", Merged: pr.Merged, MergeCommit: pr.MergeCommit, UpdatedAt: pr.UpdatedAt,
		HeadSHA: p.sha(at+"head.sha", pr.Head.SHA), HeadRef: p.filled(at+"head.ref", pr.Head.Ref),
		BaseSHA: p.sha(at+"base.sha", pr.Base.SHA), BaseRef: p.filled(at+"base.ref", pr.Base.Ref),
	}
	if pr.MergeCommit != "" {
		p.sha(at+"merge_commit_sha", pr.MergeCommit)
	}
	if repo := pr.Head.Repo; repo != nil {
		e.HeadRepo = repo.repository()
		p.checkRepository(at+"head.repo", e.HeadRepo)
	}
	for _, label := range pr.Labels {
		e.Labels = append(e.Labels, label.Name)
	}
	switch action {
	case "synchronize":
		e.Before = p.sha("before", optional[string](p, "before"))
	case "labeled", "unlabeled":
		e.Label = p.filled("label.name", required[wireLabel](p, "label").Name)
	case "edited":
		changes := required[wireChanges](p, "changes")
		e.BaseWas, e.TitleWas = changes.Base.Ref.From, changes.Title.From
		if e.BaseWas == "" && e.TitleWas == "" {
			return Ignored{"neither base nor title was edited"}
		}
	}
	return e
}

func (p *payload) issueComment() Event {
	issue := required[wireIssue](p, "issue")
	if issue.PullRequest == nil {
		return Ignored{"the comment is on an issue, not on a pull request"}
	}
	c := required[wireComment](p, "comment")
	p.filled("comment.user.login", c.User.Login) // commands need to know who
	return IssueComment{
		Origin: p.inRepository(), Number: p.number("issue.number", issue.Number), Open: issue.State == "open",
		ID: c.ID, Body: c.Body, Author: c.User.user(),
	}
}

func (p *payload) mergeGroup(action string) Event {
	g := required[wireMergeGroup](p, "merge_group")
	return MergeGroup{
		Origin: p.inRepository(), Action: action, Reason: optional[string](p, "reason"),
		HeadSHA: p.sha("merge_group.head_sha", g.HeadSHA), HeadRef: p.filled("merge_group.head_ref", g.HeadRef),
		BaseSHA: p.sha("merge_group.base_sha", g.BaseSHA), BaseRef: p.filled("merge_group.base_ref", g.BaseRef),
	}
}

func (p *payload) checkRun(action string) Event {
	run, o := required[wireCheck](p, "check_run"), p.inRepository()
	e := CheckRun{
		Origin: o, Action: action, ID: run.ID, Name: run.Name, AppID: run.App.ID, ExternalID: run.ExternalID,
		HeadSHA: p.sha("check_run.head_sha", run.HeadSHA), HeadBranch: run.Suite.HeadBranch, PullRequests: run.numbers(o.Repository),
	}
	if action == "requested_action" {
		e.Button = p.filled("requested_action.identifier", required[wireButton](p, "requested_action").Identifier)
	}
	return e
}

func (p *payload) checkSuite() Event {
	suite, o := required[wireCheck](p, "check_suite"), p.inRepository()
	return CheckSuite{
		Origin: o, ID: suite.ID, AppID: suite.App.ID,
		HeadSHA: p.sha("check_suite.head_sha", suite.HeadSHA), HeadBranch: suite.HeadBranch, PullRequests: suite.numbers(o.Repository),
	}
}

func (p *payload) push() Event {
	ref := required[string](p, "ref")
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	switch {
	case p.err == nil && !ok:
		return Ignored{"the push is not to a branch"}
	case optional[bool](p, "deleted"):
		return Ignored{"the push deletes a branch"}
	}
	return Push{
		Origin: p.inRepository(), Branch: p.filled("ref", branch), Forced: optional[bool](p, "forced"),
		Before: p.sha("before", optional[string](p, "before")), After: p.sha("after", optional[string](p, "after")),
	}
}
