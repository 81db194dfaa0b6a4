package embedded

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/policies/ident"
)

// CreateBranch creates a branch at an existing commit, as a user who pushes that commit. The commit
// may be on no branch, such as that of a former merge group. A fork also takes the commits of its
// parent, because whoever reads the parent can push them.
func (r *Repo) CreateBranch(user, name, sha string) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if err := r.createBranch(r.s.user(user), name, sha); err != nil {
		return fmt.Errorf("create branch %s of %s as %s: %w", name, r.fullName(), user, err)
	}
	return nil
}

func (r *Repo) createBranch(who *account, name, sha string) error {
	if err := r.mayPush(who, name); err != nil {
		return err
	}
	ref := "refs/heads/" + name
	if _, err := r.git.run("check-ref-format", ref); err != nil {
		return &apiError{Status: 422, Message: ref + " is not a valid ref name."}
	}
	if _, there := r.heads[name]; there {
		return &apiError{Status: 422, Message: "Reference already exists"}
	}
	if err := r.obtain(who, sha); err != nil {
		return err
	}
	if _, err := r.git.run("update-ref", ref, sha, zeroSHA); err != nil {
		return err
	}
	return r.reconcile(who)
}

// mayPush refuses a push by a user without write access, and one to a branch of the merge queue.
func (r *Repo) mayPush(who *account, branch string) error {
	if err := r.writable(); err != nil {
		return err
	}
	if !r.role(who).atLeast(Write) {
		return forbidden(fmt.Sprintf("Permission to %s.git denied to %s.", r.fullName(), who.login))
	}
	return notOfQueue(branch)
}

// notOfQueue refuses to change a branch that only the merge queue may change.
func notOfQueue(branch string) error {
	if strings.HasPrefix(branch, queuePrefix) {
		return &apiError{Status: 422, Message: fmt.Sprintf("GH006: Protected branch update failed for refs/heads/%s.", branch)}
	}
	return nil
}

// obtain makes sure that the repository has a commit, and fetches it from the parents that the user
// can read if it has not.
func (r *Repo) obtain(who *account, sha string) error {
	if !ident.IsCommit(sha) {
		return &apiError{Status: 422, Message: "The sha parameter must be exactly 40 characters and contain only [0-9a-f]."}
	}
	if _, ok := r.git.resolve(sha); ok {
		return nil
	}
	for from := r.parent; from != nil; from = from.parent {
		if _, ok := from.git.resolve(sha); ok && from.role(who).atLeast(Read) {
			_, err := r.git.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", from.git.path, sha)
			return err
		}
	}
	return &apiError{Status: 422, Message: "Object does not exist"}
}
