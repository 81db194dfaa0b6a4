package embedded

import (
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

type review struct {
	id        int64
	pr        *PR
	author    *account
	body      string
	state     string // APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED
	commit    string
	submitted time.Time
}

// A line is the place in the code that a comment is attached to.
type line struct {
	path   string
	number int
	commit string
	hunk   string
	review *review
}

// Review submits a review as a user. The event is APPROVE, REQUEST_CHANGES or COMMENT.
func (pr *PR) Review(user, event, body string) error {
	states := map[string]string{"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
	return pr.act(user, "review", func(who *account) error {
		if err := pr.talks(who); err != nil {
			return err
		}
		switch {
		case states[event] == "":
			return invalid("PullRequestReview", "event", "invalid", event+" is not an event")
		case event != "COMMENT" && who == pr.author:
			return &apiError{Status: 422, Message: "Review Can not approve or request changes on your own pull request"}
		case event != "APPROVE" && body == "":
			return invalid("PullRequestReview", "body", "missing_field", "")
		}
		s := pr.repo.s
		v := &review{id: s.id(), pr: pr, author: who, body: body, state: states[event], commit: pr.headSHA, submitted: s.now()}
		pr.repo.reviews = append(pr.repo.reviews, v)
		v.tell(who, "submitted")
		return nil
	})
}

// Dismiss dismisses the newest review of a reviewer, as a user.
func (pr *PR) Dismiss(user, reviewer string) error {
	return pr.act(user, "dismiss a review of", func(who *account) error {
		var newest *review
		for _, v := range pr.repo.reviews {
			if v.pr == pr && v.author.login == reviewer {
				newest = v
			}
		}
		switch {
		case newest == nil:
			return errNotFound()
		case !pr.repo.role(who).atLeast(Write):
			return forbidden("Must have write rights to dismiss a review.")
		case newest.state == "COMMENTED" || newest.state == "DISMISSED":
			return &apiError{Status: 422, Message: "Can not dismiss a " + strings.ToLower(newest.state) + " pull request review"}
		}
		newest.state = "DISMISSED"
		newest.tell(who, "dismissed")
		return nil
	})
}

// CommentOn comments on a line of a file, as a user.
func (pr *PR) CommentOn(user, path string, number int, body string) (Comment, error) {
	return pr.write(user, "comment on a line of", func(who *account) (*comment, error) {
		return pr.remark(who, body, line{path: path, number: number, commit: pr.headSHA})
	})
}

// LineComments returns the comments on lines of code, oldest first.
func (pr *PR) LineComments() []Comment {
	pr.repo.s.mu.Lock()
	defer pr.repo.s.mu.Unlock()
	return each(pr.remarks(), (*comment).snapshot)
}

func (pr *PR) remarks() []*comment {
	return slices.DeleteFunc(slices.Clone(pr.repo.remarks), func(c *comment) bool { return c.pr != pr })
}

// tell sends the event of an action on a review.
func (v *review) tell(who *account, action string) {
	out := v.render()
	// Events differ from API answers.
	out["state"], out["body"] = strings.ToLower(v.state), orNil(v.body)
	v.pr.updated = v.pr.repo.s.now()
	v.pr.repo.emit(who, "pull_request_review", action, nil, map[string]any{"review": out, "pull_request": v.pr.renderListed()})
}

// remark adds a comment on a line. GitHub creates a separate review for each such comment.
func (pr *PR) remark(who *account, body string, at line) (*comment, error) {
	if err := pr.talks(who); err != nil {
		return nil, err
	}
	if err := checkCommentBody(body); err != nil {
		return nil, err
	}
	files, err := pr.files()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(files, func(f changedFile) bool { return f.name == at.path })
	switch {
	case i < 0:
		return nil, invalid("PullRequestReviewComment", "path", "invalid", "path is not part of the diff")
	case at.number < 1:
		return nil, invalid("PullRequestReviewComment", "line", "invalid", "line must be part of the diff")
	}
	s := pr.repo.s
	at.hunk = files[i].patch
	at.review = &review{id: s.id(), pr: pr, author: who, state: "COMMENTED", commit: at.commit, submitted: s.now()}
	pr.repo.reviews = append(pr.repo.reviews, at.review)
	c := &comment{id: s.id(), pr: pr, author: who, body: body, created: s.now(), updated: s.now(), on: &at}
	pr.repo.remarks = append(pr.repo.remarks, c)
	pr.updated = c.created
	pr.repo.emit(who, "pull_request_review_comment", "created", nil, map[string]any{"comment": c.renderOnLine(), "pull_request": pr.renderListed()})
	return c, nil
}

func (v *review) render() map[string]any {
	r := v.pr.repo
	html, pull := r.html("/pull/%d#pullrequestreview-%d", v.pr.number, v.id), r.api("/pulls/%d", v.pr.number)
	return with(github.PullRequestReview{ID: &v.id, NodeID: ptr(nodeID("PullRequestReview", v.id)), User: v.author.render(r.s.url), Body: ptr(v.body), SubmittedAt: when(v.submitted),
		CommitID: &v.commit, HTMLURL: &html, PullRequestURL: &pull, State: &v.state, AuthorAssociation: ptr(r.association(v.author))},
		links("html", html, "pull_request", pull))
}

func (c *comment) renderOnLine() map[string]any {
	r, on := c.pr.repo, c.on
	url, html := r.api("/pulls/comments/%d", c.id), r.html("/pull/%d#discussion_r%d", c.pr.number, c.id)
	pull := r.api("/pulls/%d", c.pr.number)
	return with(github.PullRequestComment{ID: &c.id, NodeID: ptr(nodeID("PullRequestReviewComment", c.id)), Body: ptr(c.body), Path: &on.path, DiffHunk: &on.hunk,
		PullRequestReviewID: &on.review.id, Position: &on.number, OriginalPosition: &on.number, Line: &on.number, OriginalLine: &on.number, Side: ptr("RIGHT"),
		CommitID: &on.commit, OriginalCommitID: &on.commit, User: c.author.render(r.s.url), Reactions: renderReactions(c.reactions, url),
		CreatedAt: when(c.created), UpdatedAt: when(c.updated), AuthorAssociation: ptr(r.association(c.author)), URL: &url, HTMLURL: &html,
		PullRequestURL: &pull, SubjectType: ptr("line")},
		links("self", url, "html", html, "pull_request", pull))
}

// links builds the _links field, which go-github's structs lack, from pairs of a name and a URL.
func links(pairs ...string) map[string]any {
	out := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		out[pair[0]] = map[string]string{"href": pair[1]}
	}
	return map[string]any{"_links": out}
}

func listReviews(rq *request, pr *PR) error {
	all := slices.DeleteFunc(slices.Clone(rq.repo.reviews), func(v *review) bool { return v.pr != pr })
	return rq.ok(each(page(rq, all), (*review).render))
}
