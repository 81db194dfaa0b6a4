// Package worker is the judge's process on a GPU. It draws inputs, measures time and compares
// outputs, in a CUDA context that never loads code of a change. Each side runs in a separate
// process (package side). The worker starts it, and it maps only the memory of its launches. A new
// worker starts for every round and every comparison; it takes one request and replies with lines
// of JSON. No code of a change runs on the host: a change supplies only device code. The worker
// reports facts; package gates judges them.
package worker

import (
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
)

// Tasks that a request can ask for.
const (
	TaskCases  = "cases"  // compare the candidate's outputs, and estimate how long launches take
	TaskRound  = "round"  // measure one round
	TaskEnergy = "energy" // measure the energy of launches
	TaskArms   = "arms"   // time many candidates of a search next to each other
	TaskLaunch = "launch" // launch the candidate, or the reference if there is none, under a tool
)

// A Request is everything that one process must do.
type Request struct {
	Task     string        `json:"task"`
	Manifest string        `json:"manifest"` // text of the base's kernel.yaml
	Timeout  time.Duration `json:"timeout"`  // for one launch
	Program  []string      `json:"program"`  // the command that starts a side

	Oracle    string      `json:"oracle,omitempty"` // the cubin of package oracle
	Reference *side.Built `json:"reference,omitempty"`
	Python    *Python     `json:"python,omitempty"` // of a reference in Python
	Baseline  *side.Built `json:"baseline,omitempty"`
	Candidate *side.Built `json:"candidate,omitempty"`

	Recorded   string   `json:"recorded,omitempty"`   // the folder of recordings
	Recordings []string `json:"recordings,omitempty"` // their names

	Cases         []Case              `json:"cases,omitempty"`
	Plans         []Plan              `json:"plans,omitempty"`
	Distributions []distribution.Kind `json:"distributions,omitempty"` // of timed inputs
	Pairs         int                 `json:"pairs,omitempty"`
	Arms          []Arm               `json:"arms,omitempty"`
	Samples       int                 `json:"samples,omitempty"` // of every arm on every shape
	Separation    gates.Separation    `json:"separation"`        // of two right outputs on a timed input
	Seed          uint64              `json:"seed,omitempty"`
	Launch        int                 `json:"launches,omitempty"`
	Both          bool                `json:"both,omitempty"`  // launch: also the baseline, in turn; after the others, baseline, candidate and baseline
	Tune          bool                `json:"tune,omitempty"`  // cases: time the planned shapes as a round does, one launch a sample
	Apart         bool                `json:"apart,omitempty"` // launch: every array is an allocation of its own, and outputs are not written before

	// Hold lets the worker create its contexts and then wait for a Start on the same stream,
	// because the previous round may still be running.
	Hold bool `json:"hold,omitempty"`
}

// A Python is where the process of a reference in Python is reached: by pipes and memory that the worker has inherited.
type Python struct {
	To      int           `json:"to"` // descriptors
	From    int           `json:"from"`
	Memory  int           `json:"memory"`
	Socket  int           `json:"socket"`
	OnGPU   bool          `json:"on_gpu,omitempty"` // it computes there
	Timeout time.Duration `json:"timeout"`          // of one case
	PIDs    []int         `json:"pids"`             // its processes, which may be on the GPU
}

// A Start ends a Hold.
type Start struct{}

// A Case is one input that outputs are compared on.
type Case struct {
	runners.Case
	// Unquantised also compares with the result for the inputs before quantisation.
	Unquantised bool `json:"unquantised,omitempty"`
	Look        bool `json:"look,omitempty"` // also send the outputs themselves
}

// A Plan says how one shape is measured: with Batch launches per sample.
type Plan struct {
	Shape manifest.Shape `json:"shape"`
	Batch int            `json:"batch"`
	// Kinds are those that the shape is timed on; none means the request's.
	Kinds []distribution.Kind `json:"kinds,omitempty"`
	// Repeat means that passes are repeated and no launch runs alone.
	Repeat bool `json:"repeat,omitempty"`
}

// A Reply is one line of the reply. The last line has Done or Error.
type Reply struct {
	Progress string            `json:"progress,omitempty"`
	Case     *gates.Case       `json:"case,omitempty"`
	Look     *runners.CaseDump `json:"look,omitempty"`
	// Micros is the time of a launch by planned shape, of the faster side.
	Micros   map[string]float64 `json:"micros,omitempty"`
	Spent    gates.Spent        `json:"spent,omitempty"`    // with Micros: of the whole task
	Measured bool               `json:"measured,omitempty"` // all timing is done; the round follows
	Round    *gates.Round       `json:"round,omitempty"`
	Energy   *gates.Energy      `json:"energy,omitempty"`
	Arm      *ArmReply          `json:"arm,omitempty"`
	Done     bool               `json:"done,omitempty"`
	Error    string             `json:"error,omitempty"`
	Mistake  *pyref.Mistake     `json:"mistake,omitempty"` // with Error: of the reference
}

// Failure returns how the candidate failed, or nil if the reply reports no failure.
func (r Reply) Failure() *gates.Failure {
	switch {
	case r.Case != nil:
		return r.Case.Failure
	case r.Round != nil:
		return r.Round.Failure
	case r.Energy != nil:
		return r.Energy.Failure
	}
	return nil
}
