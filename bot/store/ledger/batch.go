package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/repos"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/watch"
)

// A batch is events that are written in one transaction. A change is written once
// however many of them are about it; what its state forgets again, such as
// attempts long past, is noted event by event.
type batch struct {
	l      *Ledger
	began  time.Time
	events int
	last   journal.Event

	states    ordered[change.ID, touched]
	heads     []head
	runs      ordered[string, *run]       // by job
	commands  ordered[[2]string, command] // by change and id
	overrides []override
	watched   ordered[string, *watch.State] // by the name of the subject
	repos     []repos.Event
}

// ordered is a map that remembers in which order its keys came.
type ordered[K comparable, V any] struct {
	keys   []K
	values map[K]V
}

func (o *ordered[K, V]) set(k K, v V) {
	if _, ok := o.values[k]; !ok {
		o.keys = append(o.keys, k)
	}
	if o.values == nil {
		o.values = map[K]V{}
	}
	o.values[k] = v
}

type touched struct {
	*change.State
	at time.Time // of its last event
}

type head struct {
	change change.ID
	sha    string
}

type run struct {
	change.Run
	change change.ID
	extra  bool
	shapes bool // its result is new
}

type command struct {
	change.Command
	change change.ID
}

type override struct {
	change.Override
	change  change.ID
	command string
}

func (l *Ledger) newBatch() *batch { return &batch{l: l} }

func (b *batch) full(now time.Time) bool {
	return b.events >= batchEvents || now.Sub(b.began) >= batchTime
}

// add applies an event. It ignores events that are about neither a change nor a watched kernel nor a repository.
func (b *batch) add(ctx context.Context, e journal.Event) error {
	if watch.IsSubject(e.Run) {
		return b.addWatched(ctx, e)
	}
	if repos.IsSubject(e.Run) {
		return b.addRepository(e)
	}
	id, err := change.ParseID(e.Run)
	if err != nil {
		b.count(e)
		return nil
	}
	event, err := change.DecodeFrom(e.Writer, e.Kind, e.Data)
	if err != nil {
		return err
	}
	s, err := b.state(ctx, id)
	if err != nil {
		return err
	}
	b.count(e)
	if e.Seq <= s.Seq {
		return nil
	}
	at := e.At.UTC()
	before, given := s.Facts.Head, s.Override
	runs, extra := slices.Clone(s.Runs), slices.Clone(s.ExtraRuns)
	s.Apply(e.Seq, at, event)
	b.states.set(id, touched{State: s, at: at})

	if s.Facts.Head != before {
		b.heads = append(b.heads, head{change: id, sha: s.Facts.Head})
	}
	b.noteRuns(s, at, runs, extra)
	switch event := event.(type) {
	case change.Asked:
		b.noteCommand(s, event.ID)
	case change.Answered:
		b.noteCommand(s, event.ID)
		if s.Override != nil && s.Override != given {
			b.overrides = append(b.overrides, override{Override: *s.Override, change: id, command: event.ID})
		}
	}
	return nil
}

func (b *batch) count(e journal.Event) {
	if b.events == 0 {
		b.began = b.l.now()
	}
	b.events++
	b.last = e
}

// state finds a change's state as it is after the batch's events so far.
func (b *batch) state(ctx context.Context, id change.ID) (*change.State, error) {
	if s, ok := b.states.values[id]; ok {
		return s.State, nil
	}
	if s, ok := b.l.cache.Get(id); ok {
		return s, nil
	}
	s, err := readState(ctx, b.l.store.Load().write, id)
	if errors.Is(err, errNotFound) {
		s, err = change.New(id), nil
	}
	if err != nil {
		return nil, err
	}
	b.l.cache.Add(id, s)
	return s, nil
}

func readState(ctx context.Context, db *sql.DB, id change.ID) (*change.State, error) {
	var text []byte
	err := db.QueryRowContext(ctx, "SELECT state FROM changes WHERE id = ?", id.String()).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("change %s: %w", id, errNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading change %s: %w", id, err)
	}
	var s change.State
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("reading change %s: %w: %w", id, errNonsense, err)
	}
	return &s, nil
}

// noteRuns notes the runs that an event has made, changed or ended.
func (b *batch) noteRuns(s *change.State, at time.Time, runs, extra []change.Run) {
	note := func(before []change.Run, now change.Run, extra bool) {
		var old change.Run
		if i := indexJob(before, now.Job); i >= 0 {
			old = before[i]
		}
		if reflect.DeepEqual(old, now) {
			return
		}
		shapes := now.Result != nil && now.Result != old.Result
		if noted := b.runs.values[now.Job]; noted != nil {
			shapes = shapes || noted.shapes
		}
		b.runs.set(now.Job, &run{Run: now, change: s.ID, extra: extra, shapes: shapes})
	}
	gone := func(before, now []change.Run, extra bool) {
		for _, r := range before {
			if indexJob(now, r.Job) >= 0 {
				continue
			}
			if i := indexJob(s.Past, r.Job); i >= 0 {
				r = s.Past[i]
			} else if r.Unfinished() {
				r.Phase, r.Ended = change.Abandoned, at
			}
			note(before, r, extra)
		}
	}
	for _, r := range s.Runs {
		note(runs, r, false)
	}
	for _, r := range s.ExtraRuns {
		note(extra, r, true)
	}
	gone(runs, s.Runs, false)
	gone(extra, s.ExtraRuns, true)
}

func indexJob(runs []change.Run, job string) int {
	return slices.IndexFunc(runs, func(r change.Run) bool { return r.Job == job })
}

func (b *batch) noteCommand(s *change.State, id string) {
	i := slices.IndexFunc(s.Commands, func(c change.Command) bool { return c.ID == id })
	if i >= 0 {
		b.commands.set([2]string{s.ID.String(), id}, command{Command: s.Commands[i], change: s.ID})
	}
}
