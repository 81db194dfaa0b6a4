package embedded

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

// An Installation is an App installed in one account.
type Installation struct {
	app         *App
	id          int64
	account     *account
	repos       []*Repo
	created     time.Time
	suspendedAt time.Time // set while the account suspends the App
}

// Install installs the App in the account that owns the repositories.
func (a *App) Install(repos ...*Repo) (*Installation, error) {
	if len(repos) == 0 {
		return nil, fmt.Errorf("install app %s: no repository given", a.opt.Slug)
	}
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	in := &Installation{app: a, id: a.s.id(), account: repos[0].owner, created: a.s.now()}
	for _, r := range repos {
		if r.owner != in.account {
			return nil, fmt.Errorf("install app %s: %s and %s have different owners; install it once for each", a.opt.Slug, repos[0].fullName(), r.fullName())
		}
		in.repos = append(in.repos, r)
	}
	a.insts = append(a.insts, in)
	in.emit("created")
	return in, nil
}

// Uninstall removes the App from the account and invalidates its tokens.
func (in *Installation) Uninstall() {
	in.app.s.mu.Lock()
	defer in.app.s.mu.Unlock()
	in.app.insts = slices.DeleteFunc(in.app.insts, func(other *Installation) bool { return other == in })
	maps.DeleteFunc(in.app.s.tokens, func(_ string, t *token) bool { return t.inst == in })
	in.emit("deleted")
}

// Suspend stops the App in the account until Unsuspend. The App gets no new tokens and no events,
// and its old tokens are refused.
func (in *Installation) Suspend() {
	in.app.s.mu.Lock()
	defer in.app.s.mu.Unlock()
	in.suspendedAt = in.app.s.now()
	in.emit("suspend")
}

// Unsuspend ends a suspension.
func (in *Installation) Unsuspend() {
	in.app.s.mu.Lock()
	defer in.app.s.mu.Unlock()
	in.suspendedAt = time.Time{}
	in.emit("unsuspend")
}

func (in *Installation) suspended() bool { return !in.suspendedAt.IsZero() }

// emit sends an installation event to the App. Apps receive these events without a subscription.
func (in *Installation) emit(action string) {
	e := &github.InstallationEvent{Action: &action, Installation: in.render(), Sender: in.account.render(in.app.s.url)}
	if action == "created" || action == "deleted" {
		e.Repositories = each(in.repos, (*Repo).renderShort)
	}
	in.app.hook.send("installation", action, nil, e)
	in.app.s.touch()
}

// move adds a repository to the installation or removes it.
func (in *Installation) move(r *Repo, action string) {
	e := map[string]any{"action": action, "installation": in.render(), "sender": in.account.render(in.app.s.url), "repository_selection": "selected",
		"repositories_added": []any{}, "repositories_removed": []any{}, "requester": nil}
	e["repositories_"+action] = []*github.Repository{r.renderShort()}
	if action == "added" {
		in.repos = append(in.repos, r)
	} else {
		in.repos = slices.DeleteFunc(in.repos, func(other *Repo) bool { return other == r })
	}
	in.app.hook.send("installation_repositories", action, nil, e)
}

// refused returns the error for a call with one of the installation's tokens, or nil.
func (in *Installation) refused() error {
	if in.suspended() {
		return forbidden("This installation has been suspended")
	}
	return nil
}

// ID returns the installation's number.
func (in *Installation) ID() int64 { return in.id }

// Token issues an installation token without a JWT.
func (in *Installation) Token() string {
	in.app.s.mu.Lock()
	defer in.app.s.mu.Unlock()
	return in.issue(nil, nil).value
}

// issue creates a token. If perms or repos is nil, the token covers all that the installation has.
func (in *Installation) issue(perms map[string]string, repos []*Repo) *token {
	s := in.app.s
	if perms == nil {
		perms = in.app.opt.Permissions
	}
	t := &token{value: s.secret("ghs_"), inst: in, user: in.app.bot, perms: perms, repos: repos,
		expires: s.now().Add(time.Hour)}
	s.tokens[t.value] = t
	return t
}

func (in *Installation) render() *github.Installation {
	s := in.app.s
	out := &github.Installation{ID: &in.id, AppID: &in.app.id, AppSlug: &in.app.opt.Slug,
		TargetID: &in.account.id, TargetType: &in.account.kind, Account: in.account.render(s.url),
		AccessTokensURL: ptr(s.url + "/app/installations/" + itoa(in.id) + "/access_tokens"), RepositoriesURL: ptr(s.url + "/installation/repositories"),
		HTMLURL: ptr(s.url + "/settings/installations/" + itoa(in.id)), RepositorySelection: ptr("selected"), SuspendedAt: when(in.suspendedAt),
		Permissions: permissions(in.app.opt.Permissions), Events: in.app.opt.Events, CreatedAt: when(in.created), UpdatedAt: when(in.created)}
	if in.suspended() {
		out.SuspendedBy = in.account.render(s.url)
	}
	return out
}

// renderShort renders the form that events of a repository contain.
func (in *Installation) renderShort() *github.Installation {
	return &github.Installation{ID: &in.id, NodeID: ptr(nodeID("Installation", in.id))}
}
