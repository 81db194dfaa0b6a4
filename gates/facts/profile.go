package facts

import (
	"fmt"
	"strings"
)

// A NoProfile is evidence without a profile.
type NoProfile struct{}

func (NoProfile) Sentence() string { return "no profile was taken" }

// A ProfileSkipped is a profile that the runner could not take.
type ProfileSkipped struct{ Why string }

func (p ProfileSkipped) Sentence() string { return "skipped: " + p.Why }

// A ProfileSkippedNote is the same as a note of the verdict.
type ProfileSkippedNote struct{ Why string }

func (p ProfileSkippedNote) Sentence() string { return "The profile gate was skipped: " + p.Why }

// A MetricMissed is a counter that is not what the policy asks.
type MetricMissed struct {
	Shape, Metric string
	Value         float64
	Asked         string
}

func (m MetricMissed) Sentence() string {
	return fmt.Sprintf("%s: %s is %.4g (asked %s)", m.Shape, m.Metric, m.Value, m.Asked)
}

// A NoneMet is a list of conditions of which one would have been enough.
type NoneMet struct{ Missed []MetricMissed }

func (n NoneMet) Sentence() string { return "none of these holds: " + join(n.Missed, ", ") }

// A ProfileMissed is a profile that is not what the policy asks.
type ProfileMissed struct{ Missed []Fact }

func (p ProfileMissed) Sentence() string {
	return "The profile does not meet the policy: " + join(p.Missed, "; ")
}

// A NotCounted is counters that the profile does not have.
type NotCounted struct{ Metrics []string }

func (n NotCounted) Sentence() string {
	return "the profiler did not count " + strings.Join(n.Metrics, ", ")
}

// A MetricsHold is a profile as the policy asks. Beyond are the metrics that miss their limits where the limit of another is enough.
type MetricsHold struct {
	Metrics int
	Beyond  int `json:",omitempty"`
}

func (m MetricsHold) Sentence() string {
	switch held := m.Metrics - m.Beyond; {
	case m.Beyond > 0:
		return fmt.Sprintf("%d of %d metrics within %s, which is enough", held, m.Metrics, its(held))
	case held == 1:
		return "1 metric within its limit"
	default:
		return fmt.Sprintf("%d metrics within their limits", held)
	}
}

func its(n int) string {
	if n == 1 {
		return "its limit"
	}
	return "their limits"
}
