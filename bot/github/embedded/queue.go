package embedded

import (
	"fmt"
	"slices"
)

// A mergeGroup is one pull request in the merge queue, merged on top of all pull requests before
// it.
type mergeGroup struct {
	pr     *PR
	branch string
	base   string
	head   string
}

// queuer returns the bot account that operates the merge queue.
func (s *Server) queuer() *account {
	bot := s.user("github-merge-queue[bot]")
	bot.kind = "Bot"
	return bot
}

// manual is the payload's reason when a pull request leaves the queue without a merge.
var manual = map[string]any{"reason": "MANUAL"}

// Enqueue adds a pull request to the merge queue of its base branch. The branch must have a
// Protection with Queue set.
func (r *Repo) Enqueue(user string, pr *PR) error {
	return pr.act(user, "enqueue", func(who *account) error { return r.enqueue(who, pr) })
}

// QueueHeads returns the head SHAs of the merge groups, in the order in which they will merge.
func (r *Repo) QueueHeads() []string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return each(r.groups, func(g *mergeGroup) string { return g.head })
}

func (r *Repo) enqueue(who *account, pr *PR) error {
	p := r.protection[pr.baseRef]
	switch {
	case !r.role(who).atLeast(Write):
		return forbidden("Must have write rights to enqueue.")
	case p == nil || !p.Queue:
		return &apiError{Status: 405, Message: "The base branch has no merge queue"}
	case pr.state != "open" || pr.draft || !pr.mergeable:
		return &apiError{Status: 405, Message: "Pull Request is not mergeable"}
	case slices.ContainsFunc(r.groups, func(g *mergeGroup) bool { return g.pr == pr }):
		return &apiError{Status: 422, Message: "Pull Request is already in the queue"}
	}
	if missing := r.unmet(pr.baseRef, pr.headSHA); len(missing) > 0 {
		return refusal(missing)
	}
	pr.emit(who, "enqueued", nil)
	if err := r.form(pr); err != nil {
		return err
	}
	return r.advance()
}

// form creates the commit of a merge group and requests checks for it.
func (r *Repo) form(pr *PR) error {
	g := &mergeGroup{pr: pr, base: r.heads[pr.baseRef]}
	for _, before := range r.groups {
		if before.pr.baseRef == pr.baseRef {
			g.base = before.head
		}
	}
	bot := r.s.queuer()
	head, ok, err := r.git.merge(g.base, pr.headSHA, pr.mergeMessage(), identity(bot.login, r.s.now()))
	if err != nil {
		return err
	}
	if !ok {
		pr.emit(bot, "dequeued", manual)
		return nil
	}
	g.head = head
	g.branch = fmt.Sprintf("%s%s/pr-%d-%s", queuePrefix, pr.baseRef, pr.number, g.base)
	r.groups = append(r.groups, g)
	if _, err := r.git.run("update-ref", "refs/heads/"+g.branch, g.head); err != nil {
		return err
	}
	if err := r.reconcile(bot); err != nil {
		return err
	}
	r.emitGroup(g, "checks_requested", "")
	return nil
}

// advance merges groups from the front while their checks pass, and drops the front group when its
// checks fail.
func (r *Repo) advance() error {
	for len(r.groups) > 0 {
		g := r.groups[0]
		missing := r.unmet(g.pr.baseRef, g.head)
		if slices.ContainsFunc(missing, func(m unmet) bool { return m.state == "failing" }) {
			if err := r.dequeue(r.s.queuer(), g.pr); err != nil {
				return err
			}
			continue
		}
		if len(missing) > 0 {
			return nil
		}
		r.groups = r.groups[1:]
		if _, err := r.git.run("update-ref", "refs/heads/"+g.pr.baseRef, g.head, g.base); err != nil {
			return err
		}
		g.pr.merged(r.s.queuer(), g.head)
		if err := r.destroy(g, "merged"); err != nil {
			return err
		}
	}
	return nil
}

// dequeue removes the group of a pull request. The groups behind it were built on it, so they are
// rebuilt.
func (r *Repo) dequeue(who *account, pr *PR) error {
	i := slices.IndexFunc(r.groups, func(g *mergeGroup) bool { return g.pr == pr })
	if i < 0 {
		return nil
	}
	removed, behind := r.groups[i], slices.Clone(r.groups[i+1:])
	r.groups = slices.Clone(r.groups[:i])
	pr.emit(who, "dequeued", manual)
	if err := r.destroy(removed, "dequeued"); err != nil {
		return err
	}
	return r.rebuild(behind)
}

func (r *Repo) rebuild(groups []*mergeGroup) error {
	for _, g := range groups {
		if err := r.destroy(g, "invalidated"); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := r.form(g.pr); err != nil {
			return err
		}
	}
	return nil
}

// outdate rebuilds the queue after a push to its base from outside the queue.
func (r *Repo) outdate(branch, tip string) error {
	for i, g := range r.groups {
		if g.pr.baseRef != branch {
			continue
		}
		if g.base == tip {
			return nil
		}
		behind := slices.Clone(r.groups[i:])
		r.groups = slices.Clone(r.groups[:i])
		return r.rebuild(behind)
	}
	return nil
}

func (r *Repo) destroy(g *mergeGroup, reason string) error {
	if _, err := r.git.run("update-ref", "-d", "refs/heads/"+g.branch); err != nil {
		return err
	}
	r.emitGroup(g, "destroyed", reason)
	return r.reconcile(r.s.queuer())
}

func (r *Repo) emitGroup(g *mergeGroup, action, reason string) {
	group := map[string]any{"head_sha": g.head, "head_ref": "refs/heads/" + g.branch, "base_sha": g.base, "base_ref": "refs/heads/" + g.pr.baseRef}
	if tip, ok := r.git.commit(g.head); ok {
		group["head_commit"] = renderSimple(tip)
	}
	body := map[string]any{"merge_group": group}
	if reason != "" {
		body["reason"] = reason
	}
	r.emit(r.s.queuer(), "merge_group", action, nil, body)
}
