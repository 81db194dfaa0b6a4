package watch

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/compat"
)

// night is a look of one night at two shapes, with the speed of each and the time of the base.
func night(n int, speed, base float64, change func(*Look)) Look {
	l := Look{
		Change: fmt.Sprintf("watch-%d", n), Due: time.Date(2026, 5, n, 2, 0, 0, 0, time.UTC), Kernel: "scale", Against: Release, Tag: "v1", Base: "b1", Head: "h1", Slower: 0.01, Rounds: 8,
		Cell: Cell{Sources: "s1", Compiler: "nvcc 12.8", Driver: "570", Device: "L4", Arch: "sm_89", UUID: "GPU-1", Host: "one"},
	}
	for _, name := range []string{"large", "small"} {
		l.Shapes = append(l.Shapes, Shape{Name: name, Dims: "N=1", Speed: speed, Lower: speed - 0.004, Upper: speed + 0.004, Baseline: base, Candidate: base / speed})
		speed = 1
	}
	if change != nil {
		change(&l)
	}
	return l
}

// A step is a look, and what the state says after it.
type step struct {
	speed, base float64
	change      func(*Look)
	want        string // form class, or none; then the action
}

func summary(s *State) string {
	text := "none"
	if r := s.Regression; r != nil {
		text = fmt.Sprintf("%s %s", r.Form, r.Class)
	}
	return text + " " + string(s.Action())
}

