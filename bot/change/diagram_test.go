package change

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// arrows are those of a diagram, as "from --> to : event".
type arrows map[string]bool

var drawn = regexp.MustCompile(`(?m)^  (\S+) --> (\S+) : ([a-z, ]+)$`)

// drawings reads the diagrams of states, in their order.
func drawings(t *testing.T) (change, run arrows) {
	t.Helper()
	text, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```mermaid\nstateDiagram-v2\n")
	if len(parts) != 3 {
		t.Fatalf("the page has %d diagrams of states, not a change's and a run's", len(parts)-1)
	}
	read := func(part string) arrows {
		body, _, _ := strings.Cut(part, "```")
		all := arrows{}
		for _, m := range drawn.FindAllStringSubmatch(body, -1) {
			for _, event := range strings.Split(m[3], ", ") {
				all[m[1]+" --> "+m[2]+" : "+event] = true
			}
		}
		return all
	}
	return read(parts[1]), read(parts[2])
}

// condition is the state in one word, as the page has it.
func condition(s *State) string {
	switch {
	case s.Seq == 0:
		return "[*]"
	case !s.Facts.Open:
		return "closed"
	case s.NeedsPlan():
		return "unplanned"
	case s.Held():
		return "held"
	case len(s.Wanted()) > 0:
		return "working"
	}
	return "decided"
}

// The diagrams of the page on reliability have the arrows that there are, and no
// others. What GitHub says of a change may lead from anywhere to anywhere: of those
// arrows the page has the usual ones.
func TestDiagrams(t *testing.T) {
	const least, most = 100, 3_000
	change, run := drawings(t)
	sawChange, sawRun := arrows{}, arrows{}
	left := func(drawn, saw arrows) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(drawn)), func(a string) bool { return saw[a] })
	}
	for seed := uint64(0); seed < least || seed < most && len(left(change, sawChange))+len(left(run, sawRun)) > 0; seed++ {
		walk(rand.New(rand.NewPCG(seed, 3)), sawChange, sawRun)
	}
	for _, d := range []struct {
		of         string
		drawn, saw arrows
	}{{"a change", change, sawChange}, {"a run", run, sawRun}} {
		if len(d.drawn) < 8 {
			t.Errorf("only %d arrows are drawn of %s", len(d.drawn), d.of)
		}
		for _, a := range left(d.drawn, d.saw) {
			t.Errorf("%s: %s is drawn and does not happen", d.of, a)
		}
		for _, a := range left(d.saw, d.drawn) {
			if d.of == "a run" || !strings.HasSuffix(a, " : seen") {
				t.Errorf("%s: %s happens and is not drawn", d.of, a)
			}
		}
	}
}

// walk applies events as the controller writes them: a plan is made where one is needed.
func walk(r *rand.Rand, change, run arrows) {
	s := New(testID)
	runs := map[string]Run{}
	for i := range 60 {
		e := anyEvent(r, s, nil)
		if _, plan := e.(Planned); s.Seq == 0 || plan && !s.NeedsPlan() {
			f := facts(pick(r, headOne, headTwo))
			f.Open, f.Fork = true, r.IntN(4) == 0
			e = Seen{Facts: f}
		}
		from := condition(s)
		s.Apply(uint64(i+1), time.Unix(int64(i), 0).UTC(), e)
		if to := condition(s); to != from {
			change[fmt.Sprintf("%s --> %s : %s", from, to, KindOf(e))] = true
		}
		for _, now := range slices.Concat(s.Runs, s.ExtraRuns, s.Past) {
			before, known := runs[now.Job]
			if !known {
				before.Phase = "[*]"
			}
			if before.Phase != now.Phase || known && !before.Begun.Equal(now.Begun) {
				run[fmt.Sprintf("%s --> %s : %s", before.Phase, now.Phase, KindOf(e))] = true
			}
			runs[now.Job] = now
		}
	}
}
