package embedded

import "fmt"

// merge merges, or refuses in GitHub's order: the state of the pull request, its
// protection, its conflicts.
func (pr *PR) merge(who *account) error {
	r := pr.repo
	p := r.protection[pr.baseRef]
	switch {
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
	base := r.heads[pr.baseRef]
	if p != nil && p.Strict && !r.git.isAncestor(base, pr.headSHA) {
		return &apiError{Status: 405, Message: "Head branch is out of date. Review and try the merge again."}
	}
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
	pr.merged(who, sha)
	return r.reconcile(who)
}

// mergeMessage is that of the commit which joins the pull request into its base.
func (pr *PR) mergeMessage() string {
	return fmt.Sprintf("Merge pull request #%d from %s/%s\n\n%s\n", pr.number, pr.headRepo.owner.login, pr.headRef, pr.title)
}
