package gates

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// Evidence that the types allow and the judge cannot use is refused, at the first value beyond what can be.
func TestParseEvidenceLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(e *Evidence, s *Series)
		field  string // of the message; empty where it is allowed
	}{
		{"the first sample is disturbed", func(_ *Evidence, s *Series) { s.Disturbed = []int{0} }, ""},
		{"the last sample is disturbed", func(_ *Evidence, s *Series) { s.Disturbed = []int{len(s.Nanos) - 1} }, ""},
		{"a sample before the first is disturbed", func(_ *Evidence, s *Series) { s.Disturbed = []int{-1} }, "performance.rounds[0].series[0].disturbed"},
		{"a sample after the last is disturbed", func(_ *Evidence, s *Series) { s.Disturbed = []int{0, len(s.Nanos)} }, "performance.rounds[0].series[0].disturbed"},
		{"wall times of every sample", func(_ *Evidence, s *Series) { s.Wall = s.Nanos }, ""},
		{"too few wall times", func(_ *Evidence, s *Series) { s.Wall = s.Nanos[1:] }, "performance.rounds[0].series[0].wall_ns"},
		{"no wall times", func(_ *Evidence, s *Series) { s.Wall = []float64{} }, ""},
		{"a wall time of nothing", func(_ *Evidence, s *Series) { s.Wall = make([]float64, len(s.Nanos)) }, "performance.rounds[0].series[0].ns"},
		{"a solo time of nothing", func(_ *Evidence, s *Series) { s.Solo = []float64{0} }, "performance.rounds[0].series[0].ns"},
		{"a kept time of nothing", func(_ *Evidence, s *Series) { s.Stateful = []float64{0} }, "performance.rounds[0].series[0].ns"},
		{"a single time of nothing", func(_ *Evidence, s *Series) { s.Single = &Singles{Baseline: []float64{1}, Candidate: []float64{0}} }, "performance.rounds[0].series[0].ns"},
		{"a single time of the baseline of nothing", func(_ *Evidence, s *Series) { s.Single = &Singles{Baseline: []float64{0}, Candidate: []float64{1}} }, "performance.rounds[0].series[0].ns"},
		{"means of both sides", func(_ *Evidence, s *Series) { s.Single = means(2, []float64{1}, []float64{1}) }, ""},
		{"a mean of nothing", func(_ *Evidence, s *Series) { s.Single = means(2, []float64{1}, []float64{0}) }, "performance.rounds[0].series[0].ns"},
		{"means of one side", func(_ *Evidence, s *Series) { s.Single = means(2, []float64{1}, nil) }, "performance.rounds[0].series[0].single_ns"},
		{"more means than processes", func(_ *Evidence, s *Series) { s.Single = means(2, []float64{1, 1}, []float64{1, 1}) }, "performance.rounds[0].series[0].single_ns"},
		{"means of a process with one launch", func(_ *Evidence, s *Series) { s.Single = means(1, []float64{1}, []float64{1}) }, "performance.rounds[0].series[0].single_ns"},
		{"every solo sample is disturbed", func(_ *Evidence, s *Series) { s.Solo, s.SoloDisturbed = []float64{1, 1}, 2 }, ""},
		{"fewer than no solo samples are disturbed", func(_ *Evidence, s *Series) { s.SoloDisturbed = -1 }, "performance.rounds[0].series[0].solo_disturbed"},
		{"attempts that go on", func(e *Evidence, _ *Series) { e.number(1, 1, 2, 2, 5, 5) }, ""},
		{"attempts that go back", func(e *Evidence, _ *Series) { e.number(1, 2, 3, 2, 3, 3) }, "performance.rounds[3].attempt"},
		{"attempts that go back to the first", func(e *Evidence, _ *Series) { e.number(2, 2, 2, 2, 2, 1) }, "performance.rounds[5].attempt"},
		{"a kernel without a name", func(e *Evidence, _ *Series) { e.Kernel = "" }, "kernel"},
		{"a shape without a name", func(e *Evidence, _ *Series) { e.Shapes = append(e.Shapes, Shape{}) }, "shapes[2].name"},
		{"two shapes with one name", func(e *Evidence, _ *Series) { e.Shapes[1].Name = e.Shapes[0].Name }, "shapes[1].name"},
		{"no work", func(e *Evidence, _ *Series) { e.Shapes[0].FLOPs, e.Shapes[0].Bytes = 0, 0 }, ""},
		{"negative FLOPs", func(e *Evidence, _ *Series) { e.Shapes[0].FLOPs = -1 }, "shapes[0]"},
		{"negative bytes", func(e *Evidence, _ *Series) { e.Shapes[0].Bytes = -1 }, "shapes[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := passing()
			c.change(e, &e.Performance.Rounds[0].Series[0])
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			switch _, err := ParseEvidence("e.json", data); {
			case c.field == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.field != "" && (err == nil || !strings.Contains(err.Error(), ": "+c.field+": ")):
				t.Errorf("got %v, want a message about %s", err, c.field)
			}
		})
	}
}

// means is one process of each side that ran single launches.
func means(launches int, baseline, candidate []float64) *Singles {
	return &Singles{Baseline: []float64{1}, Candidate: []float64{1}, MeanBaseline: baseline, MeanCandidate: candidate, Launches: launches}
}

// number says which attempt each round is of.
func (e *Evidence) number(attempts ...int) {
	for i, n := range attempts {
		e.Performance.Rounds[i].Attempt = n
	}
}

// A value of the wrong kind is named by what is expected in its place.
func TestParseEvidenceKinds(t *testing.T) {
	for text, want := range map[string]string{
		`"same_code": 7`:                   "same_code: is a JSON number where true or false is expected",
		`"shapes": 7`:                      "shapes: is a JSON number where a list is expected",
		`"device": 7`:                      "device: is a JSON number where an object is expected",
		`"kernel": []`:                     "kernel: is a JSON array where a text is expected",
		`"performance": {"seconds": true}`: "performance.seconds: is a JSON bool where a number is expected",
	} {
		if _, err := ParseEvidence("e.json", []byte(`{"schema": "kernelgate/evidence/v1", `+text+`}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A rival's summary is ordered and above zero.
func TestRivalStats(t *testing.T) {
	good := stats.Summary{N: 1, Min: 1, P50: 2, P90: 3, P99: 4, Mean: 2}
	for name, c := range map[string]struct {
		change func(*stats.Summary)
		fine   bool
	}{
		"as it is":             {func(*stats.Summary) {}, true},
		"all alike":            {func(s *stats.Summary) { s.P50, s.P90, s.P99, s.Mean = 1, 1, 1, 1 }, true},
		"no sample":            {func(s *stats.Summary) { s.N = 0 }, false},
		"no least time":        {func(s *stats.Summary) { s.Min = 0 }, false},
		"a median too low":     {func(s *stats.Summary) { s.P50 = 0.9 }, false},
		"p90 below the median": {func(s *stats.Summary) { s.P90 = 1.9 }, false},
		"p99 below p90":        {func(s *stats.Summary) { s.P99 = 2.9 }, false},
		"a mean too low":       {func(s *stats.Summary) { s.Mean = 0.9 }, false},
		"a negative spread":    {func(s *stats.Summary) { s.Std = -1 }, false},
		"a negative variation": {func(s *stats.Summary) { s.CV = -1 }, false},
	} {
		s := good
		c.change(&s)
		field, problem := Rival{Name: "torch", Shape: "s", Stats: s}.problem(map[string]bool{"s": true})
		if (problem == "") != c.fine || problem != "" && field != "stats" {
			t.Errorf("%s: %s %s", name, field, problem)
		}
	}
}
