package embedded

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

// A PRState is a snapshot of a pull request.
type PRState struct {
	Number    int
	Title     string
	Open      bool
	Merged    bool
	Mergeable bool
	HeadSHA   string
	Base      string // branch
	UpdatedAt time.Time
}

// State returns a snapshot of the pull request.
func (pr *PR) State() PRState {
	pr.repo.s.mu.Lock()
	defer pr.repo.s.mu.Unlock()
	return PRState{Number: pr.number, Title: pr.title, Open: pr.state == "open", Merged: !pr.mergedAt.IsZero(),
		Mergeable: pr.mergeable, HeadSHA: pr.headSHA, Base: pr.baseRef, UpdatedAt: pr.updated}
}

// Number returns the pull request's number.
func (pr *PR) Number() int { return pr.number }

// HeadSHA returns the SHA of the head commit.
func (pr *PR) HeadSHA() string { return pr.State().HeadSHA }

// URL returns the address of the pull request's page.
func (pr *PR) URL() string { return pr.repo.html("/pull/%d", pr.number) }

// act performs an action of a user on a pull request. It returns the errors that the web interface
// would show.
func (pr *PR) act(login, doing string, do func(who *account) error) error {
	s := pr.repo.s
	s.mu.Lock()
	defer s.mu.Unlock()
	err := pr.repo.writable()
	if err == nil {
		err = do(s.user(login))
	}
	if err != nil {
		return fmt.Errorf("%s %s#%d as %s: %w", doing, pr.repo.fullName(), pr.number, login, err)
	}
	s.touch()
	return nil
}

// mayEdit refuses a user who is not the author and has a lower role than the given one.
func (pr *PR) mayEdit(who *account, role Role) error {
	if who != pr.author && !pr.repo.role(who).atLeast(role) {
		return forbidden(fmt.Sprintf("Must have %s rights or be the author to do this.", role))
	}
	return nil
}

// Label adds a label to the pull request.
func (pr *PR) Label(user, name string) error {
	return pr.act(user, "label", func(who *account) error {
		if !pr.repo.role(who).atLeast(Triage) {
			return forbidden("Must have triage rights to label.")
		}
		l := pr.repo.label(name)
		if slices.Contains(pr.labels, l) {
			return nil
		}
		pr.labels, pr.updated = append(pr.labels, l), pr.repo.s.now()
		pr.emit(who, "labeled", map[string]any{"label": l.render()})
		return nil
	})
}

// Unlabel removes a label.
func (pr *PR) Unlabel(user, name string) error {
	return pr.act(user, "unlabel", func(who *account) error {
		if !pr.repo.role(who).atLeast(Triage) {
			return forbidden("Must have triage rights to unlabel.")
		}
		i := slices.IndexFunc(pr.labels, func(l *label) bool { return l.name == name })
		if i < 0 {
			return &apiError{Status: 404, Message: "Label does not exist"}
		}
		l := pr.labels[i]
		pr.labels, pr.updated = slices.Delete(pr.labels, i, i+1), pr.repo.s.now()
		pr.emit(who, "unlabeled", map[string]any{"label": l.render()})
		return nil
	})
}

// Ready marks a draft as ready for review.
func (pr *PR) Ready(user string) error {
	return pr.setDraft(user, "mark ready", false, "ready_for_review", "The pull request is no open draft.")
}

// ConvertToDraft makes the pull request a draft again. A draft leaves the merge queue.
func (pr *PR) ConvertToDraft(user string) error {
	return pr.setDraft(user, "convert to draft", true, "converted_to_draft", "The pull request is closed or a draft already.")
}

func (pr *PR) setDraft(user, doing string, draft bool, action, problem string) error {
	return pr.act(user, doing, func(who *account) error {
		if err := pr.mayEdit(who, Write); err != nil {
			return err
		}
		if pr.draft == draft || pr.state != "open" {
			return invalid("PullRequest", "draft", "invalid", problem)
		}
		pr.draft, pr.updated = draft, pr.repo.s.now()
		pr.emit(who, action, nil)
		return pr.repo.dequeue(who, pr, removedManually)
	})
}

// Close closes the pull request without merging it.
func (pr *PR) Close(user string) error {
	return pr.act(user, "close", func(who *account) error {
		if pr.state == "closed" {
			return nil
		}
		if err := pr.mayEdit(who, Triage); err != nil {
			return err
		}
		return pr.close(who)
	})
}

