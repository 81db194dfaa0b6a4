package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/sweep"
	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/gates"
)

// watcher starts watches of the repositories that are not suspended.
func (k *Controller) watcher() *sweep.Sweeper {
	w := k.sweeper()
	w.Schedules, w.Watches, w.Find, w.Begin = k.Watches, true, k.watchTarget, k.recordWatch
	return w
}

// watchTarget returns the tip of a repository's default branch, and the release that it is compared with.
func (k *Controller) watchTarget(ctx context.Context, name string, s sweep.Schedule, last sweep.Decision) (sweep.Target, error) {
	target, err := k.sweepTarget(ctx, name, s, last)
	if err != nil || target.Head == "" || s.Watch.Against != watch.Release {
		return target, err
	}
	found, err := k.Planner.Release(ctx, target.Repo, target.Head, last.Releases)
	target.Base, target.Tag, target.MovedTo = found.Commit, found.Name, found.MovedTo
	switch {
	case err != nil:
	case found.MovedTo != "":
		k.Log.Warn("somebody moved the tag of a release: watches go on with the commit that it had first", "repo", target.Repo, "tag", found.Name, "commit", found.Commit, "now", found.MovedTo)
	case last.Tag != "" && last.Tag != found.Name:
		k.Log.Warn("the newest release is a different one: each kernel is compared with the old one once more", "repo", target.Repo, "tag", found.Name, "was", last.Tag)
	}
	return target, err
}

// pinned returns the kernels that a watch compares with an earlier release than the newest one.
func (k *Controller) pinned(ctx context.Context, repo int64, d sweep.Decision) ([]watch.Pin, error) {
	if d.Against != watch.Release {
		return nil, nil
	}
	known, err := k.Ledger.Watched(ctx, repo)
	if err != nil {
		return nil, fmt.Errorf("asking the ledger: %w", err)
	}
	var all []watch.Pin
	for _, s := range known {
		now, err := k.watched(ctx, repo, keyOf(s)) // the ledger may lag behind
		if err != nil {
			return nil, err
		}
		if pin, ok := now.Pin(d.Base, d.Since); ok {
			all = append(all, pin)
		}
	}
	return all, nil
}

// recordWatch records a watch as a change. If the previous watch still has something to measure,
// recordWatch ends the previous watch: the new one measures the default branch again.
func (k *Controller) recordWatch(ctx context.Context, repo int64, d sweep.Decision) error {
	if r := d.Replaces; r != nil {
		if err := k.endWatch(ctx, change.WatchID(repo, r.Head, r.Due)); err != nil {
			return err
		}
	}
	id := change.WatchID(repo, d.Head, d.Due)
	news := false
	pinned, err := k.pinned(ctx, repo, d)
	if err != nil {
		return err
	}
	_, err = k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if news = now.Seq == 0; !news {
			return nil, nil
		}
		return change.Seen{Facts: change.Facts{
			Repo: d.Repo, DefaultBranch: d.Branch, Title: d.Branch, Open: true, Head: d.Head, Base: d.Branch, BaseSHA: d.Base, Kernels: d.Kernels,
			Watch: &change.Watching{Due: d.Due, Against: d.Against, Tag: d.Tag, Slower: d.Slower, MovedTo: d.MovedTo, Pinned: pinned},
		}}, nil
	})
	if err == nil && news {
		k.Log.Info("a watch begins", "repo", d.Repo, "due", d.Due, "head", d.Head, "against", d.Against, "tag", d.Tag, "base", d.Base)
		k.enqueueChange(id)
	}
	return err
}

func (k *Controller) endWatch(ctx context.Context, id change.ID) error {
	_, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		// A watch that has only a search for a commit left stays open, so that the search can end.
		if now.Seq == 0 || !now.NeedsPlan() && !slices.ContainsFunc(now.Runs, change.Run.Unfinished) {
			return nil, nil
		}
		facts := now.Facts
		facts.Open = false
		return change.Seen{Facts: facts}, nil
	})
	k.enqueueChange(id)
	return err
}

