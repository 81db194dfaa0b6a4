package tune

import (
	"context"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// A Lab builds, checks and times candidates. Its errors are faults of the host: they end the search,
// which can be resumed. Only Build is called from several goroutines.
type Lab interface {
	// Device names what the candidates run on.
	Device() string
	Build(ctx context.Context, id string, c Candidate) (Built, error)
	// Screen times candidates that were built, all of them next to each other and next to the incumbent, with few launches. It
	// orders them, and proves nothing. It returns one result for each, in the same order.
	Screen(ctx context.Context, ids []string, all []Candidate) ([]Screened, error)
	Check(ctx context.Context, id string, c Candidate) (Checked, error)
	// Begin says which candidates the next round measures. It returns false if there can be no such round,
	// as at the end of a log that is replayed.
	Begin(ids []string, all []Candidate) bool
	Round(ctx context.Context, id string, c Candidate) (Timed, error)
	Sanitize(ctx context.Context, id string, c Candidate) (Checked, error)
	// Confirm has the ordinary gate judge the candidate, with fresh rounds, seeds and inputs.
	Confirm(ctx context.Context, id string, c Candidate, a Attempt) (Confirmed, error)
	// Release frees what the lab holds for a candidate that is not measured again.
	Release(id string)
}

// Built is how a candidate was built.
type Built struct {
	ID        string           `json:"id"`
	Refusal   *arm.Refusal     `json:"refusal,omitempty"`
	Same      string           `json:"same,omitempty"`      // hash of the machine code and its launch
	Incumbent bool             `json:"incumbent,omitempty"` // it is the same as the incumbent
	Unknown   bool             `json:"unknown,omitempty"`   // a replayed log does not have the candidate
	Output    []string         `json:"output,omitempty"`    // what the compiler said
	Resources *gates.Resources `json:"resources,omitempty"`
	Seconds   float64          `json:"seconds"`
}

// Screened is what the screen says about a candidate.
type Screened struct {
	ID      string       `json:"id"`
	Refusal *arm.Refusal `json:"refusal,omitempty"`
	// Differs means that its outputs are farther from the incumbent's than two right ones can be. The incumbent may be wrong, so
	// that this refuses nobody, but others are raced first.
	Differs  bool               `json:"differs,omitempty"`
	Speedups map[string]float64 `json:"speedups,omitempty"` // median of incumbent/candidate, by shape
	Noise    float64            `json:"noise,omitempty"`    // standard error of the mean over the shapes of log(incumbent/candidate)
	Micros   map[string]float64 `json:"micros,omitempty"`   // of a launch, by shape
	Seconds  float64            `json:"seconds"`            // its part of the time, with compiling
}

// value is that of Timed.
func (t Screened) value(h Header) float64 {
	return arm.MeanLog(t.Speedups, h.Shapes)
}

// Checked is the result of comparing outputs, or of the sanitizers.
type Checked struct {
	ID      string       `json:"id"`
	Refusal *arm.Refusal `json:"refusal,omitempty"`
	Seconds float64      `json:"seconds"`
}

// Timed is one candidate in one round.
type Timed struct {
	ID       string             `json:"id"`
	Round    int                `json:"round"`
	Refusal  *arm.Refusal       `json:"refusal,omitempty"`
	Speedups map[string]float64 `json:"speedups,omitempty"` // median of incumbent/candidate, by shape
	Micros   map[string]float64 `json:"micros,omitempty"`   // of a launch of the candidate, by shape
	Seconds  float64            `json:"seconds"`
}

// value is the mean over the shapes of log(incumbent/candidate); NaN if a shape has no undisturbed
// sample.
func (t Timed) value(h Header) float64 {
	return arm.MeanLog(t.Speedups, h.Shapes)
}

// An Attempt says how the gate counts a candidate: the search may ask it more than once.
type Attempt struct {
	ID         string `json:"id"`
	Number     int    `json:"number"`      // at this candidate, from 1
	CodeNumber int    `json:"code_number"` // the candidate is the n-th that the gate sees
}

// Confirmed is the verdict of the gate.
type Confirmed struct {
	ID      string        `json:"id"`
	Outcome gates.Outcome `json:"outcome"`
	Reason  gates.Reason  `json:"reason,omitempty"`
	Summary string        `json:"summary"`
	Folder  string        `json:"folder,omitempty"` // with evidence, verdict and report
	Seconds float64       `json:"seconds"`
}
