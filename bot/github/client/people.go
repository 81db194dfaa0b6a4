package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// userLogin returns the login of the token's user. It is empty if GitHub does not say: the token of
// GitHub Actions, or of another App that a workflow uses, may not ask.
func (h *GitHub) userLogin(ctx context.Context) (string, error) {
	me := ""
	err := h.alone(ctx, op{name: "ask GitHub whose token this is"}, h.solo, func(ctx context.Context, c *github.Client) error {
		self, _, err := c.Users.Get(ctx, "")
		me = self.GetLogin()
		return err
	})
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusForbidden && h.opt.Checks {
		return "", nil
	}
	return me, err
}

// Permission returns a user's role in a repository: none, read, triage, write, maintain or admin.
func (h *GitHub) Permission(ctx context.Context, repo, login string) (policy.Role, error) {
	has, _, err := h.permission(ctx, repo, login, func(owner, name string) string { return "repos/" + owner + "/" + name })
	return has, err
}

// PermissionByID returns a user's role in the repository with a number, and the user's number. The
// name only says which installation to ask: GitHub answers about the number, whoever has the name
// now.
func (h *GitHub) PermissionByID(ctx context.Context, id int64, repo, login string) (policy.Role, int64, error) {
	return h.permission(ctx, repo, login, func(string, string) string { return fmt.Sprintf("repositories/%d", id) })
}

func (h *GitHub) permission(ctx context.Context, repo, login string, at func(owner, name string) string) (policy.Role, int64, error) {
	o := op{name: "ask for the role of " + login, permission: "Metadata: read"}
	if login == "" {
		return "", 0, &Error{Op: o.name, Repo: repo, Err: errors.New("the login is empty")}
	}
	var level struct {
		Permission string `json:"permission"`
		RoleName   string `json:"role_name"`
		User       struct {
			ID int64 `json:"id"`
		} `json:"user"`
	}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		return send(ctx, gh, "GET", at(owner, name)+"/collaborators/"+url.PathEscape(login)+"/permission", nil, &level)
	})
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusNotFound && strings.HasSuffix(e.Message, "is not a user") {
		return "none", 0, nil // an App, or an account that no longer exists
	}
	if err != nil {
		return "", 0, err
	}
	return role(level.Permission, level.RoleName), level.User.ID, nil
}

// bases maps GitHub's roles to the older and coarser permission of each.
var bases = map[string]string{"none": "none", "read": "read", "triage": "read", "write": "write", "maintain": "write", "admin": "admin"}

// role returns the finer role name if it is one of GitHub's and agrees with the coarser permission.
// An organisation may give its custom roles any name, so the name of a role proves no rights.
func role(permission, name string) policy.Role {
	if base, ok := bases[name]; ok && base == permission {
		return policy.Role(name)
	}
	switch permission {
	case "read", "write", "admin":
		return policy.Role(permission)
	}
	return "none"
}
