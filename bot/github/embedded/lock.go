package embedded

import (
	"slices"
)

const lockDocs = "https://docs.github.com/articles/locking-conversations/"

// Lock closes the conversation to all but those with write access; an App is never
// one of them. The reason may be empty.
func (pr *PR) Lock(user, reason string) error {
	return pr.act(user, "lock", func(who *account) error { return pr.lock(who, true, reason) })
}

// Unlock opens it again.
func (pr *PR) Unlock(user string) error {
	return pr.act(user, "unlock", func(who *account) error { return pr.lock(who, false, "") })
}

func (pr *PR) lock(who *account, locked bool, reason string) error {
	switch {
	case !pr.repo.role(who).atLeast(Write):
		return forbidden("Must have write rights to lock.")
	case !slices.Contains([]string{"", "off-topic", "too heated", "resolved", "spam"}, reason):
		return invalid("Issue", "lock_reason", "invalid", reason+" is not a reason")
	case pr.locked == locked:
		return nil
	}
	pr.locked, pr.lockReason = locked, reason
	action := "unlocked"
	if locked {
		action = "locked"
	}
	pr.emit(who, action, nil)
	return nil
}

// talks says whether somebody may write into the conversation. Whatever an App's
// permissions, GitHub does not take it for a collaborator.
func (pr *PR) talks(who *account) error {
	if pr.locked && !pr.repo.role(who).atLeast(Write) {
		return &apiError{Status: 403, Message: "Unable to create comment because issue is locked.", Doc: lockDocs}
	}
	return nil
}

// reacts is nil while reactions are open: a lock closes them to everybody.
func (pr *PR) reacts() error {
	if pr.locked {
		return &apiError{Status: 403, Message: "Unable to create reaction because issue is locked.", Doc: lockDocs}
	}
	return nil
}
