package runners

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// A LogEntry is an event that a reader of a log would want, and when it was reported.
type LogEntry struct {
	At time.Time `json:"at"`
	Event
}

// Bounds of a log: what is beyond them was reported, and is not kept.
const (
	MostSaid = 2000
	mostText = 300 // runes of one text
)

// A Log keeps what a job reports, from its beginning. It is Progress for one who asks.
type Log struct {
	Now func() time.Time

	mu     sync.Mutex
	latest *Event
	said   []LogEntry
	news   news
}

// Report takes an event.
func (l *Log) Report(e Event) {
	e = e.Bounded()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest = &e
	if line, ok := l.news.of(e); ok && len(l.said) < MostSaid {
		l.said = append(l.said, LogEntry{l.Now().UTC(), line})
	}
}

// Latest is the last event; nil before there is any.
func (l *Log) Latest() *Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest
}

// After is what was said after the first n, and no more than most of it.
func (l *Log) After(n, most int) []LogEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(max(n, 0), len(l.said))
	return slices.Clone(l.said[n:min(len(l.said), n+most)])
}

// Bounded is the event with texts of a length that can be kept.
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

// news tells where something new begins and where rounds go on from what repeats
// itself for every case.
type news struct {
	gate gates.Gate
	done int
}

// of is the event for a log, if it belongs there.
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
