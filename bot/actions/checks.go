package actions

import (
	"context"
	"errors"
	"net/http"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/present"
)

// publish updates GitHub to the current state.
func (s *session) publish(ctx context.Context) error {
	if err := s.lookBeside(ctx); err != nil {
		return err
	}
	return s.posted(s.posts.Publish(ctx, s.view()))
}

// lookBeside finds the verdicts of other open pull requests and of a merge group with the same head, from the newest
// check or status of each. Whether a merge group is still in its queue does not matter: nobody develops on its commit.
func (s *session) lookBeside(ctx context.Context) error {
	s.beside = nil
	checks := present.Checks(s.view()) // the required check is first
	if len(checks) == 0 || !s.posts.MayCheck() {
		return nil
	}
	there, err := s.reports(ctx, s.state.Facts.Head, checks[0].Name)
	if err != nil {
		return err
	}
	seen := map[change.ID]bool{s.state.ID: true}
	for _, t := range there { // newest first
		if t.key != (change.KernelKey{}) || t.id.Repo != s.state.ID.Repo || seen[t.id] {
			continue
		}
		seen[t.id] = true
		if present.IsSharedHead(t.title) {
			continue // it repeats the verdict of a third change, or of this one
		}
		if t.id.Kind == change.Group {
			s.beside = append(s.beside, present.BesideCheck(t.id, change.Facts{}, t.status, t.conclusion, t.title))
			continue
		}
		its, err := s.pull(ctx, t.id.Number)
		if err != nil && !client.NotFound(err) {
			return err
		}
		if err == nil && its.Open && its.Head == s.state.Facts.Head {
			s.beside = append(s.beside, present.BesideCheck(t.id, its, t.status, t.conclusion, t.title))
		}
	}
	return nil
}

// A reported verdict is a check or a status that a job wrote for a change, or for one of its
// kernels.
type reported struct {
	id                              change.ID
	key                             change.KernelKey // set for the check of one run; a status does not say
	rules                           string           // digest of the rules that applied
	number                          int64            // id of the check
	name, status, conclusion, title string
}

// reports returns the verdicts that jobs reported under a name on a commit, newest first. It
// returns nothing if the token may not read them. The first write shows whether the token may
// write.
func (s *session) reports(ctx context.Context, sha, name string) (all []reported, err error) {
	if s.hub.UsesChecks() {
		there, err := s.hub.ListChecks(ctx, s.env.repo, sha, name)
		for _, t := range there {
			if id, key, err := present.ParseExternalID(t.ExternalID); err == nil {
				_, rules, _ := s.env.pullOf(t.DetailsURL)
				all = append(all, reported{id, key, rules, t.ID, t.Name, t.Status, t.Conclusion, t.Title})
			}
		}
		return all, unlessForbidden(err)
	}
	there, err := s.hub.ListStatuses(ctx, s.env.repo, sha, name)
	for _, t := range there {
		number, rules, ok := s.env.pullOf(t.TargetURL)
		if !ok {
			continue
		}
		r := reported{id: change.ID{Kind: change.Pull, Repo: s.state.ID.Repo, Number: number}, rules: rules, name: t.Context, status: "completed", title: t.Description}
		switch t.State {
		case "pending":
			r.status = "in_progress"
		case "error":
			r.conclusion = "cancelled"
		default:
			r.conclusion = t.State
		}
		all = append(all, r)
	}
	return all, unlessForbidden(err)
}

// unlessForbidden drops an error that is a permanent refusal, and returns all others.
func unlessForbidden(err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusForbidden && e.RetryAt.IsZero() {
		return nil
	}
	return err
}

// posted records what was published, even if the rest failed.
func (s *session) posted(p change.Published, err error) error {
	s.apply(p)
	return err
}

const endedEarly = "The job that measured this was ended before a verdict. A later one takes its place.\n"

// clear counts the checks that earlier jobs created for this check, except those that waited for
// approval. It concludes checks that a killed job left unfinished. The checks of this job come
// after the newest of them. A status is not counted: this job's status replaces it, and the marks
// count the attempts.
func (s *session) clear(ctx context.Context, c present.Check, sha string) (int, error) {
	there, err := s.reports(ctx, sha, c.Name)
	if err != nil {
		return 0, err
	}
	if !s.hub.UsesChecks() {
		return 0, s.endStatus(ctx, c, sha, there)
	}
	n := 0
	for _, t := range there { // newest first
		if id, key, err := present.ParseExternalID(c.ExternalID); err != nil || t.id != id || t.key != key {
			continue
		}
		key := change.CheckKey(c.Name, sha)
		if _, ok := s.state.Checks[key]; !ok {
			s.apply(change.Published{Checks: map[string]change.Posted{key: {ID: t.number, Done: true}}})
		}
		if t.conclusion != "action_required" {
			n++
		}
		if t.status == "completed" {
			continue
		}
		// The check of a different App stays unchanged.
		err := s.hub.UpdateCheck(ctx, s.env.repo, t.number, client.Check{Name: c.Name, Status: "completed", Conclusion: "cancelled", Title: "Ended early", Summary: endedEarly})
		if err := unlessForbidden(err); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// endStatus ends the status that a killed job left pending on an earlier head. The status of the
// current head is replaced anyway.
func (s *session) endStatus(ctx context.Context, c present.Check, sha string, there []reported) error {
	if sha == c.HeadSHA || len(there) == 0 || there[0].id != s.state.ID || there[0].status == "completed" {
		return nil
	}
	return unlessForbidden(s.hub.SetStatus(ctx, s.env.repo, sha, client.Status{Context: c.Name, State: "error", Description: "Ended early", TargetURL: s.view().RunURL}))
}
