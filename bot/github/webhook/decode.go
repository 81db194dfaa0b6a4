package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// used are the actions that matter, by event; push and ping have none.
var used = map[string][]string{
	"pull_request": {"opened", "synchronize", "reopened", "ready_for_review", "converted_to_draft", "labeled", "unlabeled", "edited", "closed"},
	// Who edits a comment could put words into another's mouth.
	"issue_comment":               {"created"},
	"pull_request_review":         {"submitted", "dismissed"},
	"pull_request_review_comment": {"created"},
	"merge_group":                 {"checks_requested", "destroyed"},
	"check_run":                   {"rerequested", "requested_action"},
	"check_suite":                 {"rerequested"},
	"repository":                  {"renamed", "transferred", "archived", "unarchived", "deleted"},
	"installation":                {"created", "deleted", "suspend", "unsuspend", "new_permissions_accepted"},
	"installation_repositories":   {"added", "removed"},
	"installation_target":         {"renamed"},
	"push":                        nil,
	"ping":                        nil,
}

// Used tells whether kernelgate uses an event of GitHub's.
func Used(event string) bool {
	_, ok := used[event]
	return ok
}

// UsedAction tells whether kernelgate uses an action of an event.
func UsedAction(event, action string) bool {
	actions, ok := used[event]
	return ok && (actions == nil || slices.Contains(actions, action))
}

// Decode reads the body of a delivery. Events and actions that are not used are
// Ignored, whatever their bodies hold. Otherwise the commit ids, numbers and
// names in the result have been checked; an error names the field.
//
// An event and an error are as small as what they say, however large the body:
// texts longer than GitHub's own are refused, and nothing refers to the body.
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
	case "pull_request_review":
		return p.review()
	case "pull_request_review_comment":
		return ReviewComment{p.remark("pull_request", required[wireIssue](p, "pull_request"), "comment", required[wireComment](p, "comment"))}
	case "merge_group":
		return p.mergeGroup(action)
	case "check_run":
		return p.checkRun(action)
	case "check_suite":
		return p.checkSuite()
	case "push":
		return p.push()
	case "repository":
		return p.repositoryChange(action)
	case "installation":
		return Installation{p.installed(), action, p.user("installation.account", optional[wireInstallation](p, "installation").Account),
			p.repositories("repositories")}
	case "installation_repositories":
		return InstallationRepositories{p.installed(), p.repositories("repositories_added"), p.repositories("repositories_removed")}
	case "installation_target":
		return InstallationTarget{p.installed(), p.user("account", required[wireUser](p, "account")),
			p.name("changes.login.from", required[wireChanges](p, "changes").Login.From)}
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
		Origin: p.inRepository(), Number: p.number(at+"number", pr.Number), Title: p.text(at+"title", pr.Title, maxTitle), Body: p.text(at+"body", pr.Body, maxBody), Author: p.user(at+"user", pr.User),
		Draft: pr.Draft, Open: pr.State == "open", Merged: pr.Merged, UpdatedAt: pr.UpdatedAt,
		HeadSHA: p.sha(at+"head.sha", pr.Head.SHA), BaseRef: p.name(at+"base.ref", pr.Base.Ref),
	}
	if repo := pr.Head.Repo; repo != nil {
		e.HeadRepo = p.repository(at+"head.repo", *repo)
		p.checkRepository(at+"head.repo", e.HeadRepo)
	}
	p.atMost(at+"labels", len(pr.Labels), maxLabels)
	for i, label := range pr.Labels[:min(len(pr.Labels), maxLabels)] {
		e.Labels = append(e.Labels, p.text(fmt.Sprintf("%slabels[%d].name", at, i), label.Name, maxName))
	}
	if action == "edited" { // rules may go by the title
		if changes := required[wireChanges](p, "changes"); changes.Base.Ref.From == "" && changes.Title.From == "" {
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
	return IssueComment{p.remark("issue", issue, "comment", required[wireComment](p, "comment"))}
}

func (p *payload) review() Event {
	pr, r := required[wireIssue](p, "pull_request"), required[wireComment](p, "review")
	return Review{p.remark("pull_request", pr, "review", r), p.name("review.state", r.State), p.sha("review.commit_id", r.CommitID)}
}

// remark reads what somebody wrote on a pull request; on and at are their names in the payload.
func (p *payload) remark(on string, pr wireIssue, at string, c wireComment) Remark {
	return Remark{
		Origin: p.inRepository(), Number: p.number(on+".number", pr.Number), Open: pr.State == "open",
		ID: c.ID, Body: p.text(at+".body", c.Body, maxBody), Author: p.author(at+".user", c.User),
	}
}

func (p *payload) repositoryChange(action string) Event {
	e := RepositoryChange{Origin: p.inRepository(), Action: action}
	was := e.Repository
	switch action {
	case "renamed":
		was.FullName = was.Owner() + "/" + required[wireChanges](p, "changes").Repository.Name.From
		p.checkRepository("changes.repository.name.from, repository", was)
		e.FullNameWas = was.FullName
	case "transferred":
		from := required[wireChanges](p, "changes").Owner.From
		was.FullName = cmp.Or(from.User.Login, from.Organization.Login) + "/" + was.Name()
		p.checkRepository("changes.owner.from, repository", was)
		e.FullNameWas = was.FullName
	}
	return e
}

func (p *payload) mergeGroup(action string) Event {
	g := required[wireMergeGroup](p, "merge_group")
	return MergeGroup{
		Origin: p.inRepository(), Action: action,
		HeadSHA: p.sha("merge_group.head_sha", g.HeadSHA), HeadRef: p.name("merge_group.head_ref", g.HeadRef),
		BaseSHA: p.sha("merge_group.base_sha", g.BaseSHA), BaseRef: p.name("merge_group.base_ref", g.BaseRef),
	}
}

func (p *payload) checkRun(action string) Event {
	run, o := required[wireCheck](p, "check_run"), p.inRepository()
	e := CheckRun{
		Origin: o, Action: action, AppID: run.App.ID, ExternalID: p.text("check_run.external_id", run.ExternalID, maxName),
		HeadSHA: p.sha("check_run.head_sha", run.HeadSHA), PullRequests: p.numbers("check_run", run, o.Repository),
	}
	if action == "requested_action" {
		e.Button = p.name("requested_action.identifier", required[wireButton](p, "requested_action").Identifier)
	}
	return e
}

func (p *payload) checkSuite() Event {
	suite, o := required[wireCheck](p, "check_suite"), p.inRepository()
	return CheckSuite{
		Origin: o, AppID: suite.App.ID, HeadSHA: p.sha("check_suite.head_sha", suite.HeadSHA),
		PullRequests: p.numbers("check_suite", suite, o.Repository),
	}
}

func (p *payload) push() Event {
	ref := required[string](p, "ref")
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if p.err == nil && !ok {
		return Ignored{"the push is not to a branch"}
	}
	return Push{
		Origin: p.inRepository(), Branch: p.name("ref", branch),
		Before: p.sha("before", optional[string](p, "before")), After: p.sha("after", optional[string](p, "after")),
	}
}
