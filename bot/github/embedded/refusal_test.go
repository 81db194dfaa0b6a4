package embedded_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/embedded/openapi"
)

// described returns a client whose answers are compared with GitHub's description.
func (w *world) described(d *openapi.Description, token string) *github.Client {
	w.Helper()
	eye := &witness{t: w.T, d: d, seen: map[string]bool{}}
	c, err := github.NewClient(&http.Client{Transport: eye}).WithAuthToken(token).WithEnterpriseURLs(w.hub.URL(), w.hub.URL())
	w.no(err)
	return c
}

// refused fails the test unless err is a 403 with this text.
func (w *world) refused(err error, text string) {
	w.Helper()
	if refusal := w.wantStatus(err, 403); !strings.Contains(refusal.Message, text) {
		w.Errorf("refused with %q, want %q", refusal.Message, text)
	}
}

func TestLockedConversation(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	w.no(w.repo.Grant("walt", embedded.Write))
	before, err := pr.Comment("rita", "/rebench")
	w.no(err)
	alice, bot := w.described(d, w.hub.CreateToken("alice")), w.described(d, w.inst.Token())
	w.no(pr.Lock("alice", "too heated"))

	say := &github.IssueComment{Body: github.String("hello")}
	_, _, err = bot.Issues.CreateComment(w.ctx, "alice", "kernels", 1, say)
	w.refused(err, "Unable to create comment because issue is locked.")
	_, _, err = w.person("rita").Issues.CreateComment(w.ctx, "alice", "kernels", 1, say)
	w.refused(err, "issue is locked")
	_, _, err = w.person("walt").Issues.CreateComment(w.ctx, "alice", "kernels", 1, say)
	w.no(err)
	for name, c := range map[string]*github.Client{"the App": bot, "one who may write": w.person("walt"), "the owner": alice} {
		if _, _, err := c.Reactions.CreateIssueCommentReaction(w.ctx, "alice", "kernels", before.ID, "eyes"); err == nil {
			t.Errorf("%s could react", name)
		} else {
			w.refused(err, "locked")
		}
	}
	if before.React("walt", "eyes") == nil || pr.Review("rita", "COMMENT", "words") == nil {
		t.Error("a reaction or a stranger's review went through")
	}
	got, _, err := bot.PullRequests.Get(w.ctx, "alice", "kernels", 1)
	w.no(err)
	if !got.GetLocked() || got.GetActiveLockReason() != "too heated" {
		t.Errorf("locked %v for %q", got.GetLocked(), got.GetActiveLockReason())
	}
	w.check(w.bot(), pr.HeadSHA(), "kernelgate", "success") // a lock does not stop checks
	if pr.Unlock("rita") == nil {
		t.Error("a stranger could unlock")
	}
	w.no(pr.Unlock("alice"))
	_, _, err = bot.Reactions.CreateIssueCommentReaction(w.ctx, "alice", "kernels", before.ID, "eyes")
	w.no(err)
	w.quiet()
	if names := w.hooks.names(); count(names, "pull_request.locked") != 1 || count(names, "pull_request.unlocked") != 1 {
		t.Errorf("events: %v", names)
	}
}

func TestArchivedRepositoryIsReadOnly(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	bot := w.described(d, w.inst.Token())
	w.repo.Archive()
	const why = "Repository was archived so is read-only."
	_, _, err := bot.Checks.CreateCheckRun(w.ctx, "alice", "kernels", github.CreateCheckRunOptions{Name: "kernelgate", HeadSHA: pr.HeadSHA()})
	w.refused(err, why)
	_, _, err = w.bot().Issues.CreateComment(w.ctx, "alice", "kernels", 1, &github.IssueComment{Body: github.String("hello")})
	w.refused(err, why)
	if _, err := w.repo.Push("faster", map[string]string{"a.cu": "x\n"}, "x"); err == nil {
		t.Error("a push went through")
	}
	if _, err := pr.Comment("alice", "hello"); err == nil {
		t.Error("a comment went through")
	}
	listed, _, err := bot.Apps.ListRepos(w.ctx, nil)
	w.no(err)
	if !listed.Repositories[0].GetArchived() {
		t.Error("the list does not say so")
	}
	w.quiet()
	if e := last[*github.RepositoryEvent](w); e.GetAction() != "archived" || !e.Repo.GetArchived() || e.Installation.GetID() != w.inst.ID() {
		t.Errorf("event: %s", e.GetAction())
	}
	w.repo.Unarchive()
	w.check(w.bot(), pr.HeadSHA(), "kernelgate", "success")
	w.repo.Disable()
	_, _, err = w.bot().Repositories.Get(w.ctx, "alice", "kernels")
	w.refused(err, "Repository access blocked")
	listed, _, err = bot.Apps.ListRepos(w.ctx, nil)
	w.no(err)
	if !listed.Repositories[0].GetDisabled() {
		t.Error("the list does not say that it is disabled")
	}
}