// Reopen opens a closed pull request again. Its head is then the tip of its branch, which may have
// new commits. GitHub refuses if the branch was rewritten in the meantime.
func (pr *PR) Reopen(user string) error {
	return pr.act(user, "reopen", func(who *account) error {
		head := pr.headRepo.heads[pr.headRef]
		refuse := func(why string) error {
			return invalid("PullRequest", "state", "custom", "state cannot be changed. "+why)
		}
		switch {
		case pr.state == "open":
			return nil
		case !pr.mergedAt.IsZero():
			return refuse("The pull request is merged.")
		case head == "":
			return refuse(fmt.Sprintf("The %s branch has been deleted.", pr.headRef))
		case pr.repo.heads[pr.baseRef] == "":
			return refuse(fmt.Sprintf("The %s branch has been deleted.", pr.baseRef))
		case !pr.headRepo.git.isAncestor(pr.headSHA, head):
			return refuse(fmt.Sprintf("The %s branch was force-pushed or recreated.", pr.headRef))
		}
		if err := cmp.Or(pr.mayEdit(who, Triage), pr.onlyOne(pr.baseRef)); err != nil {
			return err
		}
		pr.state, pr.closedAt, pr.headSHA, pr.updated = "open", time.Time{}, head, pr.repo.s.now()
		if err := pr.fetchHead(); err != nil {
			return err
		}
		if err := pr.test(); err != nil {
			return err
		}
		pr.emit(who, "reopened", nil)
		return pr.repo.noteRefs()
	})
}

// Edit changes the title, body or base. An empty argument leaves its field unchanged. With a new
// base the pull request leaves the merge queue; its checks stay on its head.
func (pr *PR) Edit(user, title, body, base string) error {
	return pr.act(user, "edit", func(who *account) error {
		moves := base != "" && base != pr.baseRef
		if err := pr.mayEdit(who, Write); err != nil {
			return err
		}
		if moves {
			if err := pr.mayMove(base); err != nil {
				return err
			}
		}
		changes := &github.EditChange{}
		if title != "" && title != pr.title {
			changes.Title = &github.EditTitle{From: ptr(pr.title)}
			pr.title = title
		}
		if body != "" && body != pr.body {
			changes.Body = &github.EditBody{From: ptr(pr.body)}
			pr.body = body
		}
		if moves {
			changes.Base = &github.EditBase{Ref: &github.EditRef{From: ptr(pr.baseRef)}, SHA: &github.EditSHA{From: ptr(pr.baseSHA)}}
			pr.baseRef = base
			pr.moves = append(pr.moves, move{id: pr.repo.s.id(), who: who, at: pr.repo.s.now()})
			if err := pr.test(); err != nil {
				return err
			}
		}
		pr.updated = pr.repo.s.now()
		if *changes != (github.EditChange{}) {
			pr.emit(who, "edited", map[string]any{"changes": changes})
		}
		if moves {
			if err := pr.repo.dequeue(who, pr, removedManually); err != nil {
				return err
			}
		}
		return pr.repo.noteRefs()
	})
}

// mayMove refuses a base that GitHub refuses, whoever asks for it.
func (pr *PR) mayMove(base string) error {
	tip := pr.repo.heads[base]
	switch {
	case pr.state != "open":
		return invalid("PullRequest", "base", "custom", "Cannot change the base branch of a closed pull request.")
	case tip == "":
		return invalid("PullRequest", "base", "invalid", "")
	case pr.repo.git.count(tip, pr.headSHA) == 0:
		return invalid("PullRequest", "base", "custom", fmt.Sprintf("There are no new commits between base branch '%s' and head branch '%s'", base, pr.headRef))
	}
	return pr.onlyOne(base)
}

// Merge merges the pull request, or returns why the protection refuses the merge.
func (pr *PR) Merge(user string) error {
	return pr.act(user, "merge", pr.merge)
}

const lockDocs = "https://docs.github.com/articles/locking-conversations/"

// Lock closes the conversation to everyone without write access. An App never counts as having
// write access. The reason may be empty.
func (pr *PR) Lock(user, reason string) error {
	return pr.act(user, "lock", func(who *account) error { return pr.lock(who, true, reason) })
}

// Unlock opens a locked conversation again.
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

// talks returns an error if the account may not write into the conversation. GitHub does not treat
// an App as a collaborator, whatever its permissions are.
func (pr *PR) talks(who *account) error {
	if pr.locked && !pr.repo.role(who).atLeast(Write) {
		return &apiError{Status: 403, Message: "Unable to create comment because issue is locked.", Doc: lockDocs}
	}
	return nil
}
