package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A View is what a log says about its search so far, for a page about it.
type View struct {
	Kernel    string    `json:"kernel"`
	Device    string    `json:"device"`
	Shapes    []string  `json:"shapes"`
	Incumbent string    `json:"incumbent"`
	Proposer  string    `json:"proposer"`
	Seed      uint64    `json:"seed"`
	Points    string    `json:"points"` // of the space
	Tried     int       `json:"tried"`
	Seconds   float64   `json:"seconds"` // of measuring
	Budget    float64   `json:"budget_seconds,omitempty"`
	Rounds    int       `json:"rounds"`
	Ended     bool      `json:"ended"`
	Now       string    `json:"now,omitempty"`        // what comes next, if the search has not ended
	Result    string    `json:"conclusion,omitempty"` // of a search that has ended
	Winner    string    `json:"winner,omitempty"`
	Elite     []ViewRow `json:"elite"`
	Raced     []ViewRow `json:"raced"` // best first, with the incumbent
	Failed    []ViewRow `json:"failed,omitempty"`
	Others    []string  `json:"others,omitempty"` // sentences about candidates that were not raced
	Worth     []Worth   `json:"worth,omitempty"`
	Verdicts  []ViewRow `json:"verdicts,omitempty"` // of the gate
	Curve     []Mark    `json:"curve,omitempty"`
	// Configurations are those of @triton.autotune, by the value of the toggle autotune.
	Configurations []string `json:"configurations,omitempty"`
}

// A ViewRow is one candidate.
type ViewRow struct {
	Name    string   `json:"name"`
	Place   int      `json:"place,omitempty"`   // in the elite, from 1
	Speedup *float64 `json:"speedup,omitempty"` // over the incumbent
	Rounds  int      `json:"rounds,omitempty"`
	Gate    string   `json:"gate,omitempty"` // that refused it, or the outcome of a verdict
	Text    string   `json:"text,omitempty"` // what became of it
	Note    string   `json:"note,omitempty"` // of its proposer
	At      float64  `json:"at_seconds"`     // seconds of measuring when it was last timed
}

// ReadView reads a log, which may still grow: it leaves out a last line that is not complete. The name is for
// messages. A search is a function of its log. So ReadView runs the search on the log, and stops at the first
// step that the log does not have.
func ReadView(name string, text []byte) (*View, error) {
	log, _, err := parseLog(name, text)
	if err != nil {
		return nil, err
	}
	here := &halted{space: log.Header.Space}
	s := &Search{Log: log, Proposer: here, Lab: here}
	result, err := s.Run(context.Background())
	if err != nil && !errors.Is(err, errHalted) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ended := err == nil // even without the last line of the log, which only says that the search has ended
	if !ended {
		ended = s.Log.Ended
		s.result.Elite, s.result.Decided = s.race.Elite(elite), s.race.Decided()
		if ended {
			s.trust(log)
		}
		s.conclude()
		result = &s.result
	}
	return result.view(s, ended, here.now), nil
}

// trust takes the result of a search from its log. An earlier version of the program may have measured
// different rounds than this version would.
func (s *Search) trust(log *Log) {
	s.result.Winner, s.result.Confirmed, s.result.Spent = log.winner, nil, false
	for _, a := range log.attempts {
		if v, ok := log.verdicts[a.ID]; ok && s.ids[a.ID] != nil && !slices.ContainsFunc(s.result.Confirmed, func(c Confirmed) bool { return c.ID == a.ID }) {
			s.result.Confirmed = append(s.result.Confirmed, v)
		}
	}
	if s.ids[s.result.Winner] == nil {
		s.result.Winner = ""
	}
}

