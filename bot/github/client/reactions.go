package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

var reactions = []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}

// React gives a comment in a conversation a reaction. GitHub keeps one of a kind from
// each user, so that giving it twice gives it once.
func (h *GitHub) React(ctx context.Context, repo string, commentID int64, content string) error {
	return h.react(ctx, repo, commentID, content, func(c *github.Client) reacting { return c.Reactions.CreateIssueCommentReaction })
}

// ReactOnLine is the same for a comment on a line, which GitHub numbers by itself.
func (h *GitHub) ReactOnLine(ctx context.Context, repo string, commentID int64, content string) error {
	return h.react(ctx, repo, commentID, content, func(c *github.Client) reacting { return c.Reactions.CreatePullRequestCommentReaction })
}

type reacting func(ctx context.Context, owner, repo string, id int64, content string) (*github.Reaction, *github.Response, error)

func (h *GitHub) react(ctx context.Context, repo string, commentID int64, content string, to func(*github.Client) reacting) error {
	o := op{name: fmt.Sprintf("react to comment %d", commentID), permission: pullsWrite, repeatable: true}
	if err := validReaction(content); err != nil {
		return &Error{Op: o.name, Repo: repo, Err: err}
	}
	return h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		_, _, err := to(gh)(ctx, owner, name, commentID, content)
		return err
	})
}

func validReaction(content string) error {
	if !slices.Contains(reactions, content) {
		return fmt.Errorf("%q is not a reaction; use one of %s", content, strings.Join(reactions, ", "))
	}
	return nil
}
