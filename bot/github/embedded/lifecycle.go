package embedded

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/google/go-github/v60/github"
)

// Archive makes the repository read-only, as its owner; Unarchive makes it writable again.
func (r *Repo) Archive()   { r.archive(true, "archived") }
func (r *Repo) Unarchive() { r.archive(false, "unarchived") }

func (r *Repo) archive(archived bool, action string) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.archived = archived
	r.emit(r.owner, "repository", action, nil, &github.RepositoryEvent{})
}

// Disable closes the repository to everybody, as GitHub does when a repository breaks its rules. No
// webhook is sent.
func (r *Repo) Disable() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.disabled = true
}

// writable returns an error if the repository is archived or unusable.
func (r *Repo) writable() error {
	if r.archived {
		return forbidden("Repository was archived so is read-only.")
	}
	return r.usable()
}

func (r *Repo) usable() error {
	if r.disabled {
		return forbidden("Repository access blocked")
	}
	return nil
}

// Rename changes the repository's name within its account. The old name redirects to the new one.
func (r *Repo) Rename(name string) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.s.repo(r.owner.login, name) != nil {
		return invalid("Repository", "name", "custom", "name already exists on this account")
	}
	from := r.name
	r.s.takeName(r.owner.login + "/" + name)
	r.was, r.name = append(r.was, r.fullName()), name
	changes := &github.EditChange{Repo: &github.EditRepo{Name: &github.RepoName{From: &from}}}
	r.emit(r.owner, "repository", "renamed", nil, &github.RepositoryEvent{Changes: changes})
	return nil
}

// Transfer moves the repository to another account. Apps that are installed there keep access to
// it.
func (r *Repo) Transfer(login string) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.s.repo(login, r.name) != nil {
		return invalid("Repository", "name", "custom", "name already exists on this account")
	}
	from, to := r.owner, r.s.user(login)
	r.s.takeName(login + "/" + r.name)
	r.was, r.owner = append(r.was, r.fullName()), to
	for _, app := range r.s.apps {
		for _, in := range app.insts {
			if in.account == from && slices.Contains(in.repos, r) {
				in.move(r, "removed")
			}
		}
		for _, in := range app.insts {
			if in.account == to {
				in.move(r, "added")
			}
		}
	}
	info := &github.OwnerInfo{User: from.render(r.s.url)}
	if from.kind == "Organization" {
		info = &github.OwnerInfo{Org: from.render(r.s.url)}
	}
	changes := &github.EditChange{Owner: &github.EditOwner{OwnerInfo: info}}
	r.emit(from, "repository", "transferred", nil, &github.RepositoryEvent{Changes: changes})
	return nil
}

// Delete deletes the repository.
func (r *Repo) Delete() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.emit(r.owner, "repository", "deleted", nil, &github.RepositoryEvent{})
	r.s.repos = slices.DeleteFunc(r.s.repos, func(other *Repo) bool { return other == r })
	for _, app := range r.s.apps {
		for _, in := range app.insts {
			in.repos = slices.DeleteFunc(in.repos, func(other *Repo) bool { return other == r })
		}
	}
}

// RenameAccount changes the login of a user or an organisation. The old names of its repositories
// redirect to the new ones.
func (s *Server) RenameAccount(from, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[from]
	if u == nil || s.users[to] != nil {
		return fmt.Errorf("rename account %s to %s: there must be the one and not the other", from, to)
	}
	for _, r := range s.repos {
		if r.owner == u {
			r.was = append(r.was, r.fullName())
		}
	}
	delete(s.users, from)
	u.login, s.users[to] = to, u
	for _, r := range s.repos {
		if r.owner == u {
			s.takeName(r.fullName())
		}
	}
	for _, app := range s.apps {
		for _, in := range app.insts {
			if in.account == u {
				app.hook.send("installation_target", "renamed", nil, &github.InstallationTargetEvent{Action: ptr("renamed"), Account: u.render(s.url),
					Changes: &github.InstallationChanges{Login: &github.InstallationLoginChange{From: &from}}, TargetType: &u.kind, Installation: in.renderShort()})
			}
		}
	}
	s.touch()
	return nil
}

// SetAllowList turns an account's IP allow list on or off. The list contains no caller's address.
func (s *Server) SetAllowList(login string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user(login).closed = on
}

func (u *account) closedTo() error {
	return forbidden(fmt.Sprintf("Although you appear to have the correct authorization credentials, the `%s` organization has an IP allow list enabled, "+
		"and your IP address is not permitted to access this resource.", u.login))
}

// redirect answers a call to a repository by one of its former names.
func (rq *request) redirect(to *Repo, rest string) error {
	status := http.StatusTemporaryRedirect
	if rq.Method == http.MethodGet {
		status = http.StatusMovedPermanently
	}
	at := fmt.Sprintf("%s%s/repositories/%d%s", rq.s.url, rq.mount, to.id, rest)
	if rq.URL.RawQuery != "" {
		at += "?" + rq.URL.RawQuery
	}
	rq.header.Set("Location", at)
	return rq.reply(status, map[string]string{"message": "Moved Permanently", "url": at, "documentation_url": docs + "/guides/best-practices-for-using-the-rest-api#follow-redirects"})
}
