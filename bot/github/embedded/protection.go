package embedded

import (
	"fmt"
	"slices"
)

// A RequiredCheck is a check that must pass before a merge.
type RequiredCheck struct {
	Context string
	AppID   int64 // the App that must have created it; zero accepts any
}

// A Protection is the protection of a branch.
type Protection struct {
	Checks []RequiredCheck
	Strict bool // the head must contain the base
	Queue  bool // merges must go through the merge queue
	// QueueSize is the number of entries in a batch of the merge queue; it defaults to 1. The
	// merge_group event of an entry has as its base the commit that the batch starts from, so the
	// event's range of commits contains the entries of the batch ahead of it, too.
	QueueSize int
}

// Protect requires checks with these names before a merge into the branch.
func (r *Repo) Protect(branch string, checks ...string) {
	p := Protection{}
	for _, c := range checks {
		p.Checks = append(p.Checks, RequiredCheck{Context: c})
	}
	r.ProtectBranch(branch, p)
}

// ProtectBranch is Protect with all options.
func (r *Repo) ProtectBranch(branch string, p Protection) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.protection[branch] = &p
	r.s.touch()
}

// unmet is a required check that blocks a commit.
type unmet struct {
	name  string
	state string // expected, pending or failing
}

// unmet returns the branch's required checks that a commit does not satisfy. If a check run and a
// status share a name, both must pass. Neutral and skipped count as passed.
func (r *Repo) unmet(branch, sha string) []unmet {
	p := r.protection[branch]
	if p == nil {
		return nil
	}
	var out []unmet
	for _, c := range p.Checks {
		if state := r.required(c, sha); state != "" {
			out = append(out, unmet{name: c.Context, state: state})
		}
	}
	return out
}

func (r *Repo) required(c RequiredCheck, sha string) string {
	var states []string
	for _, run := range r.latestRuns(sha) {
		if run.Name != c.Context || (c.AppID != 0 && run.suite.app.id != c.AppID) {
			continue
		}
		switch {
		case run.Status != "completed":
			states = append(states, "pending")
		case !slices.Contains([]string{"success", "neutral", "skipped"}, run.Conclusion):
			states = append(states, "failing")
		default:
			states = append(states, "")
		}
	}
	named := func(st *status) bool { return st.Context == c.Context }
	if st := find(r.latestStatuses(sha), named); st != nil && (c.AppID == 0 || st.app != nil && st.app.id == c.AppID) {
		switch st.State {
		case "success":
			states = append(states, "")
		case "pending":
			states = append(states, "pending")
		default:
			states = append(states, "failing")
		}
	}
	if len(states) == 0 {
		return "expected"
	}
	for _, worst := range []string{"failing", "pending"} {
		if slices.Contains(states, worst) {
			return worst
		}
	}
	return ""
}

// refusal returns GitHub's message about the checks that block a merge.
func refusal(missing []unmet) *apiError {
	doc := "https://docs.github.com/articles/about-protected-branches"
	if len(missing) > 1 {
		return &apiError{Status: 405, Doc: doc, Message: fmt.Sprintf("%d required status checks have not succeeded; the first is %q, %s.",
			len(missing), missing[0].name, missing[0].state)}
	}
	return &apiError{Status: 405, Doc: doc, Message: fmt.Sprintf("Required status check %q is %s.", missing[0].name, missing[0].state)}
}

// MergeRefusal returns why GitHub would refuse a merge by the user now, or an empty string.
func (pr *PR) MergeRefusal(user string) string {
	pr.repo.s.mu.Lock()
	defer pr.repo.s.mu.Unlock()
	if err := pr.mayMerge(pr.repo.s.user(user)); err != nil {
		return asAPIError(err).Message
	}
	return ""
}

// mayMerge checks in GitHub's order: the user's role, the pull request's state, the protection,
// conflicts.
func (pr *PR) mayMerge(who *account) error {
	r := pr.repo
	p := r.protection[pr.baseRef]
	switch {
	case !r.role(who).atLeast(Write):
		return forbidden("Must have write rights to merge.")
	case pr.state != "open":
		return &apiError{Status: 405, Message: "Pull Request is not mergeable"}
	case pr.draft:
		return &apiError{Status: 405, Message: "Pull Request is still a draft"}
	case p != nil && p.Queue:
		return &apiError{Status: 405, Message: "Changes must be made through the merge queue"}
	}
	if missing := r.unmet(pr.baseRef, pr.headSHA); len(missing) > 0 {
		return refusal(missing)
	}
	if p != nil && p.Strict && !r.git.isAncestor(r.heads[pr.baseRef], pr.headSHA) {
		return &apiError{Status: 405, Message: "Head branch is out of date. Review and try the merge again."}
	}
	if !pr.mergeable {
		return &apiError{Status: 405, Message: "Pull Request is not mergeable"}
	}
	return nil
}

// merge merges the pull request if mayMerge allows it.
func (pr *PR) merge(who *account) error {
	if err := pr.mayMerge(who); err != nil {
		return err
	}
	r := pr.repo
	base := r.heads[pr.baseRef]
	sha, ok, err := r.git.merge(base, pr.headSHA, pr.mergeMessage(), identity(who.login, r.s.now()))
	if err != nil {
		return err
	}
	if !ok {
		return &apiError{Status: 405, Message: "Pull Request is not mergeable"}
	}
	if _, err := r.git.run("update-ref", "refs/heads/"+pr.baseRef, sha, base); err != nil {
		return err
	}
	if err := pr.merged(who, sha); err != nil {
		return err
	}
	return r.reconcile(who)
}

// mergeMessage returns the message of the commit that merges the pull request into its base.
func (pr *PR) mergeMessage() string {
	return fmt.Sprintf("Merge pull request #%d from %s/%s\n\n%s\n", pr.number, pr.headRepo.owner.login, pr.headRef, pr.title)
}
