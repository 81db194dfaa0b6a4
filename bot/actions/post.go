package actions

import (
	"context"
	"errors"
	"net/http"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/present"
)

// A poster writes to GitHub. What the token may not do is noted once and left
// alone: the job's own status still tells the verdict.
type poster struct {
	hub    *client.GitHub
	repo   string
	runURL string
	checks map[string]posted // by name@sha
	marks  map[string]mark   // by name@sha
	denied []error

	noChecks, noComments bool
}

// A posted check is one that this job made.
type posted struct {
	id     int64
	digest string
	done   bool
}

// allowed notes that something is not allowed, and lets every other error through.
func (p *poster) allowed(err error, not *bool) error {
	var e *client.Error
	if !errors.As(err, &e) || e.Status != http.StatusForbidden {
		return err
	}
	*not = true
	p.denied = append(p.denied, err)
	return nil
}

// publish writes the checks that say something new.
func (p *poster) publish(ctx context.Context, checks []present.Check) error {
	var failure error
	for _, c := range checks {
		have := p.checks[change.CheckKey(c.Name, c.HeadSHA)]
		if p.noChecks || have.digest == c.Digest {
			continue
		}
		id, err := p.write(ctx, have, c)
		if id != 0 {
			p.checks[change.CheckKey(c.Name, c.HeadSHA)] = posted{id, c.Digest, c.Status == "completed"}
		}
		failure = errors.Join(failure, p.allowed(err, &p.noChecks))
	}
	return failure
}

func (p *poster) write(ctx context.Context, have posted, c present.Check) (int64, error) {
	out := p.forHub(c)
	if have.id == 0 {
		id, err := p.hub.CreateCheck(ctx, p.repo, out)
		if !errors.Is(err, client.ErrUnknown) || id != 0 {
			return id, err
		}
		// It may be there all the same; whatever was unfinished before is not any more.
		there, failed := p.ours(ctx, c, c.HeadSHA)
		if failed != nil || len(there) == 0 || there[0].Status == "completed" && c.Status != "completed" {
			return 0, errors.Join(err, failed)
		}
		have.id, out.AnnotationsSent = there[0].ID, min(there[0].Annotations, len(out.Annotations))
	}
	if have.done {
		out.Annotations = nil // GitHub would add them to those that are there
	}
	if err := p.hub.UpdateCheck(ctx, p.repo, have.id, out); err != nil {
		return 0, err
	}
	return have.id, nil
}

// ours are the checks that kernelgate has made in place of this one, newest
// first.
func (p *poster) ours(ctx context.Context, c present.Check, sha string) ([]client.ExistingCheck, error) {
	there, err := p.hub.ListChecks(ctx, p.repo, sha, c.Name)
	var mine []client.ExistingCheck
	for _, t := range there {
		if t.ExternalID == c.ExternalID {
			mine = append(mine, t)
		}
	}
	return mine, err
}

// clear counts the checks that earlier jobs made in place of this one, but for
// those that waited for approval, and concludes what a job left unfinished when
// it was killed.
func (p *poster) clear(ctx context.Context, c present.Check, sha string) (int, error) {
	if p.noChecks {
		return 0, nil
	}
	there, err := p.ours(ctx, c, sha)
	if err != nil {
		return 0, p.allowed(err, &p.noChecks)
	}
	n := 0
	for _, t := range there {
		if t.Conclusion != "action_required" {
			n++
		}
		if t.Status == "completed" || p.noChecks {
			continue
		}
		summary := "The job that measured this was ended before a verdict. A later one takes its place.\n"
		if m, ok := readMark(t.Summary); ok {
			summary += "\n" + m.String() // it was an attempt all the same
		}
		err := p.hub.UpdateCheck(ctx, p.repo, t.ID, client.Check{
			Name: c.Name, Status: "completed", Conclusion: "cancelled", Title: "Ended early",
			Summary: summary,
		})
		if err := p.allowed(err, &p.noChecks); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// mark writes into a check that the attempt begins.
func (p *poster) mark(ctx context.Context, c present.Check, m mark) error {
	if p.noChecks {
		return nil
	}
	key := change.CheckKey(c.Name, c.HeadSHA)
	p.marks[key] = m
	id, err := p.write(ctx, p.checks[key], c)
	if id != 0 {
		p.checks[key] = posted{id, c.Digest, c.Status == "completed"}
	}
	return p.allowed(err, &p.noChecks)
}

// marked is the marks of a commit's checks of a name.
func (p *poster) marked(ctx context.Context, name, sha string) ([]mark, error) {
	if p.noChecks {
		return nil, nil
	}
	there, err := p.hub.ListChecks(ctx, p.repo, sha, name)
	var e *client.Error
	if errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusUnprocessableEntity) {
		return nil, nil // GitHub has no such commit any more
	}
	if err != nil {
		return nil, p.allowed(err, &p.noChecks)
	}
	var marks []mark
	for _, t := range there {
		if m, ok := readMark(t.Summary); ok {
			marks = append(marks, m)
		}
	}
	return marks, nil
}

// forHub leaves the buttons out: nobody in a workflow hears of them.
func (p *poster) forHub(c present.Check) client.Check {
	out := c.ForHub()
	out.DetailsURL, out.Actions = p.runURL, nil
	if m, ok := p.marks[change.CheckKey(c.Name, c.HeadSHA)]; ok {
		out.Summary += "\n" + m.String()
	}
	return out
}

// comment keeps the one sticky comment.
func (p *poster) comment(ctx context.Context, s *change.State, body string) error {
	if p.noComments {
		return nil
	}
	if s.Comment.ID != 0 {
		err := p.hub.EditComment(ctx, p.repo, s.Comment.ID, body)
		if !client.NotFound(err) {
			return p.allowed(err, &p.noComments)
		}
	}
	id, err := p.hub.CreateComment(ctx, p.repo, s.ID.Number, body)
	if errors.Is(err, client.ErrUnknown) {
		there, failed := p.hub.ListComments(ctx, p.repo, s.ID.Number)
		for _, c := range there {
			if c.Mine && c.Body == body {
				id, err = c.ID, nil
			}
		}
		err = errors.Join(err, failed)
	}
	if err == nil {
		s.Comment.ID = id
	}
	return p.allowed(err, &p.noComments)
}

func (p *poster) react(ctx context.Context, comment int64, content string) error {
	if p.noComments {
		return nil
	}
	return p.allowed(p.hub.React(ctx, p.repo, comment, content), &p.noComments)
}

func (p *poster) say(ctx context.Context, pr int, body string) error {
	if p.noComments {
		return nil
	}
	_, err := p.hub.CreateComment(ctx, p.repo, pr, body)
	return p.allowed(err, &p.noComments)
}