// publishWatch records the results that a watch has so far and updates the issues of its kernels. Then it
// records that both are done. Each step can be repeated.
func (k *Controller) publishWatch(ctx context.Context, s *change.State) error {
	var failure error
	for _, run := range s.Searches {
		failure = errors.Join(failure, k.recordBisection(ctx, s, run))
	}
	for _, run := range s.Runs {
		if run.Phase != change.Done || run.Result == nil || !s.Republish && k.looked.Contains(run.Job) {
			continue
		}
		if err := k.publishWatched(ctx, s, run); err != nil {
			failure = errors.Join(failure, err)
			continue
		}
		k.looked.Add(run.Job, true)
	}
	failure = errors.Join(failure, k.dropUnwatched(ctx, s))
	k.count(func(c *Counts) {
		c.Published++
		if failure != nil {
			c.Retry++
		}
	})
	if failure != nil {
		return failure
	}
	_, err := k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if now.Seq != s.Seq {
			return nil, nil // the state has changed, so the bot publishes it again
		}
		return change.Published{Complete: true}, nil
	})
	return err
}

// publishWatched records a look at a kernel, and updates the kernel's issue.
func (k *Controller) publishWatched(ctx context.Context, s *change.State, run change.Run) error {
	unlock, err := k.lockKernel(ctx, subjectIn(s.ID.Repo, run.Key()))
	if err != nil {
		return err
	}
	defer unlock()
	w, err := k.watched(ctx, s.ID.Repo, run.Key())
	if err != nil {
		return err
	}
	if w.Last == nil || w.Last.Due.Before(s.Facts.Watch.Due) {
		look, ok, err := k.lookOf(ctx, s, run)
		if err != nil {
			return err
		}
		if ok {
			w, err = k.updateWatched(ctx, s.ID.Repo, run.Key(), func(now *watch.State) watch.Event {
				if now.Last != nil && !now.Last.Due.Before(look.Due) {
					return nil
				}
				return watch.Looked{Repo: s.ID.Repo, Folder: run.Folder, Device: run.Device, Look: look}
			})
			if err != nil {
				return err
			}
			k.Log.Info("watched", "repo", s.Facts.Repo, "kernel", run.Key(), "due", look.Due, "result", look.Result(), "regression", w.Regression != nil)
		}
	}
	return k.reconcileIssue(ctx, s, run.Key(), w)
}

// lookOf returns what a run of a watch has measured. It reports false if the run says nothing about the
// kernel's speed.
func (k *Controller) lookOf(ctx context.Context, s *change.State, run change.Run) (watch.Look, bool, error) {
	r, f := run.Result, s.Facts
	if r.Evidence == "" || r.Outcome == gates.Error || r.Reason == gates.ReasonSuspicious {
		return watch.Look{}, false, nil
	}
	e, err := k.evidence(ctx, r.Evidence)
	if err != nil {
		return watch.Look{}, false, err
	}
	pol, err := s.Plan.ReadPolicy()
	if err != nil {
		return watch.Look{}, false, err
	}
	asked := e.Change
	asked.Kernel = e.Kernel
	analyses := 1
	if gate := pol.RuleFor(asked).Gates.Performance; gate != nil {
		analyses = len(gate.Interims)
	}
	base := e.Provenance.Baseline
	if base == "" {
		base = s.Plan.Base
	}
	tag, moved, newest := f.Watch.Tag, f.Watch.MovedTo, (*watch.Pin)(nil)
	if at := slices.IndexFunc(f.Watch.Pinned, func(p watch.Pin) bool { return p.Folder == run.Folder && p.Device == run.Device && p.Base == base }); at >= 0 {
		tag, moved, newest = f.Watch.Pinned[at].Tag, "", &watch.Pin{Folder: run.Folder, Device: run.Device, Tag: f.Watch.Tag, Base: s.Plan.Base}
	}
	look, ok := watch.Look{
		Change: s.ID.String(), Job: run.Job, Due: f.Watch.Due, Kernel: run.ManifestName(), Against: f.Watch.Against, Tag: tag, Base: base, Newest: newest, MovedTo: moved, Head: f.Head, Branch: f.Base,
		Slower: f.Watch.Slower, Cell: watch.Cell{Sources: run.HeadSources},
	}.Measure(e, analyses)
	return look, ok, nil
}

