package embedded

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

func when(t time.Time) *github.Timestamp {
	if t.IsZero() {
		return nil
	}
	return &github.Timestamp{Time: t}
}

func (u *account) render(base string) *github.User {
	api, html := base+"/users/"+url.PathEscape(u.login), base+u.page()
	return &github.User{Login: &u.login, ID: &u.id, NodeID: ptr(nodeID("User", u.id)), Type: &u.kind, SiteAdmin: ptr(false),
		AvatarURL: ptr(base + "/avatars/" + itoa(u.id)), GravatarID: ptr(""), URL: &api, HTMLURL: &html,
		FollowersURL: ptr(api + "/followers"), FollowingURL: ptr(api + "/following{/other_user}"), GistsURL: ptr(api + "/gists{/gist_id}"),
		StarredURL: ptr(api + "/starred{/owner}{/repo}"), SubscriptionsURL: ptr(api + "/subscriptions"),
		OrganizationsURL: ptr(api + "/orgs"), ReposURL: ptr(api + "/repos"), EventsURL: ptr(api + "/events{/privacy}"),
		ReceivedEventsURL: ptr(api + "/received_events")}
}

// renderFull renders the answer about a single account. Fields that the hub does not store are null
// or zero.
func (u *account) renderFull(s *Server) map[string]any {
	out := with(u.render(s.url), map[string]any{"created_at": s.begun, "updated_at": s.begun})
	for _, name := range strings.Fields("bio blog company email hireable location name") {
		out[name] = nil
	}
	for _, name := range strings.Fields("followers following public_gists public_repos") {
		out[name] = 0
	}
	return out
}

// page returns the path of the account's page. An App's bot has no page; the path leads to the App.
func (u *account) page() string {
	if slug, ok := strings.CutSuffix(u.login, "[bot]"); ok && u.kind == "Bot" {
		return "/apps/" + slug
	}
	return "/" + u.login
}

// links returns the URLs in a repository's answer. The table holds their paths below the
// repository's URL.
func (r *Repo) links() map[string]string {
	const table = `archive /{archive_format}{/ref}
assignees /assignees{/user}
blobs /git/blobs{/sha}
branches /branches{/branch}
collaborators /collaborators{/collaborator}
comments /comments{/number}
commits /commits{/sha}
compare /compare/{base}...{head}
contents /contents/{+path}
contributors /contributors
deployments /deployments
downloads /downloads
events /events
forks /forks
git_commits /git/commits{/sha}
git_refs /git/refs{/sha}
git_tags /git/tags{/sha}
hooks /hooks
issue_comment /issues/comments{/number}
issue_events /issues/events{/number}
issues /issues{/number}
keys /keys{/key_id}
labels /labels{/name}
languages /languages
merges /merges
milestones /milestones{/number}
notifications /notifications{?since,all,participating}
pulls /pulls{/number}
releases /releases{/id}
stargazers /stargazers
statuses /statuses/{sha}
subscribers /subscribers
subscription /subscription
tags /tags
teams /teams
trees /git/trees{/sha}`
	out := map[string]string{}
	for line := range strings.Lines(table) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[name+"_url"] = r.api("") + path
	}
	return out
}

func (r *Repo) render() *github.Repository {
	out := r.renderShort()
	raw, _ := json.Marshal(r.links()) // a map of strings always marshals
	_ = json.Unmarshal(raw, out)      // each of these fields is a string
	open := count(r.pulls, func(pr *PR) bool { return pr.state == "open" }) + count(r.issues, func(i *Issue) bool { return i.state == "open" })
	forks := count(r.s.repos, func(other *Repo) bool { return other.parent == r })
	out.Owner = r.owner.render(r.s.url)
	out.Fork, out.URL = ptr(r.parent != nil), ptr(r.api(""))
	out.HTMLURL, out.CloneURL, out.SVNURL = ptr(r.html("")), ptr(r.html(".git")), ptr(r.html(""))
	out.GitURL, out.SSHURL = ptr("git:"+strings.TrimPrefix(r.html(".git"), "http:")), ptr("git@localhost:"+r.fullName()+".git")
	out.DefaultBranch, out.Visibility = &r.branch, ptr("public")
	if r.private {
		out.Visibility = ptr("private")
	}
	out.CreatedAt, out.UpdatedAt, out.PushedAt = when(r.created), when(r.pushed), when(r.pushed)
	out.OpenIssues, out.OpenIssuesCount, out.ForksCount = &open, &open, &forks
	out.StargazersCount, out.WatchersCount, out.Watchers, out.Size = ptr(0), ptr(0), ptr(0), ptr(1)
	out.HasIssues, out.HasProjects, out.HasWiki, out.HasPages = ptr(!r.noIssues), ptr(false), ptr(false), ptr(false)
	out.HasDownloads, out.HasDiscussions, out.Archived, out.Disabled = ptr(false), ptr(false), &r.archived, &r.disabled
	out.AllowForking, out.IsTemplate, out.WebCommitSignoffRequired = ptr(true), ptr(false), ptr(false)
	out.AllowMergeCommit, out.AllowSquashMerge, out.AllowRebaseMerge = ptr(true), ptr(true), ptr(false)
	out.Topics = []string{}
	return out
}

