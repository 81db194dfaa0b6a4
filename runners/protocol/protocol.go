// Package protocol is what the bot and its runners say to each other; bot/fleet
// is the one side of it, runners/work/agent the other. It is JSON over HTTP, each
// runner with a bearer token of its own:
//
//	POST lease                      LeaseRequest → 200 LeaseResponse; 204: nothing to do, ask again; 403: too old, among other reasons
//	GET  jobs/{id}/bundle?token=N   → 200 the bundle
//	GET  jobs/{id}/builds?token=N   → 200 what another host has compiled of it, where LeaseResponse.Builds says that there is
//	POST jobs/{id}/beat             Heartbeat → 200 HeartbeatResponse
//	GET  jobs/{id}/hold?token=N     → 204 after a while, ask again: while it is open, the runner's process is there
//	POST jobs/{id}/earlier          BuiltCode → 200 PriorEvidence: what is known about this machine code
//	POST jobs/{id}/begin            BuiltCode → 200 BeginResponse: counts an attempt, before its first round
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
	// Protocol is the Version that the runner speaks.
	Protocol int     `json:"protocol,omitempty"`
	Health   *Health `json:"health,omitempty"`
	// Wait is for how many seconds there may be no answer; 0 leaves it to the server. A runner that hears nothing for longer
	// asks another.
	Wait float64 `json:"wait_seconds,omitempty"`
}

// A LeaseResponse hands a job out, or has the runner test itself.
type LeaseResponse struct {
	// Test is why the runner should test itself before it asks again; then there is no job. A runner that has done so of
	// late may wait, unless it is to do it now.
	Test    string `json:"test,omitempty"`
	TestNow bool   `json:"test_now,omitempty"`

	Job    string `json:"job"`
	Token  uint64 `json:"token"` // of this attempt; every later request bears it
	Kernel string `json:"kernel"`
	Digest string `json:"digest"` // SHA-256 of the bundle
	// Stage is what is asked for: StageBuild, or everything that is left.
	Stage string `json:"stage,omitempty"`
	// Builds is the SHA-256 of what Builder has compiled of the job; "" where nobody has.
	Builds    string  `json:"builds,omitempty"`
	Builder   string  `json:"builder,omitempty"`
	Lease     float64 `json:"lease_seconds"`
	Heartbeat float64 `json:"heartbeat_seconds"`
}

// StageBuild asks to compile the job, and no more.
const StageBuild = "build"

// A Heartbeat says that the runner is alive, and what it is at.
type Heartbeat struct {
	Token    uint64             `json:"token"`
	Progress *runners.Event     `json:"progress,omitempty"` // nil before there is any
	Health   *Health            `json:"health,omitempty"`   // nil where there is no news of it
	From     int                `json:"from,omitempty"`     // how much of the job's log goes before Said
	Said     []runners.LogEntry `json:"said,omitempty"`     // of the log, at most MostSaid
}

// MostSaid is how much of a log one beat carries.
const MostSaid = 50

// A HeartbeatResponse says how much of the job's log the bot has: the next beat goes on from there. After a restart of the bot that
// is the beginning.
type HeartbeatResponse struct {
	Said int `json:"said"`
}

// BuiltCode is what the runner has built, and where.
type BuiltCode struct {
	Token uint64       `json:"token"`
	Code  runners.Code `json:"code"`
}

// An PriorEvidence is a runners.Earlier on the wire.
type PriorEvidence struct {
	Evidence json.RawMessage `json:"evidence,omitempty"`
	Head     string          `json:"head,omitempty"`
	Again    bool            `json:"again,omitempty"`
}

// A BeginResponse numbers an attempt, and the machine code that it measures: see
// runners.Attempt. The runner writes both numbers into every round.
type BeginResponse struct {
	Attempt    int `json:"attempt"`
	CodeNumber int `json:"code_number"`
}

// A Result ends a job or, where it is open, the first stage of it.
type Result struct {
	Token     uint64          `json:"token"`
	Evidence  json.RawMessage `json:"evidence"`
	Log       string          `json:"log,omitempty"`       // what the compilers printed
	Artifacts []string        `json:"artifacts,omitempty"` // that were put before
	// Open says that the job was compiled and has to be measured still. What was compiled is the artifact runners.BuildsFile.
	Open bool `json:"open,omitempty"`
}

// A Release gives a job back unfinished.
type Release struct {
	Token uint64 `json:"token"`
}
