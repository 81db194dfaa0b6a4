package trace

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

// OfRun returns the spans of a run that has its verdict. came is when the evidence arrived, judged
// when the verdict was stored. e is nil if no evidence arrived.
//
// The times in the evidence are by the runner's clock and are not trusted. If the clocks disagree,
// they are shifted to the time at which the bot saw the runner begin. No span extends beyond what
// the bot saw.
func OfRun(run change.Run, e *gates.Evidence, came, judged time.Time, r change.Result) []Span {
	about := []attribute.KeyValue{
		attribute.String("kernelgate.kernel", run.Name), attribute.String("kernelgate.job", run.Job), attribute.Int("kernelgate.attempt", run.Attempt),
		attribute.String("kernelgate.runner", run.Runner), attribute.String("kernelgate.outcome", string(r.Outcome)), attribute.String("kernelgate.reason", string(r.Reason)),
	}
	begun := run.Begun
	if begun.IsZero() { // no runner ever reported that it had the job
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

// A window is what the bot saw of a measurement: when the job was handed out, and when its evidence
// arrived.
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
	mostRounds = 100         // limits the spans of one run
	slack      = time.Second // how far gates may extend beyond the window, because clocks differ
)

// gathered returns a span for every gate with evidence, and for every round. Gates follow each
// other; rounds have start times. Rounds that were carried over from an earlier job do not belong
// to this one; they usually lie outside of the window.
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
	for _, name := range gates.Names() {
		seconds, ok := e.Gathered(name)
		switch {
		case !ok:
		case name != gates.GatePerformance:
			gate(string(name), seconds)
		default:
			own := under + " performance"
			rounds := roundsOf(own, e.Performance.Rounds, shift, w)
			if n := len(rounds); n > 0 {
				all = append(all, Span{Name: "performance", From: rounds[0].From, To: rounds[n-1].To, under: under, key: own})
				all = append(all, rounds...)
				at = rounds[n-1].To
			}
		}
	}
	return all
}

// roundsOf returns the rounds that were measured within the window, in order.
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

// duration converts seconds from a runner, which may be any number.
func duration(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, 1e6) * float64(time.Second))
}