func TestRenamedRepositoryIsFoundUnderItsOldName(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	old := w.repo.CloneURL()
	bot := w.described(d, w.inst.Token())
	w.no(w.repo.Rename("cuda"))
	w.quiet()
	if e := last[*github.RepositoryEvent](w); e.GetAction() != "renamed" || e.Repo.GetFullName() != "alice/cuda" || *e.Changes.Repo.Name.From != "kernels" {
		t.Errorf("event: %s of %s", e.GetAction(), e.Repo.GetFullName())
	}
	direct := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for method, status := range map[string]int{"GET": 301, "POST": 307} {
		rq, err := http.NewRequest(method, w.hub.URL()+"/repos/alice/kernels/issues/1/comments?per_page=5", strings.NewReader(`{"body":"x"}`))
		w.no(err)
		rq.Header.Set("Authorization", "Bearer "+w.inst.Token())
		answer, err := direct.Do(rq)
		w.no(err)
		_ = answer.Body.Close()
		if at := answer.Header.Get("Location"); answer.StatusCode != status || !strings.Contains(at, "/repositories/") || !strings.HasSuffix(at, "/issues/1/comments?per_page=5") {
			t.Errorf("%s answers %d, at %s", method, answer.StatusCode, at)
		}
	}
	// The client follows the redirect.
	found, _, err := bot.Repositories.Get(w.ctx, "alice", "kernels")
	w.no(err)
	if found.GetFullName() != "alice/cuda" || found.GetID() != w.repo.ID() {
		t.Errorf("found %s", found.GetFullName())
	}
	_, _, err = w.bot().Issues.CreateComment(w.ctx, "alice", "kernels", 1, &github.IssueComment{Body: github.String("still here")})
	w.no(err)
	if got := pr.Comments(); len(got) != 1 || got[0].Body != "still here" {
		t.Errorf("comments: %v", got)
	}
	dir := t.TempDir()
	w.mustGit(dir, "clone", "--quiet", withToken(old, w.inst.Token()), filepath.Join(dir, "work"))

	other, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "acme", Name: "others"})
	w.no(err)
	theirs, err := w.app.Install(other)
	w.no(err)
	w.no(w.repo.Transfer("acme"))
	w.quiet()
	if e := last[*github.RepositoryEvent](w); e.GetAction() != "transferred" || e.Repo.GetFullName() != "acme/cuda" || e.Installation.GetID() != theirs.ID() {
		t.Errorf("event: %s of %s", e.GetAction(), e.Repo.GetFullName())
	}
	for _, name := range []string{"kernels", "cuda"} {
		found, _, err := w.client(theirs.Token()).Repositories.Get(w.ctx, "alice", name)
		w.no(err)
		if found.GetFullName() != "acme/cuda" {
			t.Errorf("alice/%s leads to %s", name, found.GetFullName())
		}
	}
	// A new repository takes the name over.
	_, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "kernels"})
	w.no(err)
	found, _, err = w.client(theirs.Token()).Repositories.Get(w.ctx, "alice", "kernels")
	w.no(err)
	if found.GetID() == w.repo.ID() {
		t.Error("a name that was taken again still leads away")
	}
}

func TestRenamedAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	w.no(w.hub.RenameAccount("alice", "alicia"))
	w.quiet()
	e := last[*github.InstallationTargetEvent](w)
	if e.Account.GetLogin() != "alicia" || e.Changes.Login.GetFrom() != "alice" || e.Installation.GetID() != w.inst.ID() {
		t.Errorf("event: %v", e)
	}
	found, _, err := w.bot().Repositories.Get(w.ctx, "alice", "kernels")
	w.no(err)
	if found.GetFullName() != "alicia/kernels" {
		t.Errorf("found %s", found.GetFullName())
	}
	if w.hub.RenameAccount("alice", "x") == nil {
		t.Error("nobody was renamed")
	}
}

func TestSuspendedAndDeletedInstallation(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, embedded.Options{})
	key, err := testKey()
	w.no(err)
	app := w.described(d, w.jwt(key, 5*time.Minute))
	token := w.inst.Token()
	w.inst.Suspend()
	_, _, err = app.Apps.CreateInstallationToken(w.ctx, w.inst.ID(), nil)
	w.refused(err, "This installation has been suspended")
	_, _, err = w.client(token).Repositories.Get(w.ctx, "alice", "kernels")
	w.refused(err, "This installation has been suspended")
	seen, _, err := app.Apps.ListInstallations(w.ctx, nil)
	w.no(err)
	if len(seen) != 1 || seen[0].GetSuspendedAt().IsZero() || seen[0].GetSuspendedBy().GetLogin() != "alice" {
		t.Errorf("installations: %v", seen)
	}
	w.quiet()
	heard := len(w.hooks.all())
	w.opened()
	w.quiet()
	if n := len(w.hooks.all()); n != heard {
		t.Errorf("a suspended App was told of %v", w.hooks.names()[heard:])
	}
	w.inst.Unsuspend()
	_, _, err = w.client(token).Repositories.Get(w.ctx, "alice", "kernels")
	w.no(err)
	w.inst.Uninstall()
	_, _, err = app.Apps.CreateInstallationToken(w.ctx, w.inst.ID(), nil)
	w.wantStatus(err, 404)
	_, _, err = w.client(token).Repositories.Get(w.ctx, "alice", "kernels")
	w.wantStatus(err, 401)
	w.quiet()
	for _, name := range []string{"installation.suspend", "installation.unsuspend", "installation.deleted"} {
		if count(w.hooks.names(), name) != 1 {
			t.Errorf("%d of %s", count(w.hooks.names(), name), name)
		}
	}
}

// TestTroubleOfOneInstallation checks that the hub refuses one installation and still serves the
// other.
func TestTroubleOfOneInstallation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	theirRepo, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "acme", Name: "others"})
	w.no(err)
	theirs, err := w.app.Install(theirRepo)
	w.no(err)
	key, err := testKey()
	w.no(err)
	app := w.client(w.jwt(key, 5*time.Minute))
	tokens := func(in *embedded.Installation) error {
		_, _, err := app.Apps.CreateInstallationToken(w.ctx, in.ID(), nil)
		return err
	}
	calls := func(in *embedded.Installation, owner, name string) error {
		_, _, err := w.client(in.Token()).Repositories.Get(w.ctx, owner, name)
		return err
	}
	w.hub.SetAllowList("alice", true)
	w.refused(tokens(w.inst), "the `alice` organization has an IP allow list enabled")
	w.refused(calls(w.inst, "alice", "kernels"), "IP allow list")
	_, _, err = w.nobody().Repositories.Get(w.ctx, "alice", "kernels") // the repository is public
	w.no(err)
	w.no(calls(theirs, "acme", "others"))
	w.hub.SetAllowList("alice", false)
	w.no(calls(w.inst, "alice", "kernels"))
}

