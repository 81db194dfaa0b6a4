package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/watch"
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
		Find: func(_ context.Context, name string, _ Schedule, _ Decision) (Target, error) {
			return Target{ID: 7, Repo: name, Branch: "main", Head: head}, nil
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

// A watch begins every night if there is something to compare with, even if the commit is the same. It replaces the previous
// watch.
func TestWatch(t *testing.T) {
	now, head, tag := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC), "", ""
	var begun []Decision
	nightly := Schedule{Repository: "*", At: 2 * time.Hour, Every: 24 * time.Hour, Watch: &Watch{Against: watch.Release, Slower: 0.02}}
	journal := memory{}
	s := &Sweeper{
		Watches: true, Timeout: time.Minute, Journal: journal, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		Find: func(_ context.Context, name string, s Schedule, _ Decision) (Target, error) {
			target := Target{ID: 7, Repo: name, Branch: "main", Head: head}
			if tag != "" {
				target.Base, target.Tag = "commit of "+tag, tag
			}
			return target, nil
		},
		Begin: func(_ context.Context, _ int64, d Decision) error {
			begun = append(begun, d)
			return nil
		},
	}
	for _, step := range []struct {
		name, head, tag string
		against         watch.Against
		begins          string
	}{
		{"an empty repository", "", "", watch.Release, ""},
		{"no release", "a", "", watch.Release, ""},
		{"a release", "a", "v1", watch.Release, "release v1 commit of v1..a"},
		{"the same commit", "a", "v1", watch.Release, "release v1 commit of v1..a, after a on 06"},
		{"the release itself", "commit of v2", "v2", watch.Release, "release v2 commit of v2..commit of v2, after a on 07"},
		{"against the best", "b", "", watch.Best, "best  ..b, after commit of v2 on 08"},
	} {
		head, tag, begun = step.head, step.tag, nil
		nightly.Watch.Against = step.against
		for range 2 { // the second time, as after a restart, repeats the first
			if _, err := s.sweep(t.Context(), nightly, 7, "olga/kernels"); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		for i, d := range begun {
			if i > 0 && !reflect.DeepEqual(d, begun[0]) {
				t.Errorf("%s: %+v, then %+v", step.name, begun[0], d)
			}
			got = fmt.Sprintf("%s %s %s..%s", d.Against, d.Tag, d.Base, d.Head)
			if d.Replaces != nil {
				got += fmt.Sprintf(", after %s on %s", d.Replaces.Head, d.Replaces.Due.Format("02"))
			}
			if d.Slower != 0.02 {
				t.Errorf("%s: %+v", step.name, d)
			}
		}
		if got != step.begins {
			t.Errorf("%s: %q begins, want %q", step.name, got, step.begins)
		}
		now = now.Add(24 * time.Hour)
	}
	if len(journal["watches-7"]) != 6 || len(journal["sweeps-7"]) != 0 {
		t.Errorf("%d decisions on watches and %d on sweeps", len(journal["watches-7"]), len(journal["sweeps-7"]))
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

// A name that went to a different repository starts nothing: its commits are not those of the repository.
func TestNameGoesToAnother(t *testing.T) {
	s := &Sweeper{
		Timeout: time.Minute, Journal: memory{}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Date(2026, 5, 4, 1, 0, 0, 0, time.UTC) },
		Find: func(_ context.Context, name string, _ Schedule, _ Decision) (Target, error) {
			return Target{ID: 8, Repo: name, Branch: "main", Head: "a"}, nil
		},
		Begin: func(context.Context, int64, Decision) error { t.Error("a sweep begins"); return nil },
	}
	if _, err := s.sweep(t.Context(), Schedule{Repository: "*", Every: 24 * time.Hour}, 7, "olga/kernels"); err == nil || !strings.Contains(err.Error(), "repository 8 has it") {
		t.Errorf("%v", err)
	}
}

// A watch carries on which commit each release had first, and since when the newest one is known.
func TestReleasesOfAWatch(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 5, n, 0, 0, 0, 0, time.UTC) }
	nightly := Schedule{Every: 24 * time.Hour, Watch: &Watch{Against: watch.Release}}
	one := decide(nightly, day(1), Target{Head: "h", Base: "a", Tag: "v1"}, Decision{})
	two := decide(nightly, day(2), Target{Head: "h", Base: "a", Tag: "v1", MovedTo: "b"}, one)
	three := decide(nightly, day(3), Target{Head: "h", Base: "c", Tag: "v2"}, two)
	if one.Since != day(1) || two.Since != day(1) || two.MovedTo != "b" || three.Since != day(3) || three.MovedTo != "" {
		t.Errorf("%+v\n%+v\n%+v", one, two, three)
	}
	if len(two.Releases) != 1 || len(three.Releases) != 2 || three.Releases["v1"] != "a" || three.Releases["v2"] != "c" {
		t.Errorf("%v, then %v", two.Releases, three.Releases)
	}
}
