package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-github/v60/github"
)

// An Issue is an issue on GitHub, but not a pull request.
type Issue struct {
	Number int
	Title  string
	Body   string
	Open   bool
	Mine   bool // as in Comment
}

const (
	issuesRead  = "Issues: read"
	issuesWrite = "Issues: read and write"
)

// maxIssueTitle is GitHub's limit, in characters.
const maxIssueTitle = 256

func issueOf(i *github.Issue, me string) Issue {
	author, bot := i.GetUser().GetLogin(), i.GetUser().GetType() == "Bot"
	return Issue{Number: i.GetNumber(), Title: i.GetTitle(), Body: i.GetBody(), Open: i.GetState() == "open", Mine: strings.EqualFold(author, me) || me == "" && bot}
}

// issueText refuses a title or a body that GitHub would refuse.
func issueText(title, body string) error {
	if strings.TrimSpace(title) == "" {
		return errors.New("the issue has no title")
	}
	if n := len([]rune(title)); n > maxIssueTitle {
		return fmt.Errorf("the title of the issue has %d characters, and GitHub allows %d", n, maxIssueTitle)
	}
	return withinBytes("the issue", body, MaxCommentText)
}

// MyIssues returns the issues that this client wrote, open or closed, newest first. As long as the client
// does not know its login, it returns the issues with the label.
func (h *GitHub) MyIssues(ctx context.Context, repo, label string) ([]Issue, error) {
	me, err := h.Me(ctx)
	if err != nil {
		return nil, err
	}
	opt := github.IssueListByRepoOptions{State: "all", Creator: me}
	if me == "" {
		opt.Labels = []string{label}
	}
	var out []Issue
	err = h.do(ctx, op{name: "list the issues", permission: issuesRead}, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		all, err := pages(func(at github.ListOptions) ([]*github.Issue, *github.Response, error) {
			opt.ListOptions = at
			return gh.Issues.ListByRepo(ctx, owner, name, &opt)
		})
		for _, i := range all {
			if one := issueOf(i, me); one.Mine && !i.IsPullRequest() {
				out = append(out, one)
			}
		}
		return err
	})
	return out, err
}

// Issue reads an issue.
func (h *GitHub) Issue(ctx context.Context, repo string, number int) (Issue, error) {
	me, err := h.Me(ctx)
	if err != nil {
		return Issue{}, err
	}
	var out Issue
	err = h.do(ctx, op{name: fmt.Sprintf("read issue #%d", number), permission: issuesRead}, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		i, _, err := gh.Issues.Get(ctx, owner, name, number)
		if err == nil {
			out = issueOf(i, me)
		}
		return err
	})
	return out, err
}

// CreateIssue opens an issue and returns its number.
func (h *GitHub) CreateIssue(ctx context.Context, repo, title, body string, labels ...string) (int, error) {
	o := op{name: "open an issue", permission: issuesWrite}
	if err := issueText(title, body); err != nil {
		return 0, &Error{Op: o.name, Repo: repo, Err: err}
	}
	rq := &github.IssueRequest{Title: &title, Body: &body}
	if len(labels) > 0 { // GitHub refuses null
		rq.Labels = &labels
	}
	number := 0
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		i, _, err := gh.Issues.Create(ctx, owner, name, rq)
		number = i.GetNumber()
		h.learn(i.GetUser().GetLogin())
		return err
	})
	return number, err
}

// EditIssue replaces the texts of an issue, and opens it if it is closed.
func (h *GitHub) EditIssue(ctx context.Context, repo string, number int, title, body string) error {
	o := op{name: fmt.Sprintf("edit issue #%d", number), permission: issuesWrite, repeatable: true}
	if err := issueText(title, body); err != nil {
		return &Error{Op: o.name, Repo: repo, Err: err}
	}
	return h.editIssue(ctx, o, repo, number, &github.IssueRequest{Title: &title, Body: &body, State: github.String("open")})
}

// CloseIssue closes an issue.
func (h *GitHub) CloseIssue(ctx context.Context, repo string, number int) error {
	o := op{name: fmt.Sprintf("close issue #%d", number), permission: issuesWrite, repeatable: true}
	return h.editIssue(ctx, o, repo, number, &github.IssueRequest{State: github.String("closed")})
}

func (h *GitHub) editIssue(ctx context.Context, o op, repo string, number int, edit *github.IssueRequest) error {
	return h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		_, _, err := gh.Issues.Edit(ctx, owner, name, number, edit)
		return err
	})
}
