package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/results"
	"github.com/kernelgate/kernelgate/runners/work/search"
)

// LogFile is the name of a search's log in its folder.
const LogFile = search.LogFile

// logVersion is that of the format.
const logVersion = 1

// A Log has everything that a search has learnt, one JSON object a line. A search writes each result
// before it acts on it, and is a function of its log and its seed. So a search that was interrupted
// continues from its log, and a strategy can be tried on the measurements of another.
type Log struct {
	Header    Header
	proposals [][]Candidate
	builds    map[string]Built
	screens   map[string]Screened
	checks    map[string]Checked
	sanitized map[string]Checked
	rounds    map[int]map[string]Timed
	attempts  []Attempt
	verdicts  map[string]Confirmed
	Ended     bool
	winner    string // of a search that has ended

	mu   sync.Mutex
	file *os.File // nil if the log is only read
}

// A Header says what a search is about.
type Header struct {
	Version    int      `json:"version"`
	Space      Space    `json:"space"`
	Shapes     []string `json:"shapes"`
	Device     string   `json:"device"`
	Proposer   string   `json:"proposer"`
	Seed       uint64   `json:"seed"`
	Candidates int      `json:"candidates"`
	Budget     float64  `json:"budget_seconds"`
	Epsilon    float64  `json:"epsilon"`
	MaxRounds  int      `json:"max_rounds"`
	Exhaustive bool     `json:"exhaustive,omitempty"`
	// Guards are the smallest incumbent/candidate that the policy's guard allows, by raced shape.
	Guards map[string]float64 `json:"guards,omitempty"`
	// Goals are the smallest incumbent/candidate that the policy's target asks for, by raced shape.
	Goals map[string]float64 `json:"goals,omitempty"`
	// NoGate means that the search ends with its race.
	NoGate bool `json:"no_gate,omitempty"`
	// Files is a hash of everything that the candidates are built from and judged by.
	Files string `json:"files"`
}

// An entry is one line. One of its fields is there.
type entry struct {
	Search   *Header      `json:"search,omitempty"`
	Proposal *[]Candidate `json:"proposal,omitempty"`
	Build    *Built       `json:"build,omitempty"`
	Screen   *Screened    `json:"screen,omitempty"`
	Check    *Checked     `json:"check,omitempty"`
	Round    *Timed       `json:"round,omitempty"`
	Drop     *Drop        `json:"drop,omitempty"` // for people: it follows from the rounds
	Sanitize *Checked     `json:"sanitize,omitempty"`
	Attempt  *Attempt     `json:"attempt,omitempty"`
	Verdict  *Confirmed   `json:"verdict,omitempty"`
	End      *end         `json:"end,omitempty"`
}

type end struct {
	Winner string `json:"winner,omitempty"`
	Best   string `json:"best,omitempty"` // of the race
}

func newLog() *Log {
	return &Log{builds: map[string]Built{}, screens: map[string]Screened{}, checks: map[string]Checked{}, sanitized: map[string]Checked{}, rounds: map[int]map[string]Timed{}, verdicts: map[string]Confirmed{}}
}

// CreateLog begins the log of a new search in a folder.
func CreateLog(dir string, h Header) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the search: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, LogFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, usage.Errorf("%s has a search already (go on with --resume %[1]s, or name another folder)", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("beginning the log of the search: %w", err)
	}
	l := newLog()
	l.file = file
	h.Version = logVersion
	return l, l.add(entry{Search: &h})
}

// OpenLog opens the log in a folder, to go on with its search. It cuts off a line that was being
// written when the search was killed.
func OpenLog(dir string) (*Log, error) {
	name := filepath.Join(dir, LogFile)
	l, whole, err := readLog(name)
	if err != nil {
		return nil, err
	}
	if l.file, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return nil, fmt.Errorf("going on with the log: %w", err)
	}
	if err := l.file.Truncate(int64(whole)); err != nil {
		return nil, errors.Join(fmt.Errorf("cutting off the last line of %s: %w", name, err), l.file.Close())
	}
	return l, nil
}

// ReadLog reads a log to replay it.
func ReadLog(name string) (*Log, error) {
	l, _, err := readLog(name)
	return l, err
}

