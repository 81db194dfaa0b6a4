package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/runners"
)

// A Row is one attempt in a list, under its repository's current name.
type Row struct {
	ledger.RunRow
	Change string `json:"change,omitempty"`
}

func rowOf(r ledger.RunRow, repo string) Row {
	row := Row{RunRow: r}
	row.Repo = repo
	if r.Change.Kind != "" {
		row.Change = r.Change.String()
	}
	return row
}

// At returns when something last happened to the run.
func (r Row) At() time.Time { return cmp.Or(r.Ended, r.Begun, r.Asked) }

// Pull returns the number of the run's pull request, or 0.
func (r Row) Pull() int { return r.RunRow.Change.Number }

// A RunPage shows everything about one run.
type RunPage struct {
	Row
	Verdict *gates.Verdict `json:"verdict,omitempty"`
	// Missing says why data is missing that was there earlier.
	Missing  string             `json:"missing,omitempty"`
	Place    *Place             `json:"place,omitempty"`
	Progress *runners.Event     `json:"progress,omitempty"`
	Said     []runners.LogEntry `json:"log,omitempty"` // only while it runs
	Log      string             `json:"-"`
	Attempts []Row              `json:"attempts,omitempty"`
	Commands []Command          `json:"commands,omitempty"`
	Override *Override          `json:"override,omitempty"`
	Searches []SearchRun        `json:"searches,omitempty"`
	Buttons  *Buttons           `json:"-"`
	Occupied []Occupancy        `json:"occupancy,omitempty"`
	Files    map[string]bool    `json:"files,omitempty"`

	Heading   []Piece          `json:"-"`
	Overview  *report.Overview `json:"-"` // of several shapes
	Times     []TimeRow        `json:"-"` // sorted by their distance from the goal
	Speeds    *Matrix          `json:"-"`
	Wrong     []gates.CaseRow  `json:"-"` // correctness: the first cases that failed
	Failed    int              `json:"-"` // how many there are
	Cases     *Matrix          `json:"-"`
	Code      []CodeView       `json:"-"`
	Funnel    template.HTML    `json:"-"`
	Steps     []Step           `json:"steps,omitempty"`
	Samples   *ShapeCharts     `json:"-"` // of the chosen shape
	Filter    string           `json:"-"` // of the shapes
	Filters   bool             `json:"-"` // there are so many shapes that a filter helps
	Hidden    int              `json:"-"` // shapes that the filter leaves out
	Intervals []chart.Interval `json:"-"`
	Resources *ResourceTable   `json:"-"`
	Roof      template.HTML    `json:"-"`
	Reasons   []WhyView        `json:"-"` // why the times differ
	Fitness   []FitnessRow     `json:"fitness,omitempty"`
	Evidence  *gates.Evidence  `json:"-"` // has a separate address
}

// A Step is one gate with the time that it took.
type Step struct {
	gates.GateResult
	Title   string  `json:"-"` // the name on the page
	Seconds float64 `json:"seconds,omitempty"`
}

// A Command is a command that somebody gave, with its result.
type Command struct {
	By    string    `json:"by"`
	Text  string    `json:"text"`
	Reply string    `json:"reply,omitempty"`
	OK    bool      `json:"ok"`
	At    time.Time `json:"at"`
}

// An Override is a decision by a person that a head may pass.
type Override struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	At     string `json:"at"`
	Head   string `json:"head"`
}

// An Occupancy is the number of blocks of one side that fit on an SM.
type Occupancy struct {
	Side   string `json:"side"`
	Blocks int    `json:"blocks"`
	Limit  string `json:"limited_by"`
	Lift   string `json:"lift,omitempty"` // what would let one more block share an SM
}

// A FitnessRow is the state of the runner before one round.
type FitnessRow struct {
	Round   int            `json:"round"`
	Started time.Time      `json:"started"`
	Attempt int            `json:"attempt"`
	Before  *gates.Fitness `json:"before"`
}