// renderShort renders the form that installation events contain.
func (r *Repo) renderShort() *github.Repository {
	return &github.Repository{ID: &r.id, NodeID: ptr(nodeID("Repository", r.id)), Name: &r.name, FullName: ptr(r.fullName()), Private: &r.private}
}

func (pr *PR) render() *github.PullRequest {
	r := pr.repo
	api, html, issue := r.api("/pulls/%d", pr.number), r.html("/pull/%d", pr.number), r.api("/issues/%d", pr.number)
	link := func(to string) *github.PRLink { return &github.PRLink{HRef: &to} }
	comments := len(pr.comments())
	out := &github.PullRequest{ID: &pr.id, NodeID: ptr(nodeID("PullRequest", pr.id)), Number: ptr(pr.number), State: ptr(pr.state), Locked: ptr(pr.locked), ActiveLockReason: orNil(pr.lockReason),
		Title: ptr(pr.title), Body: orNil(pr.body), User: pr.author.render(r.s.url), Draft: ptr(pr.draft), CreatedAt: when(pr.created), UpdatedAt: when(pr.updated),
		ClosedAt: when(pr.closedAt), MergedAt: when(pr.mergedAt), Merged: ptr(!pr.mergedAt.IsZero()), MergeCommitSHA: orNil(pr.mergeSHA),
		Comments: &comments, ReviewComments: ptr(0), Commits: ptr(pr.size.commits), ChangedFiles: ptr(pr.size.files),
		Additions: ptr(pr.size.added), Deletions: ptr(pr.size.removed), MaintainerCanModify: ptr(pr.headRepo != r), AuthorAssociation: ptr(r.association(pr.author)),
		URL: &api, HTMLURL: &html, IssueURL: &issue, DiffURL: ptr(html + ".diff"), PatchURL: ptr(html + ".patch"), CommitsURL: ptr(api + "/commits"),
		CommentsURL: ptr(issue + "/comments"), ReviewCommentsURL: ptr(api + "/comments"), ReviewCommentURL: ptr(r.api("/pulls/comments{/number}")),
		StatusesURL: ptr(r.api("/statuses/%s", pr.headSHA)),
		Head:        pr.headRepo.renderSide(pr.headRef, pr.headSHA), Base: r.renderSide(pr.baseRef, pr.baseSHA),
		Links: &github.PRLinks{Self: link(api), HTML: link(html), Issue: link(issue), Comments: link(issue + "/comments"),
			ReviewComments: link(api + "/comments"), ReviewComment: link(r.api("/pulls/comments{/number}")),
			Commits: link(api + "/commits"), Statuses: link(r.api("/statuses/%s", pr.headSHA))}}
	if pr.mergedBy != nil {
		out.MergedBy = pr.mergedBy.render(r.s.url)
	}
	out.Labels = each(pr.labels, (*label).render)
	if pr.state == "open" {
		out.Mergeable, out.Rebaseable, out.MergeableState = ptr(pr.mergeable), ptr(pr.mergeable), ptr(pr.mergeableState())
	} else {
		out.MergeableState = ptr("unknown")
	}
	return out
}

func (r *Repo) renderSide(ref, sha string) *github.PullRequestBranch {
	return &github.PullRequestBranch{Label: ptr(r.owner.login + ":" + ref), Ref: ptr(ref), SHA: ptr(sha), User: r.owner.render(r.s.url), Repo: r.render()}
}

func (pr *PR) mergeableState() string {
	switch {
	case !pr.mergeable:
		return "dirty"
	case pr.draft:
		return "draft"
	case len(pr.repo.unmet(pr.baseRef, pr.headSHA)) > 0:
		return "blocked"
	}
	return "clean"
}

// renderMinimal renders the form that check runs and suites contain.
func (pr *PR) renderMinimal() *github.PullRequest {
	side := func(r *Repo, ref, sha string) *github.PullRequestBranch {
		return &github.PullRequestBranch{Ref: ptr(ref), SHA: ptr(sha), Repo: &github.Repository{ID: &r.id, Name: &r.name, URL: ptr(r.api(""))}}
	}
	return &github.PullRequest{ID: &pr.id, Number: ptr(pr.number), URL: ptr(pr.repo.api("/pulls/%d", pr.number)),
		Head: side(pr.headRepo, pr.headRef, pr.headSHA), Base: side(pr.repo, pr.baseRef, pr.baseSHA)}
}

func (l *label) render() *github.Label {
	return &github.Label{ID: &l.id, NodeID: ptr(nodeID("Label", l.id)), Name: ptr(l.name), Color: ptr(l.color), Default: ptr(false), URL: ptr(l.repo.api("/labels/%s", l.name))}
}

func (a *App) render() *github.App {
	return &github.App{ID: &a.id, Slug: &a.opt.Slug, NodeID: ptr(nodeID("App", a.id)), Owner: a.owner.render(a.s.url), Name: ptr(cmp.Or(a.opt.Name, a.opt.Slug)),
		Description: orNil(a.opt.Description), ExternalURL: ptr(cmp.Or(a.opt.Site, a.s.url)), HTMLURL: ptr(a.s.url + "/apps/" + a.opt.Slug), CreatedAt: when(a.created), UpdatedAt: when(a.created),
		Permissions: permissions(a.opt.Permissions), Events: a.opt.Events}
}