// dropUnwatched records that kernels are not watched any more: kernels that were removed or renamed,
// kernels that the configuration no longer names, and devices that the policy no longer names. The bot closes their issues.
func (k *Controller) dropUnwatched(ctx context.Context, s *change.State) error {
	if p := s.Current(); p == nil || !s.Facts.Open || p.Refused || len(p.Problems) > 0 {
		return nil
	}
	all, err := k.Ledger.Watched(ctx, s.ID.Repo)
	if err != nil {
		return fmt.Errorf("asking the ledger: %w", err)
	}
	var failure error
	for _, known := range all {
		if _, watched := s.ByKey(keyOf(known)); watched {
			continue
		}
		failure = errors.Join(failure, k.dropKernel(ctx, s, keyOf(known)))
	}
	return failure
}

func (k *Controller) dropKernel(ctx context.Context, s *change.State, key change.KernelKey) error {
	unlock, err := k.lockKernel(ctx, subjectIn(s.ID.Repo, key))
	if err != nil {
		return err
	}
	defer unlock()
	w, err := k.updateWatched(ctx, s.ID.Repo, key, func(now *watch.State) watch.Event {
		if now.Last == nil || !now.Last.Due.Before(s.Facts.Watch.Due) {
			return nil
		}
		return watch.Dropped{}
	})
	if err != nil {
		return err
	}
	return k.reconcileIssue(ctx, s, key, w)
}

// keyOf names a watched kernel as the runs of a watch do.
func keyOf(s *watch.State) change.KernelKey {
	return change.KernelKey{Folder: s.Folder, Device: s.Device}
}

func subjectIn(repo int64, key change.KernelKey) string {
	return watch.Subject(repo, key.Folder, key.Device)
}

// watched reads the state of a watched kernel from the journal.
func (k *Controller) watched(ctx context.Context, repo int64, key change.KernelKey) (*watch.State, error) {
	s := &watch.State{}
	_, err := k.Journal.ReplayRun(ctx, subjectIn(repo, key), func(stored journal.Event) error {
		e, err := watch.Decode(stored.Writer, stored.Kind, stored.Data)
		if err == nil {
			s.Apply(stored.Seq, e)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the watched kernel %s: %w", key, err)
	}
	return s, nil
}

// updateWatched stores the event that decide returns, and returns the new state. If decide returns nil,
// updateWatched stores nothing. If another writer stored an event first, updateWatched calls decide again.
func (k *Controller) updateWatched(ctx context.Context, repo int64, key change.KernelKey, decide func(*watch.State) watch.Event) (*watch.State, error) {
	for {
		s, err := k.watched(ctx, repo, key)
		if err != nil {
			return nil, err
		}
		e := decide(s)
		if e == nil {
			return s, nil
		}
		seq, err := k.Journal.AppendAt(ctx, k.Now().UTC().Round(0), subjectIn(repo, key), s.Seq, watch.KindOf(e), e)
		if errors.Is(err, journal.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("writing the watched kernel %s: %w", key, err)
		}
		s.Apply(seq, e)
		return s, nil
	}
}

// lockKernel lets only one worker at a time look for a kernel's issue and open it: two workers may publish
// two watches of a repository at the same time.
func (k *Controller) lockKernel(ctx context.Context, name string) (unlock func(), err error) {
	k.mu.Lock()
	l := k.kernels[name]
	if l == nil {
		l = make(chan struct{}, 1)
		k.kernels[name] = l
	}
	k.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
