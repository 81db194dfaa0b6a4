package embedded

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

func (rq *request) pull() (*PR, error) {
	pr := rq.repo.pull(int(rq.pathInt("number")))
	if pr == nil || pr.shown() == nil {
		return nil, errNotFound()
	}
	return pr, nil
}

func listPulls(rq *request) error {
	if err := cmp.Or(rq.oneOf("PullRequest", "state", "open", "closed", "all"), rq.oneOf("PullRequest", "sort", "created", "updated", "popularity", "long-running"),
		rq.oneOf("PullRequest", "direction", "asc", "desc")); err != nil {
		return err
	}
	state := cmp.Or(rq.query("state"), "open")
	pulls := slices.DeleteFunc(slices.Clone(rq.repo.pulls), func(pr *PR) bool {
		head, is, base := rq.query("head"), pr.state, pr.baseRef
		if len(pr.forms) > 0 {
			p := pr.shown()
			if p == nil {
				return true
			}
			is, base = p.GetState(), p.GetBase().GetRef()
		}
		return state != "all" && is != state ||
			rq.query("base") != "" && rq.query("base") != base ||
			head != "" && head != pr.headRepo.owner.login+":"+pr.headRef
	})
	newest := func(a, b *PR) int { return b.number - a.number }
	if rq.query("sort") == "updated" {
		newest = func(a, b *PR) int { return b.updated.Compare(a.updated) }
	}
	slices.SortStableFunc(pulls, newest)
	if rq.query("direction") == "asc" || rq.query("direction") == "" && rq.query("sort") != "" && rq.query("sort") != "created" {
		slices.Reverse(pulls)
	}
	return rq.ok(each(page(rq, pulls), (*PR).renderListed))
}

// renderListed leaves out the fields that GitHub computes for single pull requests only.
func (pr *PR) renderListed() *github.PullRequest {
	listed := *pr.shown()
	p := &listed
	p.Mergeable, p.Rebaseable, p.MergeableState, p.Merged, p.MergedBy, p.Comments, p.ReviewComments = nil, nil, nil, nil, nil, nil, nil
	p.MaintainerCanModify = nil
	p.Commits, p.ChangedFiles, p.Additions, p.Deletions = nil, nil, nil, nil
	return p
}

func getPull(rq *request, pr *PR) error {
	return rq.ok(pr.shown())
}

// fork returns the merge base. After the merge the base contains the head, so GitHub answers with
// the merge base from before the merge.
func (pr *PR) fork() string {
	base := pr.baseSHA
	sha, err := pr.repo.git.always("merge-base", base, pr.headSHA)
	if err != nil {
		return base
	}
	return sha
}

func (pr *PR) files() ([]changedFile, error) { return pr.repo.diff(pr.fork(), pr.headSHA) }

func (pr *PR) commits() []gitCommit {
	return pr.repo.git.log(250, "--reverse", pr.baseSHA+".."+pr.headSHA)
}

// renderIssue renders the pull request as an issue, because every pull request is also an issue.
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

// A move is one change of a pull request's base branch.
type move struct {
	id        int64
	who       *account
	at        time.Time
	automatic bool // GitHub moved it, because its base branch was deleted
}

// listEvents lists changes of the base branch only.
func listEvents(rq *request, pr *PR) error {
	return rq.ok(each(page(rq, pr.moves), func(m move) map[string]any {
		event, kind := "base_ref_changed", "BaseRefChangedEvent"
		if m.automatic {
			event, kind = "automatic_base_change_succeeded", "AutomaticBaseChangeSucceededEvent"
		}
		return with(github.IssueEvent{ID: &m.id, URL: ptr(pr.repo.api("/issues/events/%d", m.id)), Event: &event, Actor: m.who.render(rq.s.url), CreatedAt: when(m.at)},
			map[string]any{"node_id": nodeID(kind, m.id), "commit_id": nil, "commit_url": nil, "performed_via_github_app": nil})
	}))
}
