// Package worker is the judge's process on a GPU: it draws inputs, keeps the
// clock, and compares outputs, in a CUDA context that no code of a change is
// loaded into. Each side runs in a process of its own (package side) that the
// worker starts and that maps the memory of its launches and nothing else. A
// worker is started afresh for every round and every comparison, takes one
// request, and answers with lines of JSON. No line of a change's code runs on
// the host: a change supplies device code alone.
package worker

import (
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/side"
	"github.com/kernelgate/kernelgate/runners/pyref"
)

// Tasks that a request can ask for.
const (
	TaskCases  = "cases"  // compare the candidate's outputs, and find out roughly how long launches take
	TaskRound  = "round"  // measure one round
	TaskLaunch = "launch" // launch the candidate or, without one, the reference, for a tool that looks on
)

// A Request is everything that one process is to do.
type Request struct {
	Task     string        `json:"task"`
	Manifest string        `json:"manifest"` // text of the base's kernel.yaml
	Timeout  time.Duration `json:"timeout"`  // of one launch
	Program  []string      `json:"program"`  // starts a side

	Oracle    string      `json:"oracle,omitempty"` // the cubin of package oracle
	Reference *side.Built `json:"reference,omitempty"`
	Python    *Python     `json:"python,omitempty"` // of a reference in Python
	Baseline  *side.Built `json:"baseline,omitempty"`
	Candidate *side.Built `json:"candidate,omitempty"`

	Cases         []Case              `json:"cases,omitempty"`
	Plans         []Plan              `json:"plans,omitempty"`
	Distributions []distribution.Kind `json:"distributions,omitempty"` // of timed inputs
	Pairs         int                 `json:"pairs,omitempty"`
	Seed          uint64              `json:"seed,omitempty"`
	Launch        int                 `json:"launches,omitempty"`
	Tune          bool                `json:"tune,omitempty"`  // cases: time the planned shapes as a round does, one launch a sample
	Apart         bool                `json:"apart,omitempty"` // launch: every array is an allocation of its own, and outputs are not written before

	// Hold lets the worker bring up its contexts and then wait for a Start on the
	// same stream: the round before may still be at work.
	Hold bool `json:"hold,omitempty"`
}

// A Python is where the process of a reference in Python is reached: by pipes that the worker has inherited.
type Python struct {
	To      int           `json:"to"` // descriptors
	From    int           `json:"from"`
	Timeout time.Duration `json:"timeout"` // of one case
	PIDs    []int         `json:"pids"`    // its processes, which may be on the GPU
}

// A Start ends a Hold.
type Start struct{}

// A Case is one input that outputs are compared on.
type Case struct {
	runners.Case
	Unquantised bool `json:"unquantised,omitempty"` // compare with the inputs before quantisation as well
	Look        bool `json:"look,omitempty"`        // send the outputs themselves as well
}

// A Plan is how one shape is measured: so many launches a sample.
type Plan struct {
	Shape manifest.Shape `json:"shape"`
	Batch int            `json:"batch"`
}

// A Reply is one line of the answer. The last one has Done or Error.
type Reply struct {
	Progress string             `json:"progress,omitempty"`
	Case     *gates.Case        `json:"case,omitempty"`
	Look     *runners.CaseDump  `json:"look,omitempty"`
	Micros   map[string]float64 `json:"micros,omitempty"`   // time of a launch by planned shape, of the faster side
	Measured bool               `json:"measured,omitempty"` // nothing is timed any more; the round follows
	Round    *gates.Round       `json:"round,omitempty"`
	Done     bool               `json:"done,omitempty"`
	Error    string             `json:"error,omitempty"`
	Mistake  *pyref.Mistake     `json:"mistake,omitempty"` // with Error: of the reference
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