// maxLog bounds a log: a year of rounds.
const maxLog = 1 << 30

func readLog(name string) (*Log, int, error) {
	text, err := results.ReadAtMost(name, maxLog)
	if err != nil {
		return nil, 0, usage.Errorf("reading the log of a search: %w", err)
	}
	l, whole, err := parseLog(name, text)
	if err != nil {
		return nil, 0, usage.Error{Err: err}
	}
	return l, whole, nil
}

// parseLog reads all whole lines, and returns their length. A last line without an end is left out.
func parseLog(name string, text []byte) (*Log, int, error) {
	l := newLog()
	whole := 0
	for number := 1; ; number++ {
		line, _, found := bytes.Cut(text[whole:], []byte("\n"))
		if !found {
			break
		}
		var e entry
		err := json.Unmarshal(line, &e)
		if err == nil {
			err = l.accept(e, number == 1)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %w (this is no log of kernelgate tune, or it was edited)", name, number, err)
		}
		whole += len(line) + 1
	}
	if l.Header.Version == 0 {
		return nil, 0, fmt.Errorf("%s: the log is empty: its search was killed before it began (begin a new one)", name)
	}
	return l, whole, nil
}

// accept takes in one line.
func (l *Log) accept(e entry, first bool) error {
	if first != (e.Search != nil) {
		return errors.New("search: the first line, and no other, says what is searched")
	}
	switch {
	case e.Search != nil:
		l.Header = *e.Search
		return l.Header.check()
	case e.Proposal != nil:
		for _, c := range *e.Proposal {
			if err := l.Header.Space.Check(c); err != nil {
				return fmt.Errorf("proposal: %w", err)
			}
		}
		l.proposals = append(l.proposals, *e.Proposal)
	case e.Build != nil:
		l.builds[e.Build.ID] = *e.Build
	case e.Screen != nil:
		l.screens[e.Screen.ID] = *e.Screen
	case e.Check != nil:
		l.checks[e.Check.ID] = *e.Check
	case e.Round != nil:
		if e.Round.Round < 0 {
			return fmt.Errorf("round.round: %d is no number of a round", e.Round.Round)
		}
		if l.rounds[e.Round.Round] == nil {
			l.rounds[e.Round.Round] = map[string]Timed{}
		}
		l.rounds[e.Round.Round][e.Round.ID] = *e.Round
	case e.Sanitize != nil:
		l.sanitized[e.Sanitize.ID] = *e.Sanitize
	case e.Attempt != nil:
		l.attempts = append(l.attempts, *e.Attempt)
	case e.Verdict != nil:
		l.verdicts[e.Verdict.ID] = *e.Verdict
	case e.End != nil:
		l.Ended, l.winner = true, e.End.Winner
	case e.Drop != nil:
	default:
		return errors.New("the line has no known field")
	}
	return nil
}

// check says what a search cannot begin with.
func (h *Header) check() error {
	switch {
	case h.Version != logVersion:
		return fmt.Errorf("search.version: %d is not %d", h.Version, logVersion)
	case len(h.Space.Variants) == 0:
		return errors.New("search.space.variants: there are none")
	case slices.ContainsFunc(h.Space.Toggles, func(t Toggle) bool { return len(t.Values) == 0 }):
		return errors.New("search.space.toggles: one has no values")
	case len(h.Shapes) == 0:
		return errors.New("search.shapes: there are none")
	case !(h.Epsilon > 0 && h.Epsilon < 1):
		return fmt.Errorf("search.epsilon: %v is no share", h.Epsilon)
	case h.Candidates < 1 || h.MaxRounds < firstInterim || h.MaxRounds > 10_000:
		return fmt.Errorf("search: %d candidates and %d rounds are out of range", h.Candidates, h.MaxRounds)
	}
	return nil
}

// add takes in a line and writes it to the disk before it returns. Build results come from several
// goroutines.
func (l *Log) add(e entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.accept(e, e.Search != nil); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// build looks up a result while others are written.
func (l *Log) build(id string) (Built, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.builds[id]
	return b, ok
}
