package trace

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

// OfRun is the spans of a run that has its verdict: came is when the evidence did, and judged
// when the verdict was written down. evidence is nil where none came.
//
// The evidence tells times by the runner's clock, and is the runner's word: what it tells is
// moved to where the bot saw the runner begin where the two clocks disagree, and nothing
// reaches beyond what the bot saw.
func OfRun(run change.Run, e *gates.Evidence, came, judged time.Time, r change.Result) []Span {
	about := []attribute.KeyValue{
		attribute.String("kernelgate.kernel", run.Name), attribute.String("kernelgate.job", run.Job), attribute.Int("kernelgate.attempt", run.Attempt),
		attribute.String("kernelgate.runner", run.Runner), attribute.String("kernelgate.outcome", string(r.Outcome)), attribute.String("kernelgate.reason", string(r.Reason)),
	}
	begun := run.Begun
	if begun.IsZero() { // no runner ever said that it had it
		begun = came
	}
	all := []Span{
		{Name: "run", From: run.Asked, To: judged, About: about, key: run.Job},
		{Name: "queue", From: run.Asked, To: begun, About: about[:2], under: run.Job},
		{Name: "measure", From: begun, To: came, About: about[:4], under: run.Job, key: run.Job + " measure"},
		{Name: "judge", From: came, To: judged, About: about[:2], under: run.Job},
	}
	if e != nil {
		all = append(all, gathered(run.Job+" measure", e, window{begun, later(begun, came)})...)
	}
	return all
}

// A window is what the bot saw of a measurement: when it was handed out, and when evidence
// of it came.
type window struct{ from, to time.Time }

func (w window) clip(t time.Time) time.Time {
	if t.Before(w.from) {
		return w.from
	}
	if t.After(w.to) {
		return w.to
	}
	return t
}

const (
	mostRounds = 100         // bounds what one run tells
	slack      = time.Second // how far gates may reach beyond what the bot saw: clocks differ
)

// gathered is a span for every gate that the runner gathered for, and for every round of it.
// Gates come one after the other; rounds say when they began. What was carried over from an
// earlier job is none of this one's: as a rule it does not fit in.
func gathered(under string, e *gates.Evidence, w window) []Span {
	at := e.Provenance.Time
	shift := time.Duration(0)
	if at.Before(w.from) || at.After(w.to) {
		shift = w.from.Sub(at)
		at = w.from
	}
	var all []Span
	gate := func(name string, seconds float64) {
		to := at.Add(duration(seconds))
		if to.After(w.to.Add(slack)) {
			return
		}
		all = append(all, Span{Name: name, From: at, To: w.clip(to), under: under})
		at = w.clip(to)
	}
	if e.Candidate != nil {
		build := e.Candidate.Seconds
		if e.Baseline != nil {
			build += e.Baseline.Seconds
		}
		gate("build", build)
	}
	if e.Correctness != nil {
		gate("correctness", e.Correctness.Seconds)
	}
	if e.Sanitize != nil {
		gate("sanitize", e.Sanitize.Seconds)
	}
	if e.Performance != nil {
		own := under + " performance"
		rounds := roundsOf(own, e.Performance.Rounds, shift, w)
		if n := len(rounds); n > 0 {
			all = append(all, Span{Name: "performance", From: rounds[0].From, To: rounds[n-1].To, under: under, key: own})
			all = append(all, rounds...)
			at = rounds[n-1].To
		}
	}
	if e.Profile != nil {
		gate("profile", e.Profile.Seconds)
	}
	return all
}

// roundsOf is the rounds that were measured within the window, in order.
func roundsOf(under string, rounds []gates.Round, shift time.Duration, w window) []Span {
	var all []Span
	for i, r := range rounds {
		from := r.Started.Add(shift)
		if from.Before(w.from) || from.After(w.to) || len(all) == mostRounds || len(all) > 0 && from.Before(all[len(all)-1].From) {
			continue
		}
		all = append(all, Span{
			Name: "round", From: from, To: w.clip(from.Add(duration(r.Seconds))), under: under,
			About: []attribute.KeyValue{attribute.Int("kernelgate.round", i+1), attribute.Int("kernelgate.attempt", r.Attempt)},
		})
	}
	return all
}

// duration is seconds as a runner tells them, which may be anything.
func duration(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, 1e6) * float64(time.Second))
}