func (r *Result) view(s *Search, ended bool, now string) *View {
	h := r.Header
	v := &View{
		Kernel: h.Space.Kernel, Device: h.Device, Shapes: h.Shapes, Incumbent: h.Space.Start, Proposer: h.Proposer, Seed: h.Seed, Points: sizeText(h.Space.Size()),
		Tried: len(r.Tried) - 1, Seconds: r.Seconds, Budget: h.Budget, Rounds: s.round, Ended: ended, Worth: r.Worth, Curve: r.Curve,
		Configurations: h.Space.Configurations, Elite: []ViewRow{}, Raced: []ViewRow{}, Others: r.counts(ReportOptions{All: true}),
	}
	if ended {
		v.Result = r.Conclusion()
	} else {
		v.Now = now
	}
	if r.Winner != "" {
		v.Winner = r.name(r.Find(r.Winner))
	}
	for _, at := range r.Ranking {
		t := r.Find(at.Arm)
		if t == nil || t.Status == Failed {
			continue
		}
		row := ViewRow{Name: r.name(t), Place: slices.Index(r.Elite, t.ID) + 1, Speedup: &at.Speedup, Rounds: at.Rounds, Text: r.outcome(t), Note: t.Note, At: t.measured}
		if t.Status == Racing && !ended && t.ID != r.Tried[0].ID {
			row.Text = "in the race"
		}
		v.Raced = append(v.Raced, row)
	}
	for _, id := range r.Elite {
		if i := slices.IndexFunc(v.Raced, func(row ViewRow) bool { return row.Name == r.name(r.Find(id)) }); i >= 0 {
			v.Elite = append(v.Elite, v.Raced[i])
		}
	}
	for _, t := range r.Tried {
		if t.Status == Failed || t.Status == Unknown {
			v.Failed = append(v.Failed, ViewRow{Name: r.name(&t), Gate: string(t.Gate), Text: t.Why, Note: t.Note})
		}
	}
	for _, c := range r.Confirmed {
		v.Verdicts = append(v.Verdicts, ViewRow{Name: r.name(r.Find(c.ID)), Gate: string(c.Outcome), Text: c.Summary})
	}
	return v
}

var errHalted = errors.New("the log ends here")

// halted is a lab and a proposer that do nothing. They only record the first request.
type halted struct {
	Replay
	space Space

	mu  sync.Mutex
	now string
}

func (l *halted) ask(text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == "" {
		l.now = text
	}
	return errHalted
}

func (l *halted) Propose(_ context.Context, s State) ([]Candidate, error) {
	return nil, l.ask("The proposer chooses candidates.")
}

func (l *halted) Device() string { return "" }

func (l *halted) Build(_ context.Context, id string, _ Candidate) (Built, error) {
	return Built{}, l.ask("Candidates are compiled.")
}

func (l *halted) Screen(context.Context, []string, []Candidate) ([]Screened, error) {
	return nil, l.ask("Candidates are timed next to each other.")
}

func (l *halted) Check(_ context.Context, _ string, c Candidate) (Checked, error) {
	return Checked{}, l.ask(fmt.Sprintf("The outputs of %s are compared.", l.space.Short(c)))
}

func (l *halted) Begin([]string, []Candidate) bool { return true }

func (l *halted) Round(_ context.Context, _ string, c Candidate) (Timed, error) {
	return Timed{}, l.ask(fmt.Sprintf("%s is timed.", l.space.Short(c)))
}

func (l *halted) Sanitize(_ context.Context, _ string, c Candidate) (Checked, error) {
	return Checked{}, l.ask(fmt.Sprintf("The sanitizers run on %s.", l.space.Short(c)))
}

func (l *halted) Confirm(_ context.Context, _ string, c Candidate, _ Attempt) (Confirmed, error) {
	return Confirmed{}, l.ask(fmt.Sprintf("The gate judges %s.", l.space.Short(c)))
}

// Headline returns the state of the search in one line.
func (v *View) Headline() string {
	best := ""
	if len(v.Elite) > 0 && v.Elite[0].Speedup != nil {
		best = fmt.Sprintf("; fastest in the race: %s, %s", v.Elite[0].Name, number.Speedup(*v.Elite[0].Speedup))
	}
	spent := fmt.Sprintf("%.0f s of measuring", v.Seconds)
	if v.Budget > 0 && !v.Ended {
		spent = fmt.Sprintf("%.0f of %.0f s of measuring", v.Seconds, v.Budget)
	}
	return fmt.Sprintf("%s of %s, %s, %s%s", number.Plural(v.Tried, "candidate"), v.Points, number.Plural(v.Rounds, "round"), spent, best)
}
