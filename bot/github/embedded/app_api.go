package embedded

import (
	"net/http"
	"slices"

	"github.com/google/go-github/v60/github"
)

func getApp(rq *request, app *App) error {
	out := app.render()
	out.InstallationsCount = ptr(len(app.insts))
	return rq.ok(out)
}

func listInstallations(rq *request, app *App) error {
	return rq.ok(each(page(rq, app.insts), (*Installation).render))
}

func (rq *request) installation() (*Installation, error) {
	app, err := needApp(rq)
	if err != nil {
		return nil, err
	}
	return byID(rq, app.insts)
}

func (in *Installation) number() int64 { return in.id }

// tokenEntry has the selection that go-github's struct lacks.
type tokenEntry struct {
	github.InstallationToken
	Selection string `json:"repository_selection"`
}

// postAccessToken makes a token for all of the installation, or for less.
func postAccessToken(rq *request, in *Installation) error {
	var want struct {
		IDs         []int64  `json:"repository_ids"`
		Names       []string `json:"repositories"`
		Permissions map[string]string
	}
	if err := rq.read(&want); err != nil {
		return err
	}
	var repos []*Repo
	for _, r := range in.repos {
		if slices.Contains(want.IDs, r.id) || slices.Contains(want.Names, r.name) {
			repos = append(repos, r)
		}
	}
	if asked := len(want.IDs) + len(want.Names); len(repos) < asked {
		return &apiError{Status: 422, Message: "There is at least one repository that does not exist or is not accessible to the parent installation."}
	}
	for name, level := range want.Permissions {
		if has := in.app.opt.Permissions[name]; has != "write" && has != level {
			return &apiError{Status: 422, Message: "The permissions requested are not granted to this installation."}
		}
	}
	switch {
	case in.suspended():
		return in.refused()
	case in.account.closed:
		return in.account.closedTo()
	case in.noTokens != nil:
		return in.noTokens
	}
	t := in.issue(want.Permissions, repos)
	return rq.reply(http.StatusCreated, tokenEntry{Selection: "selected",
		InstallationToken: github.InstallationToken{Token: &t.value, ExpiresAt: when(t.expires), Permissions: permissions(t.perms)}})
}

func listInstallationRepos(rq *request) error {
	in := rq.actor.inst()
	if in == nil {
		return forbidden("Resource not accessible by personal access token")
	}
	all := slices.DeleteFunc(slices.Clone(in.repos), func(r *Repo) bool { return !rq.actor.reaches(r) })
	return rq.ok(map[string]any{"total_count": len(all), "repository_selection": "selected", "repositories": each(page(rq, all), (*Repo).render)})
}

func getRepoInstallation(rq *request, app *App) error {
	r := rq.s.repo(rq.PathValue("owner"), rq.PathValue("repo"))
	if r == nil {
		return errNotFound()
	}
	in := app.installationFor(r)
	if in == nil {
		return errNotFound()
	}
	return rq.ok(in.render())
}
