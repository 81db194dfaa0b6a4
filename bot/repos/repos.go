// Package repos keeps the repositories that a bot watches, by their numbers. GitHub may rename, transfer, archive or delete a
// repository, and the App may be removed from it. Work on a repository goes on by its new name, waits while it is suspended,
// or ends. A name belongs to one repository at a time, and may go to a different one. The registry is only in memory: the
// resync at the start fills it again. The events of this package tell the pages what became of a repository.
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
	confirmed map[int64]bool   // those whose number and name GitHub has said together since the last Reset
	ends      Moment           // the calls of End
	endedAt   map[int64]Moment // the last one of a repository
	doubtful  map[int64]*doubt // repositories that had ended and that only a delivery has brought back
}

// A doubt is why a repository had ended, and how often GitHub has said since that it is not there.
type doubt struct {
	why     string
	denials int
}

// A Moment says which ends of repositories came before a question to GitHub, and which while it was answered.
type Moment int

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
	r.names, r.suspended, r.confirmed, r.endedAt, r.doubtful = map[int64]string{}, map[int64]string{}, map[int64]bool{}, map[int64]Moment{}, map[int64]*doubt{}
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
// replace a name that is known, and one of a repository that has ended takes no name from another. A repository that has lost its name
// to a different one has none until GitHub lists it.
func (r *Registry) Observe(repo webhook.Repository) bool {
	if !r.Known(repo) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name, seen := r.names[repo.ID]
	if seen {
		return name != ""
	}
	if r.suspended[repo.ID] != "" && r.isTaken(repo.ID, repo.FullName) {
		return false
	}
	r.claim(repo.ID, repo.FullName)
	return true
}

// isTaken reports whether another repository has a name. The caller holds the lock.
func (r *Registry) isTaken(id int64, name string) bool {
	for other, its := range r.names {
		if other != id && strings.EqualFold(its, name) {
			return true
		}
	}
	return false
}

// claim gives a name to a repository, and takes it from a different one that had it: GitHub gives no name twice, so that one
// was renamed or deleted, and work on it must not reach its successor. The caller holds the lock.
func (r *Registry) claim(id int64, name string) {
	for other, its := range r.names {
		if other != id && strings.EqualFold(its, name) {
			r.names[other] = ""
			delete(r.confirmed, other)
			if _, already := r.suspended[other]; !already {
				r.suspended[other] = ""
			}
			r.log.Warn("a repository has the name of another, which is skipped until GitHub says its new name", "repo", name, "id", id, "other", other)
		}
	}
	r.names[id], r.confirmed[id] = name, true
}

// Confirmed tells whether GitHub has said the number and the name of a repository together since the last Reset. A name from
// the journal may belong to a different repository by now.
func (r *Registry) Confirmed(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.confirmed[id]
}

// Confirm notes that a repository has this name at GitHub, also one that is not watched any more.
func (r *Registry) Confirm(id int64, name string) {
	if r.Known(webhook.Repository{ID: id, FullName: name}) {
		r.Rename(id, name)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirmed[id] = true
}

// Rename sets the name that GitHub has for a repository now.
func (r *Registry) Rename(id int64, name string) {
	r.mu.Lock()
	was := r.names[id]
	r.claim(id, name)
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
	r.ends++
	r.suspended[id], r.endedAt[id] = why, r.ends
	delete(r.doubtful, id)
}

// Moment is taken before GitHub is asked which repositories there are.
func (r *Registry) Moment() Moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ends
}

// EndedSince tells whether a repository ended after a question of that moment, so that an answer which has it is no news.
func (r *Registry) EndedSince(id int64, asked Moment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endedAt[id] > asked
}

// Resume lets work on a repository go on, because an answer to a question of that moment has it. It reports whether it does: an answer
// is no news of a repository that ended after the question.
func (r *Registry) Resume(id int64, asked Moment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.endedAt[id] > asked {
		return false
	}
	delete(r.suspended, id)
	delete(r.doubtful, id)
	return true
}

// Revive lets work on a repository go on, because a delivery says that it is there, perhaps under another name. The delivery may be
// late. So if the repository had ended, it is doubtful until GitHub has been asked, and until then it cannot take the name of another
// repository.
func (r *Registry) Revive(id int64, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.suspended[id]; why != "" {
		r.doubtful[id] = &doubt{why: why}
	}
	if r.doubtful[id] != nil && !r.isTaken(id, name) {
		r.claim(id, name)
	}
	delete(r.suspended, id)
}

// Doubtful tells whether a delivery has brought back a repository that had ended, and no answer yet.
func (r *Registry) Doubtful(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubtful[id] != nil
}

// Gone tells whether a repository has ended, and no answer of GitHub has brought it back since.
func (r *Registry) Gone(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suspended[id] != "" || r.doubtful[id] != nil
}

// Deny counts an answer that a doubtful repository is not there. It returns why the repository had ended, and how many such answers
// there were: one may be older than the repository's return.
func (r *Registry) Deny(id int64) (why string, denials int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.doubtful[id]
	if d == nil {
		return "", 0
	}
	d.denials++
	return d.why, d.denials
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
