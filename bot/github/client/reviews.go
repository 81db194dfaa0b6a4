package client

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-github/v60/github"
)

// A Review is what somebody said of a pull request as a whole.
type Review struct {
	ID     int64
	Author string
	Bot    bool
	State  ReviewState
	SHA    string // the commit that the reviewer saw
	At     time.Time
}

// A ReviewState is what a review says, or that somebody has taken it back.
type ReviewState string

const (
	Approved         ReviewState = "APPROVED"
	ChangesRequested ReviewState = "CHANGES_REQUESTED"
	Dismissed        ReviewState = "DISMISSED"
)

// Reviews are the reviews of a pull request, oldest first.
func (h *GitHub) Reviews(ctx context.Context, repo string, pr int) ([]Review, error) {
	var out []Review
	o := op{name: fmt.Sprintf("list the reviews of #%d", pr), permission: pullsRead}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		all, err := pages(func(at github.ListOptions) ([]*github.PullRequestReview, *github.Response, error) {
			return gh.PullRequests.ListReviews(ctx, owner, name, pr, &at)
		})
		for _, r := range all {
			out = append(out, Review{ID: r.GetID(), Author: r.GetUser().GetLogin(), Bot: r.GetUser().GetType() == "Bot",
				State: ReviewState(r.GetState()), SHA: r.GetCommitID(), At: r.GetSubmittedAt().Time})
		}
		return err
	})
	return out, err
}

// Retargeted is when somebody last sent a pull request to another branch; zero if nobody
// has.
func (h *GitHub) Retargeted(ctx context.Context, repo string, pr int) (time.Time, error) {
	var last time.Time
	o := op{name: fmt.Sprintf("list the events of #%d", pr), permission: pullsRead}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		all, err := pages(func(at github.ListOptions) ([]*github.IssueEvent, *github.Response, error) {
			return gh.Issues.ListIssueEvents(ctx, owner, name, pr, &at)
		})
		for _, e := range all {
			if at := e.GetCreatedAt().Time; e.GetEvent() == "base_ref_changed" && at.After(last) {
				last = at
			}
		}
		return err
	})
	return last, err
}
