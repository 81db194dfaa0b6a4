package facts

import (
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A Mark is the commit with the best cumulative speed of a kernel.
type Mark struct {
	Commit  string
	Time    time.Time // when it was judged; zero where that is not known
	Outcome string    // of its verdict; empty where it was never judged as a candidate
}

func (m Mark) String() string {
	switch {
	case m.Time.IsZero():
		return shortCommit(m.Commit)
	case m.Outcome == "":
		return fmt.Sprintf("%s, measured as a baseline on %s", shortCommit(m.Commit), m.Time.UTC().Format(time.DateOnly))
	}
	return fmt.Sprintf("%s, %s of %s", shortCommit(m.Commit), m.Outcome, m.Time.UTC().Format(time.DateOnly))
}

func shortCommit(sha string) string { return fmt.Sprintf("`%.7s`", sha) }

// An AgainstMark is the note about a kernel's speed against its best.
type AgainstMark struct {
	Shape      string
	Mark       Mark
	Gained     *float64 // over the baseline, where the change wins back time; else nil
	Speedup    float64  // over the mark
	Unmeasured int      // merges since then that were not measured
}

func (a AgainstMark) Sentence() string {
	text := fmt.Sprintf("With this change, %s is %s slower than at its best commit (%s).", a.Shape, number.Share(a.Speedup), a.Mark)
	if a.Gained != nil {
		text = fmt.Sprintf("%s: %s against the baseline, %s against its best commit (%s).", a.Shape, number.Percent(*a.Gained), number.Percent(a.Speedup), a.Mark)
	}
	switch n := a.Unmeasured; {
	case n == 1:
		text += " One merge since then was not measured on this device, and counts as no change."
	case n > 1:
		text += fmt.Sprintf(" %d merges since then were not measured on this device, and count as no change.", n)
	}
	return text
}

// A NoMark is the note about shapes whose best is not known.
type NoMark struct{ Shapes []string }

func (n NoMark) Sentence() string {
	return fmt.Sprintf("below_best does not apply to %s yet: no merged commit was measured on this shape and device.", strings.Join(n.Shapes, ", "))
}

// A BelowBest is shapes that are too far below their best.
type BelowBest struct {
	Shapes []BelowMark
	Lost   *LostBy // of the first shape of which it is known
}

// A BelowMark is one of them.
type BelowMark struct {
	Shape   string
	Mark    Mark
	Speedup Estimate // over the mark
	Asked   string
}

func (b BelowBest) Sentence() string {
	var parts []string
	for _, s := range b.Shapes {
		parts = append(parts, fmt.Sprintf("%s on %s over %s (asked below its best %s)", s.Speedup, s.Shape, s.Mark, s.Asked))
	}
	text := "Too far below its best commit: speedup " + strings.Join(parts, "; ")
	if b.Lost != nil {
		text += "; " + b.Lost.Sentence()
	}
	return text
}

// A LostBy is the merges that made a shape slower.
type LostBy struct {
	Shape  string
	Merges []Loss
}

// A Loss is one merge that made a kernel slower.
type Loss struct {
	Commit  string  `json:"commit"`
	Speedup float64 `json:"speedup"` // negative
}

func (l LostBy) Sentence() string {
	var parts []string
	for _, m := range l.Merges {
		parts = append(parts, fmt.Sprintf("%s %s", shortCommit(m.Commit), number.Percent(m.Speedup)))
	}
	return fmt.Sprintf("these commits made %s slower: %s", l.Shape, strings.Join(parts, ", "))
}

// WinBackBest is the advice to it.
type WinBackBest struct{ Shape, Commit string }

func (w WinBackBest) Step(Reader) string {
	return fmt.Sprintf("make %s as fast as at its best commit %s, or leave out what slows it down", w.Shape, shortCommit(w.Commit))
}

// RaiseBelowBest is the advice for a loss that is wanted.
type RaiseBelowBest struct{}

func (RaiseBelowBest) Step(Reader) string {
	return "or, if the loss is intended, raise below_best in the policy"
}
