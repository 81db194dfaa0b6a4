package embedded

import (
	"fmt"
	"slices"
	"time"
)

// A mergeGroup is one pull request in the merge queue, merged on top of all pull requests before
// it.
type mergeGroup struct {
	pr      *PR
	baseRef string // the queue's branch, also after the pull request has moved to another one
	branch  string
	base    string // the commit that head was built on
	head    string
	start   string // the commit that the first group of the batch was built on
	place   int    // in the batch, from 0
}

// queuer returns the bot account that operates the merge queue.
func (s *Server) queuer() *account {
	bot := s.user("github-merge-queue[bot]")
	bot.kind = "Bot"
	return bot
}

// A removal is the payload's reason when a pull request leaves the queue without a merge.
type removal string

const (
	removedManually removal = "MANUAL"
	checksFailed    removal = "CI_FAILURE"
	conflicts       removal = "MERGE_CONFLICT"
)

func (why removal) payload() map[string]any { return map[string]any{"reason": string(why)} }

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

// queue returns the groups of one branch. Each branch has its own queue.
func (r *Repo) queue(branch string) []*mergeGroup {
	return slices.DeleteFunc(slices.Clone(r.groups), func(g *mergeGroup) bool { return g.baseRef != branch })
}

// drop removes groups from their queues.
func (r *Repo) drop(gone ...*mergeGroup) {
	r.groups = slices.DeleteFunc(slices.Clone(r.groups), func(g *mergeGroup) bool { return slices.Contains(gone, g) })
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
	g := r.place(pr)
	bot := r.s.queuer()
	// GitHub takes longer than a second to form the same group again, so its commit is a different one.
	var head string
	var ok bool
	for at := r.s.now(); ; at = at.Add(time.Second) {
		var err error
		if head, ok, err = r.git.merge(g.base, pr.headSHA, pr.mergeMessage(), identity(bot.login, at)); err != nil {
			return err
		}
		if !ok || !r.formed[head] {
			break
		}
	}
	if !ok {
		pr.emit(bot, "dequeued", conflicts.payload())
		return nil
	}
	if r.formed == nil {
		r.formed = map[string]bool{}
	}
	r.formed[head] = true
	g.head = head
	g.branch = fmt.Sprintf("%s%s/pr-%d-%s", queuePrefix, pr.baseRef, pr.number, g.start)
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

// place returns a group at the end of its queue. It joins the last batch, unless that is full or
// has begun to merge.
func (r *Repo) place(pr *PR) *mergeGroup {
	g := &mergeGroup{pr: pr, baseRef: pr.baseRef, base: r.heads[pr.baseRef]}
	size := 1
	if p := r.protection[pr.baseRef]; p != nil {
		size = max(p.QueueSize, 1)
	}
	g.start = g.base
	queue := r.queue(pr.baseRef)
	if len(queue) == 0 {
		return g
	}
	last := queue[len(queue)-1]
	g.base, g.start = last.head, last.head
	whole := slices.ContainsFunc(queue, func(other *mergeGroup) bool { return other.start == last.start && other.place == 0 })
	if whole && last.place+1 < size {
		g.start, g.place = last.start, last.place+1
	}
	return g
}

// advance merges the groups at the front of each queue while their checks pass, and drops a group
// at the front whose checks fail.
func (r *Repo) advance() error {
	for {
		var front *mergeGroup
		failed := false
		for _, g := range r.groups {
			missing := r.unmet(g.baseRef, g.head)
			failed = slices.ContainsFunc(missing, func(m unmet) bool { return m.state == "failing" })
			if r.queue(g.baseRef)[0] == g && (failed || len(missing) == 0) {
				front = g
				break
			}
		}
		if front == nil {
			return nil
		}
		settle := r.mergeFront
		if failed {
			settle = func(g *mergeGroup) error { return r.dequeue(r.s.queuer(), g.pr, checksFailed) }
		}
		if err := settle(front); err != nil {
			return err
		}
	}
}

func (r *Repo) mergeFront(g *mergeGroup) error {
	r.drop(g)
	if _, err := r.git.run("update-ref", "refs/heads/"+g.baseRef, g.head, g.base); err != nil {
		return err
	}
	if err := g.pr.merged(r.s.queuer(), g.head); err != nil {
		return err
	}
	return r.destroy(g, "merged")
}

// dequeue removes the group of a pull request, if it has one. The groups behind it were built on
// it, so they are rebuilt.
func (r *Repo) dequeue(who *account, pr *PR, why removal) error {
	removed := find(r.groups, func(g *mergeGroup) bool { return g.pr == pr })
	if removed == nil {
		return nil
	}
	queue := r.queue(removed.baseRef)
	behind := queue[slices.Index(queue, removed)+1:]
	r.drop(removed)
	r.drop(behind...)
	pr.emit(who, "dequeued", why.payload())
	if err := r.destroy(removed, "dequeued"); err != nil {
		return err
	}
	return r.rebuild(behind)
}

// rebuild makes new groups for the pull requests of old ones, which are no longer in the queue.
func (r *Repo) rebuild(groups []*mergeGroup) error {
	for _, g := range groups {
		if err := r.destroy(g, "invalidated"); err != nil {
			return err
		}
	}
	for _, g := range groups {
		// The pull request may have lost its head or its base together with the old groups.
		if g.pr.state != "open" || r.heads[g.baseRef] == "" {
			g.pr.emit(r.s.queuer(), "dequeued", removedManually.payload())
			continue
		}
		if err := r.form(g.pr); err != nil {
			return err
		}
	}
	return nil
}

// outdate rebuilds a branch's queue after a push to the branch from outside the queue.
func (r *Repo) outdate(branch, tip string) error {
	queue := r.queue(branch)
	if len(queue) == 0 || queue[0].base == tip {
		return nil
	}
	r.drop(queue...)
	return r.rebuild(queue)
}

func (r *Repo) destroy(g *mergeGroup, reason string) error {
	if _, err := r.git.run("update-ref", "-d", "refs/heads/"+g.branch); err != nil {
		return err
	}
	r.emitGroup(g, "destroyed", reason)
	return r.reconcile(r.s.queuer())
}

func (r *Repo) emitGroup(g *mergeGroup, action, reason string) {
	group := map[string]any{"head_sha": g.head, "head_ref": "refs/heads/" + g.branch, "base_sha": g.start, "base_ref": "refs/heads/" + g.baseRef}
	if tip, ok := r.git.commit(g.head); ok {
		group["head_commit"] = renderSimple(tip)
	}
	body := map[string]any{"merge_group": group}
	if reason != "" {
		body["reason"] = reason
	}
	r.emit(r.s.queuer(), "merge_group", action, nil, body)
}
