package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/verify"
	"github.com/kernelgate/kernelgate/gates"
)

// A runner times shapes no more that are settled. It may leave out no other, and none before the analysis that settles it.
func TestSettledShapesAreLeftOut(t *testing.T) {
	job := asked(t, "1.1") // the guards are proven at the first analysis, and the target is not
	e := honest(t, job)
	if len(e.Performance.Rounds) != 8 || len(e.Performance.Rounds[5].Series) != 3 || len(e.Performance.Rounds[6].Series) != 1 || e.Performance.Rounds[7].Series[0].Shape != "mission" {
		t.Fatalf("an honest runner has timed %d rounds, the seventh of %d shapes", len(e.Performance.Rounds), len(e.Performance.Rounds[6].Series))
	}
	if err := verify.Check(job, 0, e); err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]func(rounds []gates.Round){
		"performance.rounds[5].series": func(rounds []gates.Round) { // before the first analysis
			rounds[5].Series = slices.DeleteFunc(rounds[5].Series, func(s gates.Series) bool { return s.Shape != "mission" })
		},
		"performance.rounds[6].series": func(rounds []gates.Round) { rounds[6].Series = nil },
		"performance.rounds[7].series": func(rounds []gates.Round) { // a shape that is open
			rounds[7].Series = slices.DeleteFunc(slices.Clone(rounds[0].Series), func(s gates.Series) bool { return s.Shape == "mission" })
		},
	} {
		err := verify.Check(job, 0, told(t, e, func(e *gates.Evidence) { lie(e.Performance.Rounds) }))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
