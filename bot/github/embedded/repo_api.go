package embedded

import (
	"github.com/google/go-github/v60/github"
)

func getUser(rq *request) error {
	switch {
	case rq.actor.inst() != nil || rq.actor.app != nil:
		return forbidden("Resource not accessible by integration")
	case rq.actor.anonymous():
		return unauthorised("Requires authentication")
	}
	return rq.ok(rq.actor.user.renderFull(rq.s))
}

// renderRepo adds what the caller may do, which events do not say.
func (rq *request) renderRepo(r *Repo) *github.Repository {
	out := r.render()
	out.SubscribersCount, out.NetworkCount = ptr(0), out.ForksCount
	if u := rq.actor.user; u != nil && rq.actor.inst() == nil {
		out.Permissions = renderRole(r.role(u))
	}
	if r.parent != nil {
		out.Parent, out.Source = r.parent.render(), r.parent.render()
	}
	return out
}

func renderRole(role Role) map[string]bool {
	return map[string]bool{"pull": role.atLeast(Read), "triage": role.atLeast(Triage), "push": role.atLeast(Write),
		"maintain": role.atLeast(Maintain), "admin": role.atLeast(Admin)}
}

func getRepo(rq *request) error { return rq.ok(rq.renderRepo(rq.repo)) }

// permissionEntry has the role's own name, which go-github's struct lacks.
type permissionEntry struct {
	github.RepositoryPermissionLevel
	RoleName string `json:"role_name"`
}

func getPermission(rq *request) error {
	u := rq.s.users[rq.PathValue("login")]
	if u == nil {
		return &apiError{Status: 404, Message: rq.PathValue("login") + " is not a user"}
	}
	role := rq.repo.role(u)
	who := u.render(rq.s.url)
	who.Permissions, who.RoleName = renderRole(role), ptr(string(role))
	return rq.ok(permissionEntry{RoleName: string(role),
		RepositoryPermissionLevel: github.RepositoryPermissionLevel{Permission: ptr(role.legacy()), User: who}})
}
