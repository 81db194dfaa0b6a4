package watch

import (
	"testing"
	"time"
)

// newer is a look at the same sources against a newer release.
func newer(base string) func(*Look) { return func(l *Look) { l.Base, l.Tag = base, "v99.0.0" } }

// A slowdown ends only against the release that it was proven against. A look against a different one
// neither ends nor renews it, whatever it finds.
func TestEndsAgainstItsOwnBase(t *testing.T) {
	edited := func(l *Look) { l.Sources, l.Head = "s2", "h2" }
	compiler := func(l *Look) { l.Compiler = "nvcc 13" }
	for name, c := range map[string]struct {
		begin, look Look
		want        string
	}{
		"sound against the tip":    {night(2, 0.9, 100, edited), night(3, 1, 110, newer("h2")), "behind code write"},
		"unclear against the tip":  {night(2, 0.9, 100, edited), night(3, 0.99, 110, newer("h2")), "behind code write"},
		"slower against the tip":   {night(2, 0.9, 100, edited), night(3, 0.8, 110, newer("h2")), "behind code write"},
		"the release itself":       {night(2, 0.9, 100, edited), night(3, 1, 100, nil), "none close"},
		"a shift and another base": {night(2, 1, 110, compiler), night(3, 1, 50, newer("h2")), "shifted toolchain write"},
	} {
		s := &State{}
		for i, l := range []Look{night(1, 1, 100, nil), c.begin} {
			s.Apply(uint64(i+1), Looked{Look: l})
		}
		s.Apply(3, IssueWritten{Number: 3})
		before := *s.Regression
		s.Apply(4, Looked{Look: c.look})
		if got := summary(s); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if r := s.Regression; r != nil && (r.Look.Due != before.Look.Due || s.Unclear != 0 || s.Sound.Base != "b1" || s.Last.Due != c.look.Due) {
			t.Errorf("%s: the look changed the regression: %+v", name, s)
		}
	}
}

// The best state may change, because the bot computes it.
func TestEndsAgainstAnotherBest(t *testing.T) {
	best := func(base string) func(*Look) {
		return func(l *Look) { l.Against, l.Tag, l.Base = Best, "", base }
	}
	s := &State{}
	s.Apply(1, Looked{Look: night(1, 0.9, 100, best("b1"))})
	s.Apply(2, IssueWritten{Number: 3})
	if s.Apply(3, Looked{Look: night(2, 1, 90, best("b2"))}); summary(s) != "none close" {
		t.Errorf("%q", summary(s))
	}
	if _, ok := s.Pin("b3", time.Now()); ok {
		t.Error("a watch against the best is pinned")
	}
}

// If a person closed the issue, the next release is the new level: a sound look ends the slowdown without a
// word, and a slower one is a new slowdown with an open issue.
func TestDismissedAndReleased(t *testing.T) {
	for speed, want := range map[float64]string{1: "none ", 0.9: "behind code write"} {
		s := &State{}
		s.Apply(1, Looked{Look: night(1, 0.9, 100, nil)})
		s.Apply(2, IssueWritten{Number: 3})
		s.Apply(3, IssueDismissed{})
		if pin, ok := s.Pin("h2", s.Last.Due); ok {
			t.Errorf("a slowdown that was accepted pins %+v", pin)
		}
		if s.Apply(4, Looked{Look: night(2, 0.9, 100, nil)}); summary(s) != "behind code " {
			t.Errorf("against the same release: %q", summary(s))
		}
		if s.Apply(5, Looked{Look: night(3, speed, 110, newer("h2"))}); summary(s) != want {
			t.Errorf("speed %v: %q, want %q", speed, summary(s), want)
		}
	}
}

// A new release becomes the base after one more look at the old one, and not while that look found a
// slowdown, also one that may be noise.
func TestPin(t *testing.T) {
	due := func(n int) time.Time { return night(n, 1, 100, nil).Due }
	for name, c := range map[string]struct {
		looks []Look
		base  string
		since time.Time
		want  string
	}{
		"no look":               {nil, "b2", due(2), ""},
		"the same release":      {[]Look{night(1, 1, 100, nil)}, "b1", due(1), ""},
		"a new release":         {[]Look{night(1, 1, 100, nil)}, "b2", due(2), "b1"},
		"looked once more":      {[]Look{night(1, 1, 100, nil), night(2, 1, 100, nil)}, "b2", due(2), ""},
		"noise":                 {[]Look{night(1, 1, 100, nil), night(2, 0.9, 100, nil)}, "b2", due(2), "b1"},
		"slower":                {[]Look{night(1, 0.9, 100, nil), night(2, 0.9, 100, nil)}, "b2", due(1), "b1"},
		"slower, one elsewhere": {[]Look{night(1, 0.9, 100, nil), night(2, 1, 100, newer("b2"))}, "b2", due(1), "b1"},
		"slower, same release":  {[]Look{night(1, 0.9, 100, nil)}, "b1", due(1), ""},
	} {
		s := &State{}
		for i, l := range c.looks {
			s.Apply(uint64(i+1), Looked{Folder: "kernels/scale", Look: l})
		}
		pin, ok := s.Pin(c.base, c.since)
		if !ok {
			pin = Pin{}
		}
		if pin.Base != c.want || ok && (pin.Tag != "v1" || pin.Folder != "kernels/scale") {
			t.Errorf("%s: %+v %v, want %q", name, pin, ok, c.want)
		}
	}
}
