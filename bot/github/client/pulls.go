package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

// A Pull is a snapshot of a pull request.
type Pull struct {
	Number              int
	Title, Body, Author string
	Draft, Open, Merged bool
	Labels              []string
	HeadSHA, HeadRepo   string // HeadRepo is owner/name, empty if the fork is gone
	BaseRef, BaseRepo   string // BaseRepo is the repository's current name
	BaseID              int64  // the repository's number
	Shut                bool   // the repository is archived or disabled
	UpdatedAt           time.Time
}

func pull(p *github.PullRequest) Pull {
	base := p.GetBase().GetRepo()
	out := Pull{Number: p.GetNumber(), Title: p.GetTitle(), Body: p.GetBody(), Author: p.GetUser().GetLogin(), Draft: p.GetDraft(), Open: p.GetState() == "open",
		Merged: p.GetMerged() || p.MergedAt != nil, HeadSHA: p.GetHead().GetSHA(), HeadRepo: p.GetHead().GetRepo().GetFullName(),
		BaseRef: p.GetBase().GetRef(), BaseRepo: base.GetFullName(), BaseID: base.GetID(), Shut: base.GetArchived() || base.GetDisabled(), UpdatedAt: p.GetUpdatedAt().Time}
	for _, l := range p.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	return out
}

// Pull reads a pull request.
func (h *GitHub) Pull(ctx context.Context, repo string, number int) (Pull, error) {
	var out Pull
	o := op{name: fmt.Sprintf("read #%d", number), permission: pullsRead}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		p, _, err := gh.PullRequests.Get(ctx, owner, name, number)
		if err != nil {
			return err
		}
		out = pull(p)
		return nil
	})
	return out, err
}

// OpenPulls returns the open pull requests of a repository. They are sorted oldest first, so that a
// pull request opened in the meantime shifts no page.
func (h *GitHub) OpenPulls(ctx context.Context, repo string) ([]Pull, error) {
	var out []Pull
	err := h.do(ctx, op{name: "list the open pull requests", permission: pullsRead}, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		all, err := pages(func(at github.ListOptions) ([]*github.PullRequest, *github.Response, error) {
			return gh.PullRequests.List(ctx, owner, name, &github.PullRequestListOptions{State: "open", Sort: "created", Direction: "asc", ListOptions: at})
		})
		for _, p := range all {
			out = append(out, pull(p))
		}
		return err
	})
	return out, err
}

// A Review is a review of a pull request.
type Review struct {
	ID     int64
	Author string
	Bot    bool
	State  ReviewState
	SHA    string // the commit that the reviewer saw
	At     time.Time
}

// A ReviewState is the decision of a review, or that it was dismissed.
type ReviewState string

const (
	Approved         ReviewState = "APPROVED"
	ChangesRequested ReviewState = "CHANGES_REQUESTED"
	Dismissed        ReviewState = "DISMISSED"
)

// Reviews returns the reviews of a pull request, oldest first.
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

// Pushers returns the accounts that pushed a commit to the branch of a pull request, from GitHub's
// record of the branch. The result is empty if GitHub does not say: the fork is gone or private, or
// the server keeps no such record.
func (h *GitHub) Pushers(ctx context.Context, repo string, pr int, sha string) ([]string, error) {
	var logins []string
	o := op{name: fmt.Sprintf("list who pushed the branch of #%d", pr), permission: "Contents: read"}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		p, _, err := gh.PullRequests.Get(ctx, owner, name, pr)
		if err != nil {
			return err
		}
		at := p.GetHead()
		if at.GetRepo() == nil {
			return nil
		}
		rq, err := gh.NewRequest(http.MethodGet, fmt.Sprintf("repos/%s/activity?per_page=%d&ref=%s", at.GetRepo().GetFullName(), perPage, url.QueryEscape("refs/heads/"+at.GetRef())), nil)
		if err != nil {
			return err
		}
		var moves []struct { // newest first
			After string       `json:"after"`
			Actor *github.User `json:"actor"`
		}
		if _, err := gh.Do(ctx, rq, &moves); err != nil {
			return err
		}
		for _, m := range moves {
			if login := m.Actor.GetLogin(); m.After == sha && login != "" && !slices.Contains(logins, login) {
				logins = append(logins, login)
			}
		}
		return nil
	})
	if IsPermanent(err) {
		return nil, nil
	}
	return logins, err
}

// baseChanges are the events that change the base branch of a pull request. GitHub itself causes
// the second: when a base branch was merged and deleted, it retargets the pull requests based on
// it.
var baseChanges = []string{"base_ref_changed", "automatic_base_change_succeeded"}

// Retargeted returns when the base branch of a pull request last changed, or zero if it never did.
func (h *GitHub) Retargeted(ctx context.Context, repo string, pr int) (time.Time, error) {
	var last time.Time
	o := op{name: fmt.Sprintf("list the events of #%d", pr), permission: pullsRead}
	err := h.do(ctx, o, repo, func(ctx context.Context, gh *github.Client, owner, name string) error {
		all, err := pages(func(at github.ListOptions) ([]*github.IssueEvent, *github.Response, error) {
			return gh.Issues.ListIssueEvents(ctx, owner, name, pr, &at)
		})
		for _, e := range all {
			if at := e.GetCreatedAt().Time; slices.Contains(baseChanges, e.GetEvent()) && at.After(last) {
				last = at
			}
		}
		return err
	})
	return last, err
}
