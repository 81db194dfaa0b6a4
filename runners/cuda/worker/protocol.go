// Package worker is the process that touches the GPU: it loads cubins through
// the driver API, prepares arguments, launches, keeps the clock and verifies. It
// is started afresh for every round and every comparison, takes one request, and
// answers with lines of JSON. No line of a change's code runs in it: a change
// supplies device code alone.
package worker

import (
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// Tasks that a request can ask for.
const (
	TaskReference = "reference" // compute expected outputs, in a context of their own
	TaskCases     = "cases"     // compare the candidate's outputs
	TaskCalibrate = "calibrate" // find out roughly how long a launch takes
	TaskRound     = "round"     // measure one round
	TaskLaunch    = "launch"    // launch one side, for a profiler or sanitizer that looks on
)

// A Request is everything that one process is to do.
type Request struct {
	Task     string        `json:"task"`
	Manifest string        `json:"manifest"` // text of the base's kernel.yaml
	Ordinal  int           `json:"ordinal"`  // of the GPU
	Timeout  time.Duration `json:"timeout"`  // of one launch
	Dir      string        `json:"dir"`      // where expected outputs lie

	Reference *Side `json:"reference,omitempty"`
	Baseline  *Side `json:"baseline,omitempty"`
	Candidate *Side `json:"candidate,omitempty"`

	Cases  []Case `json:"cases,omitempty"`
	Plans  []Plan `json:"plans,omitempty"`
	Pairs  int    `json:"pairs,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
	Launch int    `json:"launches,omitempty"`
	Apart  bool   `json:"apart,omitempty"` // launch: every array is an allocation of its own, and outputs are not written before
}

// A Side is a built kernel.
type Side struct {
	Image   string         `json:"image"` // the cubin's file
	Variant string         `json:"variant"`
	Toggles map[string]int `json:"toggles,omitempty"`
}

// A Case is one input, and the file with what it should give.
type Case struct {
	Shape        kernels.Shape       `json:"shape"`
	Seed         uint64              `json:"seed"`
	Distribution tensor.Distribution `json:"distribution"`
	Secret       bool                `json:"secret,omitempty"`
	EndToEnd     bool                `json:"end_to_end,omitempty"` // compare with the inputs before quantisation as well
	File         string              `json:"file"`
}

// A Plan is how one shape is measured: so many launches a sample, over inputs
// that are the cases of its sets.
type Plan struct {
	Shape string `json:"shape"`
	Batch int    `json:"batch"`
	Sets  []Case `json:"sets"`
}

// A Reply is one line of the answer. The last one has Done or Error.
type Reply struct {
	Progress string             `json:"progress,omitempty"`
	Case     *gates.Case        `json:"case,omitempty"`
	Micros   map[string]float64 `json:"micros,omitempty"` // calibrate: time of a launch by shape, of the faster side
	Round    *gates.Round       `json:"round,omitempty"`
	Done     bool               `json:"done,omitempty"`
	Error    string             `json:"error,omitempty"`
}

// Failure is how the candidate failed, if the reply says so.
func (r Reply) Failure() *gates.Failure {
	switch {
	case r.Case != nil:
		return r.Case.Failure
	case r.Round != nil:
		return r.Round.Failure
	}
	return nil
}

// suffixes of expected outputs: of what the kernel was given, and of the inputs
// before quantisation.
const (
	wantSuffix     = ".want"
	originalSuffix = ".original"
)
