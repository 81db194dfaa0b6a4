package actions

import (
	"context"
	"errors"
	"net/http"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/present"
)

// publish brings GitHub in line with what is known.
func (s *session) publish(ctx context.Context) error {
	if err := s.lookBeside(ctx); err != nil {
		return err
	}
	return s.posted(s.posts.Publish(ctx, s.view()))
}

// lookBeside finds how other open pull requests with the same head stand, by the newest
// check that was written for each.
func (s *session) lookBeside(ctx context.Context) error {
	s.beside = nil
	checks := present.Checks(s.view()) // the required one first
	if s.state.ID.Kind != change.Pull || len(checks) == 0 || !s.posts.MayCheck() {
		return nil
	}
	head, seen := s.state.Facts.Head, map[int]bool{s.state.ID.Number: true}
	there, err := s.hub.ListChecks(ctx, s.env.repo, head, checks[0].Name)
	if err != nil {
		return s.posts.Unchecked(err)
	}
	for _, t := range there { // newest first
		id, folder, err := present.ParseExternalID(t.ExternalID)
		if err != nil || folder != "" || id.Kind != change.Pull || id.Repo != s.state.ID.Repo || seen[id.Number] {
			continue
		}
		seen[id.Number] = true
		if present.IsBeside(t.Title) {
			continue // it tells of a third one, or of this one
		}
		its, err := s.pull(ctx, id.Number)
		if err != nil && !client.NotFound(err) {
			return err
		}
		if err == nil && its.Open && its.Head == head {
			s.beside = append(s.beside, present.BesideCheck(id, t.Name, t.Status, t.Conclusion, t.Title))
		}
	}
	return nil
}

// posted notes what was written, whatever became of the rest.
func (s *session) posted(p change.Published, err error) error {
	s.apply(p)
	return err
}

// clear counts the checks that earlier jobs made in place of this one, but for
// those that waited for approval, and concludes what a job left unfinished when
// it was killed. What this job makes comes after the newest of them.
func (s *session) clear(ctx context.Context, c present.Check, sha string) (int, error) {
	if !s.posts.MayCheck() {
		return 0, nil
	}
	there, err := s.hub.ListChecks(ctx, s.env.repo, sha, c.Name)
	if err != nil {
		return 0, s.posts.Unchecked(err)
	}
	n := 0
	for _, t := range there { // newest first
		if t.ExternalID != c.ExternalID {
			continue
		}
		key := change.CheckKey(c.Name, sha)
		if _, ok := s.state.Checks[key]; !ok {
			s.apply(change.Published{Checks: map[string]change.Posted{key: {ID: t.ID, Done: true}}})
		}
		if t.Conclusion != "action_required" {
			n++
		}
		if t.Status == "completed" || !s.posts.MayCheck() {
			continue
		}
		summary := "The job that measured this was ended before a verdict. A later one takes its place.\n"
		if m, ok := readMark(t.Summary); ok {
			summary += "\n" + m.String() // it was an attempt all the same
		}
		err := s.hub.UpdateCheck(ctx, s.env.repo, t.ID, client.Check{Name: c.Name, Status: "completed", Conclusion: "cancelled", Title: "Ended early", Summary: summary})
		if err := s.posts.Unchecked(err); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// marked is the marks of a commit's checks of a name.
func (s *session) marked(ctx context.Context, name, sha string) ([]mark, error) {
	if !s.posts.MayCheck() {
		return nil, nil
	}
	there, err := s.hub.ListChecks(ctx, s.env.repo, sha, name)
	e, ok := errors.AsType[*client.Error](err)
	if ok && (e.Status == http.StatusNotFound || e.Status == http.StatusUnprocessableEntity) {
		return nil, nil // GitHub has no such commit any more
	}
	if err != nil {
		return nil, s.posts.Unchecked(err)
	}
	var marks []mark
	for _, t := range there {
		if m, ok := readMark(t.Summary); ok {
			marks = append(marks, m)
		}
	}
	return marks, nil
}
