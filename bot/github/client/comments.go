package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

// A Comment is a comment in the conversation of a pull request.
type Comment struct {
	ID     int64
	Author string
	Bot    bool // an App wrote it
	// Mine means that this client wrote it or, while the client does not know its login, any App
	// did.
	Mine                 bool
	Body                 string
	CreatedAt, UpdatedAt time.Time
}

// MaxCommentText is the limit of a comment, in bytes.
const MaxCommentText = 65536

// commentBody refuses a comment that GitHub would refuse.
func commentBody(body string) error {
	if strings.TrimSpace(body) == "" {
		return errors.New("the comment is empty")
	}
	return withinBytes("the comment", body, MaxCommentText)
}

const (
	pullsRead  = "Pull requests: read"
	pullsWrite = "Pull requests: read and write"
)

func comment(c *github.IssueComment, me string) Comment {
	author := c.GetUser().GetLogin()
	bot := c.GetUser().GetType() == "Bot"
	return Comment{ID: c.GetID(), Author: author, Bot: bot, Mine: strings.EqualFold(author, me) || me == "" && bot, Body: c.GetBody(),
		CreatedAt: c.GetCreatedAt().Time, UpdatedAt: c.GetUpdatedAt().Time}
}

// ListComments returns the comments of a pull request, oldest first.
func (h *GitHub) ListComments(ctx context.Context, repo string, pr int) ([]Comment, error) {
	o := op{name: fmt.Sprintf("list the comments of #%d", pr), permission: pullsRead}
	if pr <= 0 { // go-github would list the comments of all pull requests
		return nil, &Error{Op: o.name, Repo: repo, Err: fmt.Errorf("%d is not the number of a pull request", pr)}
	}
	me, err := h.Me(ctx)
	if err != nil {
		return nil, err
	}
	var out []Comment
	err = h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		all, err := pages(func(at github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
			return gh.Issues.ListComments(ctx, owner, name, pr, &github.IssueListCommentsOptions{ListOptions: at})
		})
		for _, c := range all {
			out = append(out, comment(c, me))
		}
		return err
	})
	return out, err
}

// CreateComment writes a comment and returns its id.
func (h *GitHub) CreateComment(ctx context.Context, repo string, pr int, body string) (int64, error) {
	o := op{name: fmt.Sprintf("comment on #%d", pr), permission: pullsWrite}
	if err := commentBody(body); err != nil {
		return 0, &Error{Op: o.name, Repo: repo, Err: err}
	}
	var id int64
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		c, _, err := gh.Issues.CreateComment(ctx, owner, name, pr, &github.IssueComment{Body: &body})
		id = c.GetID()
		h.learn(c.GetUser().GetLogin())
		return err
	})
	return id, err
}

// DeleteComment deletes a comment. It is not an error if the comment does not exist.
func (h *GitHub) DeleteComment(ctx context.Context, repo string, id int64) error {
	o := op{name: fmt.Sprintf("delete comment %d", id), permission: pullsWrite, repeatable: true}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		_, err := gh.Issues.DeleteComment(ctx, owner, name, id)
		return err
	})
	if NotFound(err) {
		return nil
	}
	return err
}

// EditComment replaces the text of a comment.
func (h *GitHub) EditComment(ctx context.Context, repo string, id int64, body string) error {
	o := op{name: fmt.Sprintf("edit comment %d", id), permission: pullsWrite, repeatable: true}
	if err := commentBody(body); err != nil {
		return &Error{Op: o.name, Repo: repo, Err: err}
	}
	return h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		_, _, err := gh.Issues.EditComment(ctx, owner, name, id, &github.IssueComment{Body: &body})
		return err
	})
}

var reactions = []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}

// React adds a reaction to a comment in a conversation. GitHub keeps one reaction of a kind per
// user, so repeating it changes nothing.
func (h *GitHub) React(ctx context.Context, repo string, commentID int64, content string) error {
	return h.react(ctx, repo, commentID, content, func(c *github.Client) reacting { return c.Reactions.CreateIssueCommentReaction })
}

// ReactOnLine adds a reaction to a comment on a line. GitHub numbers these comments separately.
func (h *GitHub) ReactOnLine(ctx context.Context, repo string, commentID int64, content string) error {
	return h.react(ctx, repo, commentID, content, func(c *github.Client) reacting { return c.Reactions.CreatePullRequestCommentReaction })
}

type reacting func(ctx context.Context, owner, repo string, id int64, content string) (*github.Reaction, *github.Response, error)

func (h *GitHub) react(ctx context.Context, repo string, commentID int64, content string, to func(*github.Client) reacting) error {
	o := op{name: fmt.Sprintf("react to comment %d", commentID), permission: pullsWrite, repeatable: true}
	if !slices.Contains(reactions, content) {
		return &Error{Op: o.name, Repo: repo, Err: fmt.Errorf("%q is not a reaction; use one of %s", content, strings.Join(reactions, ", "))}
	}
	return h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		_, _, err := to(gh)(ctx, owner, name, commentID, content)
		return err
	})
}
