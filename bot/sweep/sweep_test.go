package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// A memory is a journal of one subject each.
type memory map[string][]journal.Event

func (m memory) Last(_ context.Context, name string) (journal.Event, error) {
	if all := m[name]; len(all) > 0 {
		return all[len(all)-1], nil
	}
	return journal.Event{}, journal.ErrNotFound
}

func (m memory) Append(_ context.Context, name string, after uint64, kind string, event any) (uint64, error) {
	if after != uint64(len(m[name])) {
		return 0, journal.ErrConflict
	}
	data, err := json.Marshal(event)
	m[name] = append(m[name], journal.Event{Seq: after + 1, Kind: kind, Data: data})
	return after + 1, err
}

// Each commit is swept once: a sweep that could not begin is tried again with the same commit, times that passed without a
// bot are one sweep, and a branch that has not moved is not measured.
func TestSweep(t *testing.T) {
	now, head, refuse := time.Date(2026, 5, 4, 1, 0, 0, 0, time.UTC), "", false
	var begun []string
	daily := Schedule{Repository: "*", At: 2 * time.Hour, Every: 24 * time.Hour, Kernels: []string{"kernels/a"}}
	s := &Sweeper{
		Schedules: []Schedule{daily}, Timeout: time.Minute, Journal: memory{}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Find: func(_ context.Context, name string) (Target, error) {
			return Target{Repo: name, Branch: "main", Head: head}, nil
		},
		Begin: func(_ context.Context, repo int64, d Decision) error {
			if refuse {
				return errors.New("refused")
			}
			begun = append(begun, fmt.Sprintf("%d %s %s..%s %s", repo, d.Due.Format("02 15:04"), d.Base, d.Head, d.Kernels[0]))
			return nil
		},
	}
	for _, step := range []struct {
		name   string
		after  time.Duration
		head   string
		refuse bool
		begins string // the last that began, if one did
	}{
		{"an empty repository", 0, "", false, ""},
		{"the first commit", 24 * time.Hour, "a", true, ""},
		{"again, when the branch has moved", time.Minute, "b", false, "7 04 02:00 ..a kernels/a"},
		{"three days later", 72 * time.Hour, "b", false, "7 07 02:00 a..b kernels/a"},
		{"a day later, at the same commit", 24 * time.Hour, "b", false, ""},
	} {
		now, head, refuse, begun = now.Add(step.after), step.head, step.refuse, nil
		due, err := s.sweep(t.Context(), daily, 7, "olga/kernels")
		if (err != nil) != step.refuse || due.After(now) || now.Sub(due) >= daily.Every {
			t.Errorf("%s: due %v at %v, %v", step.name, due, now, err)
		}
		if got := append(begun, "")[0]; got != step.begins {
			t.Errorf("%s: %q begins, want %q", step.name, got, step.begins)
		}
	}
}

// The schedule with the repository's name is used before the one for all.
func TestScheduleOf(t *testing.T) {
	s := Sweeper{Schedules: []Schedule{{Repository: "*", At: 1}, {Repository: "Olga/Kernels", At: 2}}}
	for name, at := range map[string]time.Duration{"olga/kernels": 2, "mona/kernels": 1} {
		if got, ok := s.scheduleOf(name); !ok || got.At != at {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	s.Schedules = s.Schedules[1:]
	if _, ok := s.scheduleOf("mona/kernels"); ok {
		t.Error("a repository without a schedule has one")
	}
}
