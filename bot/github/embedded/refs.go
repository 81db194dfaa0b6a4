package embedded

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/go-github/v60/github"
)

// queuePrefix is the prefix of the branches on which a merge queue tests its groups.
const queuePrefix = "gh-readonly-queue/"

// reconcile detects all changes of branches in git. Pushes over HTTP, commits by users and merges
// all call it, so each of them has the same effects.
func (r *Repo) reconcile(who *account) error {
	heads, err := r.git.heads()
	if err != nil {
		return err
	}
	before := r.heads
	r.heads = heads
	names := slices.Sorted(maps.Keys(heads))
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, still := heads[name]; !still {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if before[name] == heads[name] {
			continue
		}
		if err := r.moved(who, name, before[name], heads[name]); err != nil {
			return err
		}
	}
	r.s.touch()
	return r.noteRefs()
}

// moved applies the effects of a branch's move: events, check suites, and updates of the pull
// requests from it and to it.
func (r *Repo) moved(who *account, branch, before, after string) error {
	r.pushed = r.s.now()
	forced := before != "" && after != "" && !r.git.isAncestor(before, after)
	r.activities = append(r.activities, activity{who: who, branch: branch, before: before, after: after, forced: forced, at: r.pushed})
	r.emitPush(who, branch, before, after)
	if after != "" {
		r.arrived(after)
		r.requestSuites(branch, before, after)
	}
	for _, base := range r.s.repos {
		for _, pr := range base.pulls {
			if pr.state != "open" || pr.headRepo != r || pr.headRef != branch {
				continue
			}
			change := func() error { return pr.synchronize(who, after) }
			if after == "" {
				change = func() error { return pr.close(who) }
			}
			if err := change(); err != nil {
				return err
			}
		}
	}
	if after == "" {
		for _, g := range r.queue(branch) {
			if err := r.dequeue(who, g.pr, removedManually); err != nil {
				return err
			}
		}
		return r.retarget(who, branch)
	}
	for _, pr := range r.pulls {
		if pr.state != "open" || pr.baseRef != branch {
			continue
		}
		if r.git.isAncestor(pr.headSHA, after) {
			if err := pr.merged(who, after); err != nil {
				return err
			}
			continue
		}
		if err := pr.test(); err != nil {
			return err
		}
	}
	return r.outdate(branch, after)
}

// retarget moves the pull requests that target a deleted branch to the base of the branch's own
// merged pull request. Without a merged pull request it closes them.
func (r *Repo) retarget(who *account, gone string) error {
	if !r.s.opt.RetargetPulls {
		return nil
	}
	to := ""
	for _, pr := range r.pulls { // the newest pull request counts
		if !pr.mergedAt.IsZero() && pr.headRepo == r && pr.headRef == gone && r.heads[pr.baseRef] != "" {
			to = pr.baseRef
		}
	}
	for _, pr := range r.pulls {
		switch {
		case pr.state != "open" || pr.baseRef != gone:
		case to == "":
			if err := pr.close(who); err != nil {
				return err
			}
		default:
			pr.baseRef, pr.updated = to, r.s.now()
			pr.moves = append(pr.moves, move{id: r.s.id(), who: who, at: r.s.now(), automatic: true})
			if err := pr.test(); err != nil {
				return err
			}
			pr.remember(false)
		}
	}
	return nil
}

// emitPush sends a push event with the commits that are new on the branch.
func (r *Repo) emitPush(who *account, branch, before, after string) {
	if !r.heard("push") { // the payload takes several git processes
		return
	}
	e := &github.PushEvent{
		Ref: ptr("refs/heads/" + branch), Before: ptr(cmp.Or(before, zeroSHA)), After: ptr(cmp.Or(after, zeroSHA)),
		Created: ptr(before == ""), Deleted: ptr(after == ""), Forced: ptr(before != "" && after != "" && !r.git.isAncestor(before, after)),
		Compare: ptr(r.html("/compare/%.12s...%.12s", cmp.Or(before, zeroSHA), cmp.Or(after, zeroSHA))),
		Pusher:  &github.CommitAuthor{Name: ptr(who.login), Email: ptr(who.login + "@users.noreply.example")},
	}
	if after != "" {
		span := []string{after}
		if before != "" {
			span = append(span, "^"+before)
		} else if base := r.heads[r.branch]; branch != r.branch && base != "" {
			span = append(span, "^"+base)
		}
		e.Commits = each(r.git.log(20, span...), r.renderHeadCommit)
		slices.Reverse(e.Commits)
		if tip, ok := r.git.commit(after); ok {
			e.HeadCommit = r.renderHeadCommit(tip)
		}
	}
	r.emit(who, "push", "", nil, e)
}
