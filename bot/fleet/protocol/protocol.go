// Package protocol is what the bot and its runners say to each other; bot/fleet
// is the one side of it, runners/agent the other. It is JSON over HTTP, each
// runner with a bearer token of its own:
//
//	POST lease                      LeaseRequest → 200 LeaseAnswer; 204: nothing to do, ask again
//	GET  jobs/{id}/bundle?token=N   → 200 the bundle
//	POST jobs/{id}/beat             Beat → 200
//	GET  jobs/{id}/hold?token=N     → 204 after a while, ask again: while it is open, the runner's process is there
//	POST jobs/{id}/earlier          Built → 200 EarlierAnswer: what is known of this machine code
//	POST jobs/{id}/begin            Built → 200 BeginAnswer: counts an attempt, before its first round
//	PUT  jobs/{id}/artifacts/{name}?token=N   the file → 200
//	POST jobs/{id}/result           Result, gzipped or not → 200
//	POST jobs/{id}/release          Release → 200
//
// Every answer about a job may be 409, the job went to another runner or is
// finished, or 410, it was cancelled. 401 and 403 are the configuration's fault.
// A refusal's body is one line for people.
package protocol

import (
	"encoding/json"
	"regexp"

	"github.com/kernelgate/kernelgate/runners"
)

// Prefix is where the bot serves it.
const Prefix = "/runner/v1/"

// What a server takes at most.
const (
	MaxResult    = 256 << 20 // unpacked
	MaxArtifact  = 64 << 20
	MaxArtifacts = 32
	MaxLog       = 4 << 20 // a longer one loses its middle
)

var (
	jobID        = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	artifactName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}$`)
)

// JobID tells whether a job may be called so.
func JobID(id string) bool { return jobID.MatchString(id) }

// ArtifactName tells whether a file of that name may be an artifact.
func ArtifactName(name string) bool { return artifactName.MatchString(name) }

// A LeaseRequest asks for a job of one of the labels.
type LeaseRequest struct {
	Runner  string   `json:"runner"`
	Labels  []string `json:"labels"`
	Version string   `json:"version,omitempty"`
	Host    string   `json:"host,omitempty"`
	// Wait is for how many seconds there may be no answer; 0 leaves it to the server. A runner that hears nothing for longer
	// asks another.
	Wait float64 `json:"wait_seconds,omitempty"`
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
	Token    uint64         `json:"token"`
	Progress *runners.Event `json:"progress,omitempty"` // nil before there is any
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
