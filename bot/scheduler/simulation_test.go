package scheduler

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// What a day of the fleet must keep to.
const (
	mergeWait = 15 * time.Minute // a job at a slow host takes as long, and no job is taken away from a runner
	anyWait   = 8 * time.Hour    // of the afternoon's backlog
	unfairAt  = 0.10
	usedAt    = 0.95
)

// played is a day with its figures.
func played(seed uint64, change func(*simulation)) (*simulation, []string) {
	s := newSimulation(seed)
	change(s)
	s.busyDay()
	s.run()
	return s, s.broken()
}

// broken is what the day did not keep to.
func (s *simulation) broken() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, c := range []Class{MergeQueue, PullRequest, Command, Push, Sweep} {
		limit := anyWait
		if c == MergeQueue {
			limit = mergeWait
		}
		if w := s.waits(c); w[len(w)-1] > limit {
			say("starvation: a job of the class %s has waited %v", c, w[len(w)-1])
		}
	}
	worst, contests := s.unfair()
	if worst > unfairAt || len(contests) < 3 {
		say("fairness: a share is %.1f %% off, of %d", 100*worst, len(contests))
	}
	if used := s.used(); used < usedAt || s.busy < 300*time.Hour {
		say("utilisation: %.1f %% of %v", 100*used, s.busy+s.idle)
	}
	return all
}

// used is the part of the time of runners that are up, while work waits for them, that ended in a result.
func (s *simulation) used() float64 {
	return float64(s.busy-s.lostTime) / float64(s.busy+s.idle)
}

// table is the figures as fleet.md has them.
func (s *simulation) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| class | jobs | median wait | 99 %% | longest |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, c := range []Class{MergeQueue, PullRequest, Command, Push, Sweep} {
		w := s.waits(c)
		at := func(n int) time.Duration { return w[n].Round(time.Second) }
		fmt.Fprintf(&b, "| %s | %d | %v | %v | %v |\n", c, len(w), at(len(w)/2), at(len(w)*99/100), at(len(w)-1))
	}
	worst, contests := s.unfair()
	fmt.Fprintf(&b, "\n%d crashes. While work waited, runners that were up measured to a result in %.1f %% of their time. In %d pairs of repositories\n"+
		"that waited for the same kind of runner for hours, no share was further than %.1f %% from the mean.\n", s.crashes, 100*s.used(), len(contests), 100*worst)
	return b.String()
}

// A busy day of 50 runners of three kinds: nothing starves, the merge queue waits for minutes, repositories get equal shares,
// and no runner idles while there is work for it. The figures are those of fleet.md.
func TestDayOfAFleet(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2} {
		s, broken := played(seed, func(*simulation) {})
		t.Logf("seed %d:\n%s", seed, s.table())
		for _, line := range broken {
			t.Errorf("seed %d: %s", seed, line)
		}
		if seed > 1 {
			continue
		}
		page, err := os.ReadFile("../../docs/operate/fleet.md")
		if err != nil {
			t.Fatal(err)
		}
		words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
		if !strings.Contains(words(string(page)), words(s.table())) {
			t.Errorf("docs/operate/fleet.md has other figures; they are:\n%s", s.table())
		}
	}
}

// The same day is unfair where the queue cannot tell repositories apart.
func TestDayNeedsTheFairnessRule(t *testing.T) {
	t.Parallel()
	s, broken := played(1, func(s *simulation) { s.blind = true })
	t.Logf("%s%s", s.table(), strings.Join(broken, "\n"))
	if worst, _ := s.unfair(); worst <= unfairAt || len(broken) == 0 {
		t.Errorf("without the rule shares are %.1f %% off, and %q is all that is said", 100*worst, broken)
	}
}
