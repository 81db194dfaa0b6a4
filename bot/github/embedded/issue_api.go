package embedded

import (
	"time"

	"github.com/google/go-github/v60/github"
)

// renderIssue is the pull request seen as the issue that it also is.
func (pr *PR) renderIssue() *github.Issue {
	r := pr.repo
	url, html := r.api("/issues/%d", pr.number), r.html("/pull/%d", pr.number)
	out := &github.Issue{ID: &pr.id, NodeID: ptr(nodeID("PullRequest", pr.id)), Number: ptr(pr.number), State: ptr(pr.state), Locked: ptr(pr.locked), ActiveLockReason: orNil(pr.lockReason),
		Title: ptr(pr.title), Body: orNil(pr.body), AuthorAssociation: ptr(r.association(pr.author)), User: pr.author.render(r.s.url),
		Comments: ptr(len(pr.comments())), CreatedAt: when(pr.created), UpdatedAt: when(pr.updated), ClosedAt: when(pr.closedAt), Draft: ptr(pr.draft),
		URL: &url, HTMLURL: &html, CommentsURL: ptr(url + "/comments"), EventsURL: ptr(url + "/events"), LabelsURL: ptr(url + "/labels{/name}"),
		RepositoryURL: ptr(r.api("")), Reactions: renderReactions(nil, url),
		PullRequestLinks: &github.PullRequestLinks{URL: ptr(r.api("/pulls/%d", pr.number)), HTMLURL: &html, DiffURL: ptr(html + ".diff"),
			PatchURL: ptr(html + ".patch"), MergedAt: when(pr.mergedAt)}}
	out.Labels = each(pr.labels, (*label).render)
	return out
}

// A move is one of a pull request to another base branch.
type move struct {
	id  int64
	who *account
	at  time.Time
}

// eventEntry has what go-github's struct lacks or leaves out.
type eventEntry struct {
	github.IssueEvent
	NodeID    string  `json:"node_id"`
	CommitID  *string `json:"commit_id"`
	CommitURL *string `json:"commit_url"`
	App       *string `json:"performed_via_github_app"`
}

// listEvents tells of moves alone.
func listEvents(rq *request, pr *PR) error {
	return rq.ok(each(page(rq, pr.moves), func(m move) eventEntry {
		return eventEntry{NodeID: nodeID("BaseRefChangedEvent", m.id), IssueEvent: github.IssueEvent{
			ID: &m.id, URL: ptr(pr.repo.api("/issues/events/%d", m.id)), Event: ptr("base_ref_changed"), Actor: m.who.render(rq.s.url), CreatedAt: when(m.at)}}
	}))
}