func (s *Server) run(ctx context.Context, v *visit) (any, error) {
	row, err := s.runOf(ctx, v, v.PathValue("job"))
	if err != nil {
		return nil, err
	}
	made := *s.drawn(ctx, row)
	p := &made
	p.Row = rowOf(row, row.Repo)
	p.choose(v.URL.Query().Get("shapes"), v.URL.Query().Get("shape"))
	p.Code = chosenCode(p.Code, v.URL.Query().Get("code"))
	if row.Phase == change.Running || row.Phase == change.Queued {
		live := s.liveOf(p.Row, s.Source.Runners(), s.Source.Places())
		p.Place, p.Progress, p.Funnel, p.Said = live.Place, live.Progress, live.Funnel, s.Source.Said(row.Job)
		p.Log = strings.Join(logLines(p.Said), "\n")
	}
	if row.Change.Kind == "" {
		return p, nil
	}
	_, searches := s.Source.(Searcher)
	if buttons := s.Act != nil && v.Login != ""; buttons || searches {
		state, err := s.Source.Change(ctx, row.Change)
		if err != nil {
			return nil, err
		}
		p.Searches = s.searchRuns(state, row.Folder)
		if p.Buttons = s.buttons(v, state, row.Head, row.Folder); p.Buttons != nil {
			if run, ok := state.Run(row.Job); ok {
				p.Buttons.Device = run.Device
			}
		}
	}
	return p, s.story(ctx, p, row)
}

// story adds the attempts, commands and overrides of the run's change.
func (s *Server) story(ctx context.Context, p *RunPage, row ledger.RunRow) error {
	attempts, err := s.Source.Attempts(ctx, row.Change)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		if a.Folder == row.Folder && a.Label == row.Label {
			p.Attempts = append(p.Attempts, rowOf(a, p.Repo))
		}
	}
	p.Commands, p.Override, err = s.commands(ctx, row.Change, row.Head)
	return err
}

// replyOf is the answer to a command in words.
func replyOf(e ledger.Entry) string {
	return present.AnswerText(change.Command{Asked: change.Asked{Request: grammar.Read(e.Text)}, Answer: e.Answer})
}

// commands returns the commands about a head, or about all heads of a change.
func (s *Server) commands(ctx context.Context, id change.ID, head string) ([]Command, *Override, error) {
	entries, err := s.Source.Audit(ctx, id, 100)
	if err != nil {
		return nil, nil, err
	}
	var list []Command
	var given *Override
	for _, e := range entries {
		if head != "" && e.Head != head {
			continue
		}
		list = append(list, Command{By: e.By, Text: e.Text, Reply: replyOf(e), OK: e.OK, At: e.At})
		if e.Override != nil && given == nil {
			given = &Override{By: e.Override.By, Reason: e.Override.Reason, At: e.Override.At, Head: e.Override.For.Head}
		}
	}
	slices.Reverse(list)
	return list, given, nil
}

