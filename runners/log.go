package runners

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// A LogEntry is an event for the reader of a log, and when it was reported.
type LogEntry struct {
	At time.Time `json:"at"`
	Event
}

// Limits of a log: events beyond them are not kept.
const (
	MostSaid = 2000
	mostText = 300 // runes of one text
)

// A Log keeps what a job reports, from its beginning. It implements Progress for readers that poll.
type Log struct {
	Now func() time.Time

	mu     sync.Mutex
	latest *Event
	said   []LogEntry
	news   news
}

// Report records an event.
func (l *Log) Report(e Event) {
	e = e.Bounded()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest = &e
	if line, ok := l.news.of(e); ok && len(l.said) < MostSaid {
		l.said = append(l.said, LogEntry{l.Now().UTC(), line})
	}
}

// Latest returns the last event, or nil if there is none yet.
func (l *Log) Latest() *Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest
}

// After returns at most most entries after the first n.
func (l *Log) After(n, most int) []LogEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(max(n, 0), len(l.said))
	return slices.Clone(l.said[n:min(len(l.said), n+most)])
}

// Bounded returns the event with texts short enough to keep.
func (e Event) Bounded() Event {
	e.Gate, e.Text, e.Unit, e.Detail = gates.Gate(cut(string(e.Gate))), cut(e.Text), cut(e.Unit), cut(e.Detail)
	if e.SoFar != nil {
		bounded := *e.SoFar
		bounded.Shape = cut(bounded.Shape)
		e.SoFar = &bounded
	}
	return e
}

func cut(text string) string {
	if len(text) <= mostText {
		return text
	}
	if runes := []rune(text); len(runes) > mostText {
		return string(runes[:mostText-1]) + "…"
	}
	return text
}

// news selects events at which something new begins or a round ends, and skips those that repeat
// for every case.
type news struct {
	gate gates.Gate
	done int
}

// of returns the event for a log, and whether it belongs there.
func (n *news) of(e Event) (Event, bool) {
	if e.Gate == n.gate && (e.Unit == "cases" || e.Unit == "rounds" && e.Done == n.done) {
		return Event{}, false
	}
	n.gate, n.done = e.Gate, e.Done
	if e.Unit == "cases" {
		e = Event{Gate: e.Gate, Text: fmt.Sprintf("comparing %d cases with the reference", e.Total)}
	}
	return e, true
}
