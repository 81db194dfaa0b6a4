package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

var reactions = []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}

// React gives a comment a reaction. GitHub keeps one of a kind from each user, so
// that giving it twice gives it once.
func (h *GitHub) React(ctx context.Context, repo string, commentID int64, content string) error {
	o := op{name: fmt.Sprintf("react to comment %d", commentID), permission: pullsWrite, repeatable: true}
	if err := validReaction(content); err != nil {
		return &Error{Op: o.name, Repo: repo, Err: err}
	}
	return h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		_, _, err := gh.Reactions.CreateIssueCommentReaction(ctx, owner, name, commentID, content)
		return err
	})
}

// Unreact takes the client's own reaction back; that there is none is no error.
func (h *GitHub) Unreact(ctx context.Context, repo string, commentID int64, content string) error {
	o := op{name: fmt.Sprintf("take a reaction back from comment %d", commentID), permission: pullsWrite}
	if err := validReaction(content); err != nil {
		return &Error{Op: o.name, Repo: repo, Err: err}
	}
	me, err := h.Me(ctx)
	if err != nil {
		return err
	}
	var own []int64
	err = h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		all, err := pages(func(at github.ListOptions) ([]*github.Reaction, *github.Response, error) {
			return gh.Reactions.ListIssueCommentReactions(ctx, owner, name, commentID, &at)
		})
		for _, r := range all {
			if r.GetContent() == content && strings.EqualFold(r.GetUser().GetLogin(), me) {
				own = append(own, r.GetID())
			}
		}
		return err
	})
	for _, id := range own {
		if err != nil {
			break
		}
		err = h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
			_, err := gh.Reactions.DeleteIssueCommentReaction(ctx, owner, name, commentID, id)
			return gone(err)
		})
	}
	return err
}

func validReaction(content string) error {
	if !slices.Contains(reactions, content) {
		return fmt.Errorf("%q is not a reaction; use one of %s", content, strings.Join(reactions, ", "))
	}
	return nil
}