// blob reads and parses a blob.
func (s *Server) blob(ctx context.Context, name string, read func([]byte) error) error {
	data, err := s.Source.Blob(ctx, name)
	if err == nil {
		err = read(data)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// mostWrong is how many of the failed cases are listed with their problem. The matrix has all of them.
const mostWrong = 12

// draw adds everything that is derived from evidence and verdict.
func (p *RunPage) draw() {
	if v := p.Verdict; v != nil {
		for _, g := range v.Gates {
			p.Steps = append(p.Steps, Step{GateResult: g, Title: g.Gate.Title(v.Device.Kind), Seconds: p.seconds(g.Gate)})
		}
		p.Heading = pieces(report.Headline(v), report.Word(v))
		rows := byMargin(v.Comparisons)
		if len(rows) == 0 && p.Evidence != nil {
			rows = byMargin(gates.UnjudgedTimes(p.Evidence))
		}
		p.Times, p.Overview, p.Speeds = timeRows(rows), report.OverviewOf(rows), speedMatrix(rows, p.Evidence)
		for _, c := range v.Correctness {
			if c.Passed < c.Total || c.Problem != "" {
				p.Failed++
				if len(p.Wrong) < mostWrong {
					p.Wrong = append(p.Wrong, c)
				}
			}
		}
		p.Cases = caseMatrix(v.Correctness)
		p.Code = codeViews(v)
		p.Intervals, p.Resources = intervalsOf(rows), resourceTable(v)
		p.Occupied = occupancy(v)
		p.Reasons = whyViews(v)
	}
	if e := p.Evidence; e != nil {
		p.Roof = roofline(e, p.Verdict)
		p.Fitness = fitness(e)
	}
}

// Summary returns the verdict's summary, unless the heading or a gate says the same.
func (p *RunPage) Summary() string {
	if p.headed(p.Verdict.Summary) || slices.ContainsFunc(p.Steps, func(s Step) bool { return alike(s.Text, p.Verdict.Summary) }) {
		return ""
	}
	return report.InNotation(p.Verdict.Summary)
}

// ToPass is the title of the steps.
func (p *RunPage) ToPass() string {
	switch {
	case p.Outcome == gates.Error:
		return "What to do"
	case p.Override != nil:
		return "To pass without the override"
	}
	return "To pass"
}

// Unenforced returns what the verdict says about rules that do not block.
func (p *RunPage) Unenforced() [][]Piece {
	var said [][]Piece
	for _, sentence := range report.Unenforced(p.Verdict) {
		said = append(said, pieces(sentence, ""))
	}
	return said
}

// Told reports whether the heading or the table of times already says what a gate says.
func (p *RunPage) Told(s Step) bool {
	return p.headed(s.Text) || s.Gate == gates.GatePerformance && s.Status != gates.NotRun && len(p.Times) > 0
}

// headed reports whether the heading, after the kernel's name, begins like a sentence.
func (p *RunPage) headed(sentence string) bool {
	for _, piece := range p.Heading {
		if alike(strings.TrimLeft(strings.TrimPrefix(piece.Text, p.Verdict.Kernel), ": "), sentence) {
			return true
		}
	}
	return false
}

// alike reports whether two sentences begin the same. It ignores the case of letters and a final
// full stop.
func alike(a, b string) bool {
	const enough = 30
	first := func(s string) string { return strings.ToLower(strings.TrimSuffix(s, ".")) }
	a, b = first(a), first(b)
	return a == b || len(a) >= enough && len(b) >= enough && a[:enough] == b[:enough]
}

// seconds returns how long it took to gather the evidence of a gate.
func (p *RunPage) seconds(g gates.Gate) float64 {
	e := p.Evidence
	if e == nil {
		return 0
	}
	seconds, _ := e.Gathered(g)
	return seconds
}

func occupancy(v *gates.Verdict) []Occupancy {
	var list []Occupancy
	for i, b := range v.Builds {
		side := "baseline"
		if i == len(v.Builds)-1 {
			side = "candidate"
		}
		if blocks, limit, ok := b.Occupancy(cmp.Or(b.Arch, v.Device.Arch)); ok {
			o := Occupancy{Side: side, Blocks: blocks, Limit: limit}
			o.Lift = b.Lift(cmp.Or(b.Arch, v.Device.Arch))
			list = append(list, o)
		}
	}
	return list
}

// fitness returns the runner's state before each round, limited to the last rounds.
func fitness(e *gates.Evidence) []FitnessRow {
	if e.Performance == nil {
		return nil
	}
	const most = 50
	var rows []FitnessRow
	for i, r := range e.Performance.Rounds {
		if r.Before != nil {
			rows = append(rows, FitnessRow{Round: i + 1, Started: r.Started, Attempt: r.Attempt, Before: r.Before})
		}
	}
	return rows[max(0, len(rows)-most):]
}

// download serves a stored file unchanged.
func (s *Server) download(what string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		row, err := s.runOf(r.Context(), s.visit(r), r.PathValue("job"))
		name := map[string]string{"evidence": row.Evidence, "verdict": row.Verdict}[what]
		if err == nil && name == "" {
			err = ErrNotFound
		}
		var data []byte
		if err == nil {
			data, err = s.Source.Blob(r.Context(), name)
		}
		if err != nil {
			s.fail(w, r, errors.Join(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", what+".json"))
		send(w, r, http.StatusOK, data, false)
	}
}
