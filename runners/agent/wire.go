package agent

import (
	"encoding/json"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// The protocol is JSON over HTTP, each runner with a bearer token of its own:
//
//	POST lease                      LeaseRequest → 200 LeaseAnswer; 204: nothing to do, ask again
//	GET  jobs/{id}/bundle?token=N   → 200 the bundle
//	POST jobs/{id}/beat             Beat → 200
//	POST jobs/{id}/earlier          Built → 200 EarlierAnswer: what is known of this machine code
//	POST jobs/{id}/begin            Built → 200 BeginAnswer: counts an attempt, before its first round
//	PUT  jobs/{id}/artifacts/{name}?token=N   the file → 200
//	POST jobs/{id}/result           Result, gzipped or not → 200
//	POST jobs/{id}/release          Release → 200
//
// Every answer about a job may be 409, the job went to another runner or is
// finished, or 410, it was cancelled. 401 and 403 are the configuration's fault.
// A refusal's body is one line for people.
const Prefix = "/runner/v1/"

// What a server takes at most.
const (
	MaxResult    = 256 << 20 // unpacked
	MaxArtifact  = 64 << 20
	MaxArtifacts = 32
	MaxLog       = 4 << 20 // a longer one loses its middle
)

// A LeaseRequest asks for a job of one of the labels.
type LeaseRequest struct {
	Runner  string   `json:"runner"`
	Labels  []string `json:"labels"`
	Version string   `json:"version,omitempty"`
	Host    string   `json:"host,omitempty"`
}

// A LeaseAnswer hands a job out.
type LeaseAnswer struct {
	Job       string  `json:"job"`
	Token     uint64  `json:"token"` // of this attempt; every later request bears it
	Kernel    string  `json:"kernel"`
	Digest    string  `json:"digest"` // SHA-256 of the bundle
	Lease     float64 `json:"lease_seconds"`
	Heartbeat float64 `json:"heartbeat_seconds"`
}

// A Beat says that the runner is alive, and what it is at.
type Beat struct {
	Token    uint64    `json:"token"`
	Progress *Progress `json:"progress,omitempty"` // nil before there is any
}

// Progress is a runners.Event on the wire.
type Progress struct {
	Gate   gates.Gate `json:"gate,omitempty"`
	Text   string     `json:"text,omitempty"`
	Done   int        `json:"done,omitempty"`
	Total  int        `json:"total,omitempty"`
	Unit   string     `json:"unit,omitempty"`
	Detail string     `json:"detail,omitempty"`
	Left   float64    `json:"left_seconds,omitempty"`
}

// Event is what was sent.
func (p Progress) Event() runners.Event {
	return runners.Event{
		Gate: p.Gate, Text: p.Text, Done: p.Done, Total: p.Total, Unit: p.Unit, Detail: p.Detail,
		Left: time.Duration(p.Left * float64(time.Second)),
	}
}

func progressOf(e runners.Event) *Progress {
	return &Progress{
		Gate: e.Gate, Text: e.Text, Done: e.Done, Total: e.Total, Unit: e.Unit, Detail: e.Detail, Left: e.Left.Seconds(),
	}
}

// Built is what the runner has built, and where.
type Built struct {
	Token uint64       `json:"token"`
	Code  runners.Code `json:"code"`
}

// An EarlierAnswer is a runners.Earlier on the wire.
type EarlierAnswer struct {
	Evidence json.RawMessage `json:"evidence,omitempty"`
	Head     string          `json:"head,omitempty"`
	Again    bool            `json:"again,omitempty"`
}

// A BeginAnswer numbers an attempt.
type BeginAnswer struct {
	Attempt int `json:"attempt"`
}

// A Result ends a job.
type Result struct {
	Token     uint64          `json:"token"`
	Evidence  json.RawMessage `json:"evidence"`
	Log       string          `json:"log,omitempty"`       // what the compilers printed
	Artifacts []string        `json:"artifacts,omitempty"` // that were put before
}

// A Release gives a job back unfinished.
type Release struct {
	Token uint64 `json:"token"`
}
