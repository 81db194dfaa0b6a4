package keeper

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/publish"
	"github.com/kernelgate/kernelgate/bot/queue"
	"github.com/kernelgate/kernelgate/runners"
)

// show brings GitHub in step with what is known of a change. What somebody waits for is
// published at once; what nobody has measured, when there is room. What is still under way
// can be left out where writes are few, and is told no more often than its progress would be.
func (k *Keeper) show(ctx context.Context, id change.ID) error {
	for {
		s, err := k.states.load(ctx, id)
		if err != nil {
			return err
		}
		if s.Seq == 0 || s.Facts.Head == "" || k.isAway(id.Repo) {
			return nil
		}
		others, err := k.beside(ctx, s, s.Facts.Head)
		if err != nil {
			return err
		}
		if s.Facts.Open || !s.Dirty { // one that is closed has its last word first
			if err := k.tell(ctx, s, others); err != nil {
				return err
			}
		}
		if s.NeedsPlan() && !k.unseen(s) {
			return nil
		}
		p := k.priorityOf(s)
		if due := k.heardOf(s).Add(k.planPatience(p)); s.NeedsPlan() && k.Now().Before(due) {
			return later(due) // most plans are there before that, and say more
		}
		ends := s.Dirty && concluded(s)
		if !s.Dirty && !k.hasProgress(s) {
			return nil
		}
		as := client.WithPriority(ctx, p)
		if ends {
			err = k.hasRoom(as, s)
		} else {
			err = k.maySpare(ctx, s)
		}
		if err == nil {
			err = k.publishAs(as, s, others, ends)
		}
		if errors.Is(err, client.ErrAway) {
			k.goneAway(id.Repo, s.Facts.Repo, err)
			return nil
		}
		if errors.Is(err, publish.ErrUnseen) && k.isDeleted(ctx, s) {
			return nil
		}
		if err != nil || !s.Dirty {
			return err
		}
	}
}

// isDeleted asks GitHub whether it does not show a change because the repository is gone, and
// leaves the repository alone if so.
func (k *Keeper) isDeleted(ctx context.Context, s *change.State) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_, err := k.GitHub.Repository(ctx, s.Facts.Repo)
	if !client.NotFound(err) {
		return false
	}
	k.goneAway(s.ID.Repo, s.Facts.Repo, err)
	return true
}

func (k *Keeper) publishAs(ctx context.Context, s *change.State, others []*change.State, ends bool) error {
	if !ends {
		k.shown.Add(s.ID, k.Now())
	}
	if s.Dirty {
		return k.publish(ctx, s, others)
	}
	return k.publishProgress(client.Spare(ctx), s, others)
}

// maySpare says when something unfinished can be told, if not now: that a change was
// heard of, at once; all else every so often, so that what happens quickly after that is
// one word, and not three.
func (k *Keeper) maySpare(ctx context.Context, s *change.State) error {
	last, told := k.shown.Get(s.ID)
	if due := last.Add(k.ProgressEvery); told && !k.unseen(s) && k.Now().Before(due) {
		return later(due)
	}
	return k.GitHub.Spared(client.Spare(ctx), s.Facts.Repo)
}

// backlogPlanTime is how long the plans of old pull requests may take before their checks say
// that they are still to be read: on the first day that would be a second write for each.
const backlogPlanTime = 10 * time.Minute

// planPatience is how long a plan is waited for before something is shown without it.
func (k *Keeper) planPatience(p client.Priority) time.Duration {
	if p == client.Backlog {
		return max(k.ProgressEvery, backlogPlanTime)
	}
	return k.ProgressEvery
}

// heardOf is when the head was first to be shown.
func (k *Keeper) heardOf(s *change.State) time.Time {
	if at, ok := k.heard.Get(s.Facts.Head); ok {
		return at
	}
	k.heard.Add(s.Facts.Head, k.Now())
	return k.Now()
}

// unseen tells whether GitHub shows nothing for the head yet.
func (k *Keeper) unseen(s *change.State) bool {
	return !s.ID.Kind.OnMain() && len(s.ChecksOf(s.Facts.Head)) == 0
}

// concluded tells whether there is something that somebody waits for: a verdict, a
// question to people, or the answer to a command.
func concluded(s *change.State) bool {
	if s.NeedsPlan() {
		return false
	}
	return len(s.Wanted()) == 0 || slices.ContainsFunc(s.Runs, ended) || slices.ContainsFunc(s.Extra, ended) || slices.ContainsFunc(s.Commands, unreplied)
}

// Progress is told by a runner through package fleet. It is shown, and not
// kept.
func (k *Keeper) Progress(job string, p runners.Event) {
	id, err := change.OfJob(job)
	if err != nil {
		return
	}
	k.progress.Add(job, present.Progress{Event: p, At: k.Now()})
	if last, _ := k.shown.Get(id); k.Now().Sub(last) >= k.ProgressEvery {
		k.showing.wake(id)
	}
	k.movedUp()
}

// place is where a run stands in line.
func (k *Keeper) place(r change.Run) (queue.Place, bool) {
	if r.Phase != change.Queued {
		return queue.Place{}, false
	}
	return k.Journal.Place(r.Job)
}

// movedUp has those shown that stand elsewhere in line than was told, every now and then while runners are at work: that
// is when it moves.
func (k *Keeper) movedUp() {
	k.mu.Lock()
	due := k.Now().Sub(k.placed) >= 4*k.ProgressEvery
	if due {
		k.placed = k.Now()
	}
	k.mu.Unlock()
	if !due {
		return
	}
	for job, place := range k.Journal.Places() {
		if id, err := change.OfJob(job); err == nil && k.isNewPlace(job, place) {
			k.showing.wake(id)
		}
	}
}

// isNewPlace tells whether a job's place is worth a write: it is held back, or is not any more, or half of those before it
// are gone. So a job of which 64 go first is told of seven times, and not 64.
func (k *Keeper) isNewPlace(job string, p queue.Place) bool {
	told, ok := k.places.Get(job)
	if !ok {
		return p.Ahead > 0 || p.Held != nil
	}
	return (told.Held == nil) != (p.Held == nil) || p.Ahead < told.Ahead && p.Ahead <= told.Ahead/2 || p.Ahead > 2*told.Ahead+1
}

func (k *Keeper) forget(job string) {
	k.progress.Remove(job)
	k.places.Remove(job)
}

// hasProgress tells whether a runner has said something since the last time that
// anything was shown.
func (k *Keeper) hasProgress(s *change.State) bool {
	last, _ := k.shown.Get(s.ID)
	return slices.ContainsFunc(s.Wanted(), func(r change.Run) bool {
		if place, ok := k.place(r); ok && k.isNewPlace(r.Job, place) {
			return true
		}
		p, ok := k.progress.Get(r.Job)
		return ok && !p.At.Before(last)
	})
}
