package gates

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// TestClockMoved: a clock that moves within a round is worth a sentence if it moves by more than the sides differ.
func TestClockMoved(t *testing.T) {
	for name, c := range map[string]struct {
		low  float64 // MHz in the middle of the second round, and 1980 otherwise
		want string
	}{
		"steady":                      {1980, ""},
		"a little":                    {1965, ""},
		"less than the sides differ":  {1755, ""},
		"more than the sides differ":  {1200, "the clock moved from 1200 to 1980 MHz (65.0\u00a0%) within round 2 on mission, and the sides differ by"},
		"a reading that is not there": {0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := passing()
			for i := range e.Performance.Rounds {
				for k := range e.Performance.Rounds[i].Series {
					s := &e.Performance.Rounds[i].Series[k]
					if s.Shape != "mission" || c.low == 0 {
						continue
					}
					s.States = &States{}
					for n := range s.blocks() {
						mhz := 1980.0
						if i == 1 && n == s.blocks()/2 {
							mhz = c.low
						}
						s.States.ClockMHz = append(s.States.ClockMHz, mhz)
					}
				}
			}
			if _, problem := e.problem(); problem != "" {
				t.Fatal(problem)
			}
			got := ""
			for _, f := range Unsteady(e) {
				if moved, ok := f.(facts.ClockMoved); ok {
					got += moved.Sentence()
				}
			}
			if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestStatesAreChecked(t *testing.T) {
	for want, s := range map[string]*States{
		"":                             {ClockMHz: []float64{1, 2}, Watts: []float64{3, 4}},
		"has 1 readings of 2 blocks":   {Celsius: []float64{40}},
		"has a reading that is not ab": {Watts: []float64{500, 0}},
	} {
		if got := s.problem(2); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
