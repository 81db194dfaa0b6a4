package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/bot/answer"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/publish"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/trace"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/search"
)

// publish writes the state of a change to GitHub, and records what GitHub shows now.
func (k *Controller) publish(ctx context.Context, s *change.State, with sharing) error {
	if s.ID.Kind == change.Watch {
		return k.publishWatch(ctx, s)
	}
	view, err := k.view(ctx, s, with)
	if err != nil {
		return err
	}
	from := k.Now()
	p := publish.Publisher{GitHub: k.GitHub, Progressed: k.progressed.Contains(s.ID)}
	out, failure := p.Publish(ctx, view)
	if failure == nil {
		k.progressed.Remove(s.ID)
	}
	k.denied(s, p.Denied)
	k.count(func(c *Counts) {
		c.Published++
		if failure != nil {
			c.Retry++
		}
		if errors.Is(failure, publish.ErrNotVisible) {
			c.Unseen++
		}
	})
	k.Trace.Tell(headOf(s), trace.Span{Name: "publish", From: from, To: k.Now(), Err: failure})
	if len(out.Checks) == 0 && out.Comment == nil && len(out.Replies) == 0 && !out.Complete {
		return failure
	}
	after, err := k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		out.Complete = out.Complete && now.Seq == s.Seq // otherwise there is something new to publish
		return out, nil
	})
	if err == nil {
		k.conclude(ctx, after)
	}
	return errors.Join(failure, err)
}

func (k *Controller) denied(s *change.State, all []error) {
	for _, err := range all {
		k.Log.Warn("GitHub does not let the bot speak", "change", s.ID.String(), "repo", s.Facts.Repo, "err", err)
	}
}

// view collects what the bot knows about a change, and about other changes with the same head.
func (k *Controller) view(ctx context.Context, s *change.State, with sharing) (present.View, error) {
	v, err := k.ownView(ctx, s)
	v.Shown = with.shown
	for _, other := range with.open {
		if err != nil {
			break
		}
		var its present.View
		if its, err = k.ownView(ctx, other); err == nil {
			v.Beside = append(v.Beside, present.BesideOf(its))
		}
	}
	return v, err
}

func (k *Controller) ownView(ctx context.Context, s *change.State) (present.View, error) {
	v := present.View{
		State: s, Verdicts: map[string]*gates.Verdict{}, Progress: map[string]runners.LogEntry{}, Tried: map[string][]change.Tried{}, Reports: map[string]*search.Report{},
		Places: map[string]scheduler.Position{}, Runners: k.Runners(), Now: k.Now(), Buttons: k.GitHub.UsesChecks(), RunURL: k.Page(s.Facts.Repo, s.ID), Web: k.Web, Pages: map[string]present.Page{},
	}
	for _, run := range slices.Concat(s.Runs, s.ExtraRuns) {
		if page := k.RunPage(s.Facts.Repo, run.Folder, run.Job); page.URL != "" {
			v.Pages[run.Job] = page
		}
		// A heartbeat may arrive after the job went back into the queue.
		if p, ok := k.progress.Get(run.Job); ok && run.Phase == change.Running {
			v.Progress[run.Job] = p
		}
		if place, ok := k.queuePosition(run); ok {
			v.Places[run.Job] = place
			k.positions.Add(run.Job, place)
		}
	}
	for _, run := range slices.Concat(s.Runs, s.ExtraRuns) {
		if run.Result == nil {
			continue
		}
		verdict, err := k.verdict(ctx, *run.Result)
		if err != nil {
			return v, err
		}
		v.Verdicts[run.Job] = verdict
	}
	for _, run := range s.Searches {
		if k.SearchPage != nil && run.Search.Name() == string(search.Tune) {
			v.Pages[run.Job] = present.Page{URL: k.SearchPage(s.Facts.Repo, run.Job)}
		}
	}
	for _, run := range v.NewReports() {
		if run.Result.Report == "" {
			continue
		}
		found, err := k.storedReport(ctx, run.Result.Report)
		if err != nil {
			return v, err
		}
		v.Reports[run.Job] = found
	}
	if s.ID.Kind != change.Pull {
		return v, nil
	}
	for _, run := range s.Runs {
		var err error
		if v.Tried[run.Folder], err = k.Ledger.TriedBefore(ctx, s.ID.Repo, run.Folder, s.ID, 3); err != nil {
			return v, fmt.Errorf("asking the ledger: %w", err)
		}
	}
	return v, nil
}

// publishProgress updates the text of running checks.
func (k *Controller) publishProgress(ctx context.Context, s *change.State, with sharing) error {
	if !k.GitHub.UsesChecks() || len(s.Wanted()) == 0 {
		return nil
	}
	view, err := k.view(ctx, s, with)
	if err != nil || len(view.Progress) == 0 && len(view.Places) == 0 {
		return err
	}
	p := publish.Publisher{GitHub: k.GitHub}
	k.progressed.Add(s.ID, true)
	err = p.Progress(ctx, view)
	if client.NotFound(err) {
		return k.lostCheck(ctx, s, err)
	}
	return err
}

// lostCheck publishes everything about a change again if GitHub has lost one of its checks.
func (k *Controller) lostCheck(ctx context.Context, s *change.State, cause error) error {
	k.Log.Warn("GitHub does not know a check that it had; everything about the change is published again", "change", s.ID.String(), "repo", s.Facts.Repo, "err", cause)
	_, err := k.states.update(ctx, s.ID, func(*change.State) (change.Event, error) { return change.RepublishAsked{}, nil })
	k.publishQueue.add(s.ID)
	return err
}

// answer decides on a command.
func (k *Controller) answer(ctx context.Context, s *change.State, c change.Command) error {
	p := publish.Publisher{GitHub: k.GitHub}
	if err := p.Acknowledge(ctx, s.Facts.Repo, c.Asked); err != nil {
		return err
	}
	k.denied(s, p.Denied)
	a, err := answer.Decider{People: people{k.GitHub, s.ID.Repo}, Planner: k.Planner, Verdict: k.verdict, Now: k.Now}.To(ctx, s, c)
	if err != nil {
		return err
	}
	k.count(func(n *Counts) { n.Answered++ })
	k.Log.Info("command", "change", s.ID.String(), "repo", s.Facts.Repo, "command", c.ID, "by", c.By, "ok", a.OK)
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if now.Facts.PlanKey() != s.Facts.PlanKey() {
			return nil, nil // the head or the base has changed meanwhile: decide again
		}
		return a, nil
	})
	return err
}
