package embedded

import (
	"cmp"
	"fmt"

	"github.com/google/go-github/v60/github"
)

// mergeRequest is the body of a PUT on a pull request's merge.
type mergeRequest struct {
	SHA           string `json:"sha"`
	Method        string `json:"merge_method"`
	CommitTitle   string `json:"commit_title"`
	CommitMessage string `json:"commit_message"`
}

// merge merges, or refuses in GitHub's order: the state of the pull request, its
// head, its protection, its conflicts.
func (pr *PR) merge(who *account, in mergeRequest) (string, error) {
	r := pr.repo
	method := cmp.Or(in.Method, "merge")
	p := r.protection[pr.baseRef]
	switch {
	case pr.state != "open":
		return "", &apiError{Status: 405, Message: "Pull Request is not mergeable"}
	case pr.draft:
		return "", &apiError{Status: 405, Message: "Pull Request is still a draft"}
	case in.SHA != "" && in.SHA != pr.headSHA:
		return "", &apiError{Status: 409, Message: "Head branch was modified. Review and try the merge again."}
	case p != nil && p.Queue:
		return "", &apiError{Status: 405, Message: "Changes must be made through the merge queue"}
	case method == "rebase":
		return "", &apiError{Status: 405, Message: "Rebase merges are not allowed on this repository."}
	case method != "merge" && method != "squash":
		return "", invalid("PullRequest", "merge_method", "invalid", "")
	}
	if missing := r.unmet(pr.baseRef, pr.headSHA); len(missing) > 0 {
		return "", refusal(missing)
	}
	base := r.heads[pr.baseRef]
	if p != nil && p.Strict && !r.git.isAncestor(base, pr.headSHA) {
		return "", &apiError{Status: 405, Message: "Head branch is out of date. Review and try the merge again."}
	}
	title := cmp.Or(in.CommitTitle, fmt.Sprintf("Merge pull request #%d from %s/%s", pr.number, pr.headRepo.owner.login, pr.headRef))
	message := title + "\n\n" + cmp.Or(in.CommitMessage, pr.title) + "\n"
	by := identity(who.login, r.s.now())
	sha, ok, err := r.git.merge(base, pr.headSHA, message, by)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", &apiError{Status: 405, Message: "Pull Request is not mergeable"}
	}
	if method == "squash" {
		message := cmp.Or(in.CommitTitle, fmt.Sprintf("%s (#%d)", pr.title, pr.number)) + "\n\n" + in.CommitMessage
		if sha, err = r.git.feed(message, by, "commit-tree", sha+"^{tree}", "-p", base); err != nil {
			return "", err
		}
	}
	if _, err := r.git.run("update-ref", "refs/heads/"+pr.baseRef, sha, base); err != nil {
		return "", err
	}
	pr.merged(who, sha)
	return sha, r.reconcile(who)
}

func putMerge(rq *request, pr *PR) error {
	var in mergeRequest
	if err := rq.read(&in); err != nil {
		return err
	}
	sha, err := pr.merge(rq.actor.user, in)
	if err != nil {
		return err
	}
	return rq.ok(&github.PullRequestMergeResult{SHA: &sha, Merged: ptr(true), Message: ptr("Pull Request successfully merged")})
}
