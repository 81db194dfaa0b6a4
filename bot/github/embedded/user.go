package embedded

import (
	"fmt"
	"slices"
	"time"
)

// A Role says what a user may do in one repository.
type Role string

// The roles, in rising order.
const (
	None     Role = "none"
	Read     Role = "read"
	Triage   Role = "triage"
	Write    Role = "write"
	Maintain Role = "maintain"
	Admin    Role = "admin"
)

func (r Role) rank() int {
	return slices.Index([]Role{None, Read, Triage, Write, Maintain, Admin}, r)
}

// atLeast reports whether r includes want. An empty role ranks below None.
func (r Role) atLeast(want Role) bool { return r.rank() >= want.rank() }

// legacy returns the role as the older field of the permission endpoint names it.
func (r Role) legacy() string {
	switch r {
	case Maintain:
		return string(Write)
	case Triage:
		return string(Read)
	case "":
		return string(None)
	}
	return string(r)
}

type account struct {
	id     int64
	login  string
	kind   string // User, Organization or Bot
	closed bool   // by an IP allow list that contains none of our addresses
}

// A token is a personal access token or an installation token.
type token struct {
	value   string
	user    *account
	inst    *Installation
	expires time.Time
	perms   map[string]string // installation tokens only: permissions
	repos   []*Repo           // installation tokens only: repositories, nil for all of the installation
}

// CreateUser creates a user. It does nothing if the user exists.
func (s *Server) CreateUser(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user(login)
}

// CreateOrg creates an organisation, which can own repositories.
func (s *Server) CreateOrg(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user(login).kind = "Organization"
}

// CreateToken creates a personal access token with the scope "repo".
func (s *Server) CreateToken(login string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &token{value: s.secret("ghp_"), user: s.user(login)}
	s.tokens[t.value] = t
	return t.value
}

// RevokeToken invalidates a personal or an installation token at once.
func (s *Server) RevokeToken(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, value)
}

func (s *Server) user(login string) *account {
	u := s.users[login]
	if u == nil {
		u = &account{id: s.id(), login: login, kind: "User"}
		s.users[login] = u
	}
	return u
}

// Grant gives a user a role in the repository. None removes the user's role.
func (r *Repo) Grant(login string, role Role) error {
	if role.rank() < 0 {
		return fmt.Errorf("grant %s a role in %s: no role %q; use read, triage, write, maintain, admin or none", login, r.FullName(), role)
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.roles[r.s.user(login)] = role
	r.s.touch()
	return nil
}

// role returns the user's role here: Admin for the owner, the granted role, or the role of the
// public.
func (r *Repo) role(u *account) Role {
	if u == r.owner {
		return Admin
	}
	if role := r.roles[u]; role.rank() > 0 {
		return role
	}
	if r.private {
		return None
	}
	return Read
}

// association returns the word that GitHub shows next to an author's name.
func (r *Repo) association(u *account) string {
	role := r.roles[u]
	switch {
	case u == r.owner:
		return "OWNER"
	case role.rank() > 0 && r.owner.kind == "Organization":
		return "MEMBER"
	case role.rank() > 0:
		return "COLLABORATOR"
	}
	return "NONE"
}