func TestReviews(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	bot := w.described(d, w.inst.Token())
	w.no(pr.Review("bob", "APPROVE", "/rebench"))
	if err := pr.Review("alice", "APPROVE", ""); err == nil {
		t.Error("an author approved her own")
	}
	c, err := pr.CommentOn("bob", "a.cu", 1, "/rebench")
	w.no(err)
	if _, err := pr.CommentOn("bob", "b.cu", 1, "not in the diff"); err == nil {
		t.Error("a comment stands outside of the diff")
	}
	_, _, err = bot.Reactions.CreatePullRequestCommentReaction(w.ctx, "alice", "kernels", c.ID, "eyes")
	w.no(err)
	// This is the id of a different kind of comment.
	_, _, err = w.bot().Reactions.CreateIssueCommentReaction(w.ctx, "alice", "kernels", c.ID, "eyes")
	w.wantStatus(err, 404)
	reviews, _, err := bot.PullRequests.ListReviews(w.ctx, "alice", "kernels", 1, nil)
	w.no(err)
	if len(reviews) != 2 || reviews[0].GetState() != "APPROVED" || reviews[0].GetCommitID() != pr.HeadSHA() {
		t.Errorf("reviews: %v", reviews)
	}
	if got := pr.LineComments(); len(got) != 1 || len(got[0].Reactions["eyes"]) != 1 || len(pr.Comments()) != 0 {
		t.Errorf("comments on lines: %v", got)
	}
	w.quiet()
	if e := last[*github.PullRequestReviewEvent](w); e.Review.GetState() != "approved" || e.Review.GetBody() != "/rebench" || e.PullRequest.GetNumber() != 1 {
		t.Errorf("event: %v", e.Review)
	}
	if e := last[*github.PullRequestReviewCommentEvent](w); e.Comment.GetID() != c.ID || e.Comment.GetPullRequestReviewID() != reviews[1].GetID() {
		t.Errorf("event: %v", e.Comment)
	}
}

// TestDismissalsAndMoves checks that users with write access can dismiss a review, and that the
// events of a pull request list the changes of its base branch.
func TestDismissalsAndMoves(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	bot := w.described(d, w.inst.Token())
	w.no(pr.Review("bob", "APPROVE", ""))
	if pr.Dismiss("bob", "alice") == nil || pr.Dismiss("nobody", "bob") == nil {
		t.Error("a stranger, or a review that is not there, was dismissed")
	}
	w.no(pr.Dismiss("alice", "bob"))
	if pr.Dismiss("alice", "bob") == nil {
		t.Error("dismissed twice")
	}
	reviews, _, err := bot.PullRequests.ListReviews(w.ctx, "alice", "kernels", 1, nil)
	w.no(err)
	if len(reviews) != 1 || reviews[0].GetState() != "DISMISSED" {
		t.Errorf("reviews: %v", reviews)
	}
	_, err = w.repo.Push("next", map[string]string{"NEXT": "x"}, "next")
	w.no(err)
	w.no(pr.Edit("alice", "", "", "next"))
	events, _, err := bot.Issues.ListIssueEvents(w.ctx, "alice", "kernels", 1, nil)
	w.no(err)
	if len(events) != 1 || events[0].GetEvent() != "base_ref_changed" || !events[0].GetCreatedAt().Time.Equal(w.clock.Now()) {
		t.Errorf("events: %v", events)
	}
	w.quiet()
	if e := last[*github.PullRequestReviewEvent](w); e.GetAction() != "dismissed" || e.Review.GetState() != "dismissed" || e.Sender.GetLogin() != "alice" {
		t.Errorf("event: %v", e)
	}
}

func TestUserOfAToken(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, embedded.Options{})
	me, _, err := w.described(d, w.hub.CreateToken("alice")).Users.Get(w.ctx, "")
	w.no(err)
	if me.GetLogin() != "alice" || me.GetHTMLURL() != w.hub.URL()+"/alice" {
		t.Errorf("alice is %s at %s", me.GetLogin(), me.GetHTMLURL())
	}
	_, _, err = w.bot().Users.Get(w.ctx, "")
	w.refused(err, "Resource not accessible by integration")
	_, _, err = w.nobody().Users.Get(w.ctx, "")
	w.wantStatus(err, 401)
	pr := w.opened()
	written, _, err := w.described(d, w.inst.Token()).Issues.CreateComment(w.ctx, "alice", "kernels", pr.Number(), &github.IssueComment{Body: github.String("hello")})
	w.no(err)
	if bot := written.User; bot.GetType() != "Bot" || bot.GetHTMLURL() != w.hub.URL()+"/apps/kernelgate" || bot.GetURL() != w.hub.URL()+"/users/kernelgate%5Bbot%5D" {
		t.Errorf("the bot is a %s at %s and %s", bot.GetType(), bot.GetHTMLURL(), bot.GetURL())
	}
}
