// Package repos keeps the repositories that a bot watches, by their numbers. GitHub may rename, transfer, archive or delete a
// repository, and the App may be removed from it. Work on a repository goes on by its new name, waits while it is suspended,
// or ends. The registry is only in memory: the resync at the start fills it again.
package repos

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// A Registry holds the current names of the watched repositories, and which of them are suspended.
type Registry struct {
	watch []string // the configuration's; empty is all
	log   *slog.Logger

	mu        sync.Mutex
	names     map[int64]string
	suspended map[int64]string // why a repository has ended; "" while it may come back by itself
}

// New watches the named repositories; without any, all that deliveries and installations name.
func New(watch []string, log *slog.Logger) *Registry {
	r := &Registry{watch: watch, log: log}
	r.Reset()
	return r
}

// Reset forgets every repository.
func (r *Registry) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names, r.suspended = map[int64]string{}, map[int64]string{}
}

// Watches tells whether the configuration includes a repository of that name, owner/name.
func (r *Registry) Watches(name string) bool {
	return len(r.watch) == 0 || slices.ContainsFunc(r.watch, func(w string) bool { return strings.EqualFold(w, name) })
}

// Known tells whether a repository is watched, under its present name or under one that it had before.
func (r *Registry) Known(repo webhook.Repository) bool {
	return r.Name(repo.ID) != "" || r.Watches(repo.FullName)
}

// Name is the current name of a watched repository; "" where nobody has named it yet.
func (r *Registry) Name(id int64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[id]
}

// Names is the current name of every watched repository.
func (r *Registry) Names() map[int64]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.names)
}

// Observe tells whether the repository of a delivery is watched. A delivery may be late, so it does not
// replace a name that is known.
func (r *Registry) Observe(repo webhook.Repository) bool {
	if !r.Known(repo) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[repo.ID] == "" {
		r.names[repo.ID] = repo.FullName
	}
	return true
}

// Rename sets the name that GitHub has for a repository now.
func (r *Registry) Rename(id int64, name string) {
	r.mu.Lock()
	was := r.names[id]
	r.names[id] = name
	r.mu.Unlock()
	if was == "" || was == name {
		return
	}
	r.log.Info("a repository has another name", "repo", name, "was", was)
	if r.Watches(was) && !r.Watches(name) {
		r.log.Warn("the configuration's repositories has a name that is gone: change it before the next start", "repo", name, "was", was)
	}
}

// Of is the known repositories of an account.
func (r *Registry) Of(login string) []webhook.Repository {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []webhook.Repository
	for id, name := range r.names {
		if repo := (webhook.Repository{ID: id, FullName: name}); strings.EqualFold(repo.Owner(), login) {
			all = append(all, repo)
		}
	}
	return all
}

// Suspend stops work on a repository until Resume.
func (r *Registry) Suspend(id int64, name string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, already := r.suspended[id]; !already {
		r.suspended[id] = ""
		r.log.Info("a repository is skipped until that changes", "repo", name, "why", why)
	}
}

// End suspends a repository that nobody can reach any more: what is open there ends for this reason.
func (r *Registry) End(id int64, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspended[id] = why
}

// Resume lets work on a repository go on.
func (r *Registry) Resume(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.suspended, id)
}

// Suspended tells whether work on a repository is stopped.
func (r *Registry) Suspended(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, suspended := r.suspended[id]
	return suspended
}

// Ended is why a repository has ended; "" where it has not.
func (r *Registry) Ended(id int64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suspended[id]
}
