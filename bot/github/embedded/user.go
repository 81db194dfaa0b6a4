package embedded

import (
	"fmt"
	"slices"
	"time"
)

// A Role is what a user may do in one repository.
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

// atLeast also holds for no role at all, which ranks below None.
func (r Role) atLeast(want Role) bool { return r.rank() >= want.rank() }

// legacy is the role in the words of the permission endpoint's older field.
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
	closed bool   // by an IP allow list that has no address of ours
}

// A token is a personal access token, or an installation's.
type token struct {
	value   string
	user    *account
	inst    *Installation
	expires time.Time
	perms   map[string]string // installation tokens: what it may do
	repos   []*Repo           // installation tokens: where, nil for all of the installation's
}

// CreateUser makes a person. Making one twice is no error.
func (s *Server) CreateUser(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user(login)
}

// CreateOrg makes an organisation, which can own repositories.
func (s *Server) CreateOrg(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user(login).kind = "Organization"
}

// CreateToken gives a user a personal access token with the scope "repo".
func (s *Server) CreateToken(login string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &token{value: s.secret("ghp_"), user: s.user(login)}
	s.tokens[t.value] = t
	return t.value
}

// RevokeToken makes a personal or an installation token invalid at once.
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

// Grant gives a user a role in the repository; None takes it away.
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

// role is what the user may do here: the owner everything, a stranger what
// everyone may.
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

// association is the word GitHub puts beside an author's name.
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