// A slowdown is explained by the first condition that changed since the last look without the slowdown.
func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Look)
		want   Class
	}{
		"sources":                {func(l *Look) { l.Sources, l.Head = "s2", "h2" }, Code},
		"sources and compiler":   {func(l *Look) { l.Sources, l.Compiler = "s2", "nvcc 13" }, Code},
		"another base":           {func(l *Look) { l.Base = "b2" }, Code},
		"compiler":               {func(l *Look) { l.Compiler = "nvcc 13" }, Toolchain},
		"compiler and driver":    {func(l *Look) { l.Compiler, l.Driver = "nvcc 13", "580" }, Toolchain},
		"driver":                 {func(l *Look) { l.Driver = "580" }, Driver},
		"another GPU":            {func(l *Look) { l.UUID = "GPU-2" }, Device},
		"another kind of device": {func(l *Look) { l.Device, l.Arch = "H200", "sm_90" }, Device},
		"host":                   {func(l *Look) { l.Host = "two" }, Device},
		"head without effect":    {func(l *Look) { l.Head = "h2" }, Noise},
		"nothing":                {nil, Noise},
	} {
		s := &State{}
		if got := s.classify(night(1, 0.9, 100, c.change)); got != Code {
			t.Errorf("%s: without an earlier look it is %s, want code", name, got)
		}
		s.Apply(1, Looked{Look: night(1, 1, 100, nil)})
		if got := s.classify(night(2, 0.9, 100, c.change)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Each story is one kernel with a look every night. The test plays the bot and records what the state asks
// for.
func TestStories(t *testing.T) {
	edited := func(l *Look) { l.Sources, l.Head = "s2", "h2" }
	compiler := func(l *Look) { l.Compiler = "nvcc 13" }
	for name, steps := range map[string][]step{
		"appears, stays, is fixed, comes back": {
			{1, 100, nil, "none "}, {0.9, 100, edited, "behind code write"}, {0.9, 100, edited, "behind code write"},
			{1, 100, nil, "none close"}, {1, 100, nil, "none "}, {0.95, 100, edited, "behind code write"},
		},
		"cannot be proven any more": {
			{0.9, 100, edited, "behind code write"}, {0.99, 100, edited, "behind code write"}, {0.99, 100, edited, "none close"},
		},
		"is shown and not proven": {
			{0.9, 100, edited, "behind code write"}, {0.988, 100, edited, "behind code write"}, {0.988, 100, edited, "behind code write"}, {0.988, 100, edited, "behind code write"},
		},
		"one unclear night in between": {
			{0.9, 100, edited, "behind code write"}, {0.99, 100, edited, "behind code write"}, {0.9, 100, edited, "behind code write"}, {0.99, 100, edited, "behind code write"},
		},
		"noise":               {{1, 100, nil, "none "}, {0.9, 100, nil, "none "}, {1, 100, nil, "none "}, {0.9, 100, nil, "none "}},
		"noise that stays":    {{1, 100, nil, "none "}, {0.9, 100, nil, "none "}, {0.9, 100, nil, "behind device write"}},
		"too small":           {{1, 100, nil, "none "}, {0.992, 100, edited, "none "}, {0.992, 100, edited, "none "}},
		"faster":              {{1.3, 100, edited, "none "}},
		"a new compiler":      {{1, 100, nil, "none "}, {1, 110, compiler, "shifted toolchain write"}, {1, 110, compiler, "shifted toolchain write"}, {1, 101, compiler, "none close"}},
		"a slow day":          {{1, 100, nil, "none "}, {1, 110, nil, "none "}, {1, 100, nil, "none "}},
		"a new release":       {{1, 100, nil, "none "}, {1, 120, func(l *Look) { l.Base = "b2" }, "none "}},
		"another GPU's times": {{1, 100, nil, "none "}, {1, 300, func(l *Look) { l.Device = "T4" }, "none "}, {1, 100, nil, "none "}},
		"a shift and code":    {{1, 100, nil, "none "}, {1, 110, compiler, "shifted toolchain write"}, {0.9, 110, edited, "behind code write"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, seq := &State{}, uint64(0)
			apply := func(e Event) {
				seq++
				data, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				stored, err := Decode(compat.Writer{}, KindOf(e), data)
				if err != nil {
					t.Fatal(err)
				}
				s.Apply(seq, stored)
			}
			for i, step := range steps {
				apply(Looked{Repo: 7, Folder: "kernels/scale", Look: night(i+1, step.speed, step.base, step.change)})
				if got := summary(s); got != step.want {
					t.Errorf("night %d: %q, want %q", i+1, got, step.want)
				}
				switch s.Action() {
				case Write:
					apply(IssueWritten{Number: 3, Digest: "x"})
				case Close:
					apply(IssueClosed{})
				}
			}
			if s.Seq != seq || s.Repo != 7 || s.Folder != "kernels/scale" {
				t.Errorf("the state is %+v after %d events", s, seq)
			}
		})
	}
}

// An issue that a person closed stays closed until the slowdown is over. The next slowdown opens it again.
func TestDismissed(t *testing.T) {
	edited := func(l *Look) { l.Sources = "s2" }
	s := &State{}
	s.Apply(1, Looked{Look: night(1, 0.9, 100, edited)})
	s.Apply(2, IssueWritten{Number: 3})
	s.Apply(3, IssueDismissed{})
	s.Apply(4, Looked{Look: night(2, 0.9, 100, edited)})
	if s.Action() != Nothing || s.Regression == nil {
		t.Errorf("for the same slowdown: %s", summary(s))
	}
	s.Apply(5, Looked{Look: night(3, 1, 100, nil)})
	if s.Action() != Nothing || s.Regression != nil {
		t.Errorf("when it is gone: %s", summary(s))
	}
	s.Apply(6, Looked{Look: night(4, 0.9, 100, edited)})
	if s.Action() != Write || s.Issue.Number != 3 {
		t.Errorf("for the next slowdown: %s, issue %d", summary(s), s.Issue.Number)
	}
	s.Apply(7, IssueDismissed{Deleted: true})
	if s.Issue.Number != 0 || s.Action() != Nothing {
		t.Errorf("a deleted issue: %s, issue %d", summary(s), s.Issue.Number)
	}
}

// A kernel that is not watched any more has no open issue.
func TestDropped(t *testing.T) {
	s := &State{}
	s.Apply(1, Looked{Look: night(1, 0.9, 100, nil)})
	s.Apply(2, IssueWritten{Number: 3})
	s.Apply(3, Dropped{})
	if s.Action() != Close || s.Ended.Ending != Unwatched {
		t.Errorf("%s", summary(s))
	}
	s.Apply(4, IssueClosed{})
	if s.Action() != Nothing || s.Last != nil {
		t.Errorf("%s", summary(s))
	}
}

// A late look of an earlier night changes nothing.
func TestLateLook(t *testing.T) {
	s := &State{}
	s.Apply(1, Looked{Look: night(2, 1, 100, nil)})
	s.Apply(2, Looked{Look: night(1, 0.9, 100, nil)})
	if s.Regression != nil || s.Last.Due.Day() != 2 {
		t.Errorf("%s after %s", summary(s), s.Last.Due)
	}
}

// The bot searches for the commit once, between the last look without the slowdown and the first look with
// it.
func TestBisect(t *testing.T) {
	edited := func(l *Look) { l.Sources, l.Head = "s2", "h2" }
	s := &State{}
	s.Apply(1, Looked{Look: night(1, 1, 100, nil)})
	s.Apply(2, Looked{Look: night(2, 0.9, 100, edited)})
	good, bad, ok := s.Wants()
	if !ok || good != "h1" || bad != "h2" {
		t.Fatalf("%s..%s, %v", good, bad, ok)
	}
	s.Apply(3, Bisected{Bisection{Good: "other", Bad: bad}})
	if _, _, ok := s.Wants(); !ok {
		t.Error("the search between other commits counts")
	}
	s.Apply(4, Bisected{Bisection{Good: good, Bad: bad}})
	if _, _, ok := s.Wants(); ok || !s.Regression.Bisect.Pending() {
		t.Error("it is asked for twice")
	}
	s.Apply(5, Bisected{Bisection{Good: good, Bad: bad, First: "h2", Last: "h1", Error: 0.05}})
	s.Apply(6, Looked{Look: night(3, 0.9, 100, func(l *Look) { l.Sources, l.Head = "s3", "h3" })})
	if b := s.Regression.Bisect; b == nil || b.Pending() || b.First != "h2" {
		t.Errorf("the answer is %+v", b)
	}

	first := &State{}
	first.Apply(1, Looked{Look: night(1, 0.9, 100, nil)})
	if good, bad, ok := first.Wants(); !ok || good != "b1" || bad != "h1" {
		t.Errorf("without an earlier look: %s..%s, %v", good, bad, ok)
	}
	tool := &State{}
	tool.Apply(1, Looked{Look: night(1, 1, 100, nil)})
	tool.Apply(2, Looked{Look: night(2, 0.9, 100, func(l *Look) { l.Driver = "580" })})
	if _, _, ok := tool.Wants(); ok {
		t.Error("no commit brought a new driver")
	}
}

// Decode reads every event that a bot can write, and refuses all others.
func TestDecode(t *testing.T) {
	for _, e := range []Event{Looked{}, Dropped{}, IssueWritten{}, IssueClosed{}, IssueDismissed{}, IssueRefused{}, Bisected{}} {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(compat.Writer{}, KindOf(e), data); err != nil || KindOf(got) != KindOf(e) {
			t.Errorf("%s: %v, %v", KindOf(e), got, err)
		}
		if _, err := Decode(compat.Writer{}, KindOf(e), []byte("[")); err == nil {
			t.Errorf("%s: half an event is read", KindOf(e))
		}
	}
	if _, err := Decode(compat.Writer{}, "sung", nil); err == nil {
		t.Error("an event that nobody knows is read")
	}
}
