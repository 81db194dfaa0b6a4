// Package submission takes implementations of kernels from programs that ask again and again, and
// answers with results. A probe measures a little and shows rounded figures; a claim is judged by the
// whole policy and spends error rate. Base, problem and policy are those of the base branch.
//
// A [Service] has the rules. A [Local] works in a repository on this disk: it measures one submission after another, in
// turns of the owners, by the machinery of kernelgate check. A [Hosted] belongs to a bot: sources come from its
// mirrors, its fleet measures, and its journal keeps everything. Package mcp offers both to agents.
package submission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/gates/why"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// An Asked is what somebody submits: files in place of the base's, as they are or in a tarball, or a commit.
type Asked struct {
	Kernel string            `json:"kernel" doc:"Name or folder of the kernel, as describe lists it."`
	Files  map[string]string `json:"files,omitempty" doc:"New content of files, by their name in the kernel's folder. All other files are those of the base branch."`
	// Tarball is unpacked into Files before anything else is done.
	Tarball string `json:"tarball,omitempty" doc:"The same files as a .tar or .tar.gz in base64, by their names in the kernel's folder, instead of files."`
	Ref     string `json:"ref,omitempty" doc:"A commit, branch or tag of the repository instead of files."`
}

// onlyCompile is the intent of a submission that check_static makes where a fleet compiles.
const onlyCompile result.Intent = "static"

// Limits of a submission.
const (
	maxFiles  = 64
	maxBytes  = 1 << 20
	maxQueued = 16 // submissions of one token that are not finished
	maxKey    = 200
)

// ready returns what is asked with its files, or a mistake of the asker.
func (a Asked) ready() (Asked, error) {
	a, err := a.unpacked()
	if err == nil {
		err = a.problem()
	}
	return a, err
}

// problem is a mistake of the asker.
func (a Asked) problem() error {
	switch bytes := 0; {
	case a.Kernel == "":
		return usage.Errorf("kernel is missing (describe without arguments lists the kernels)")
	case len(a.Files) == 0 && a.Ref == "":
		return usage.Errorf("there is nothing to judge: send files or a tarball, or name a commit in ref")
	case len(a.Files) > 0 && a.Ref != "":
		return usage.Errorf("send one of files, tarball and ref, not several")
	case len(a.Files) > maxFiles:
		return usage.Errorf("there are %d files (at most %d)", len(a.Files), maxFiles)
	default:
		for _, text := range a.Files {
			bytes += len(text)
		}
		if bytes > maxBytes {
			return usage.Errorf("the files have %d bytes (at most %d)", bytes, maxBytes)
		}
	}
	return nil
}

// digest identifies what is asked.
func (a Asked) digest(intent result.Intent) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", intent, a.Kernel, a.Ref)
	for _, name := range slices.Sorted(maps.Keys(a.Files)) {
		fmt.Fprintf(h, " %q %q", name, a.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// A State is how far a submission is.
type State string

const (
	Queued  State = "queued"
	Running State = "running"
	Done    State = "done"
)

// A Submission is one asked result, as it is stored.
type Submission struct {
	Handle  string        `json:"handle"`
	Token   string        `json:"token"`
	Intent  result.Intent `json:"intent"`
	Asked   Asked         `json:"asked"`
	Digest  string        `json:"digest"`
	Kernel  string        `json:"kernel"` // its name, which differs from the folder's in some repositories
	Base    string        `json:"base"`
	Head    string        `json:"head"`
	State   State         `json:"state"`
	Created time.Time     `json:"created"`
	Ended   time.Time     `json:"ended,omitzero"`
	// Folder has evidence, verdict and report, below that of the submission.
	Folder string         `json:"folder,omitempty"`
	Result *result.Result `json:"result,omitempty"`
	Why    *Why           `json:"why,omitempty"`
	Static *Static        `json:"static,omitempty"` // of an implementation that was only compiled
	Work   *work          `json:"work,omitempty"`   // for the fleet of a bot; nil on this disk

	brief   bool     // the result is that of short
	seq     uint64   // of its last event, where a journal keeps it
	decided *outcome // of a submission that needs no runner
}

// id names a submission among those of all owners.
func (s *Submission) id() string { return s.Token + "/" + s.Handle }

// short is what memory keeps of a submission that is done: enough for a history, and to know it again.
func (s *Submission) short() *Submission {
	out := new(*s)
	out.Asked.Files, out.Why, out.Static, out.brief = nil, nil, nil, true
	if r := s.Result; r != nil {
		out.Result = &result.Result{Outcome: r.Outcome, Reason: r.Reason, Summary: r.Summary, Code: r.Code}
	}
	return out
}

// A Status is how far a submission is, for its owner.
type Status struct {
	Handle   string        `json:"handle" doc:"Names the submission in status, verdict and why."`
	Kernel   string        `json:"kernel"`
	Intent   result.Intent `json:"intent"`
	State    State         `json:"state" doc:"queued, running or done."`
	Ahead    int           `json:"ahead" doc:"Submissions that are measured before it."`
	Step     string        `json:"step,omitempty" doc:"What is being done now."`
	Finished int           `json:"done,omitempty" doc:"Parts of the step that are done."`
	Total    int           `json:"total,omitempty" doc:"All parts of the step."`
	Left     float64       `json:"left_seconds,omitempty" doc:"Time left of the step. Absent where it is not known."`
	Seconds  float64       `json:"expected_seconds,omitempty" doc:"How long submissions of this intent for this kernel took on average. Absent before the first."`
	Cost     string        `json:"cost,omitempty" doc:"What the submission spends."`
	Created  time.Time     `json:"created"`
	Repeated bool          `json:"repeated,omitempty" doc:"The same submission was made before: this is its handle."`
}

// A Why explains a result.
type Why struct {
	Handle    string              `json:"handle"`
	Text      string              `json:"text" doc:"The explanation for people."`
	Gates     []Gate              `json:"gates" doc:"How each gate came out."`
	Resources []gates.ResourceRow `json:"resources,omitempty" doc:"What the compiler says that both sides need."`
	Messages  []string            `json:"messages,omitempty" doc:"Messages of compilers and tools."`
	Roofline  []Share             `json:"roofline,omitempty" doc:"How close the candidate is to the limit of the device."`
	Causes    []Cause             `json:"causes,omitempty" doc:"Why the times of public shapes differ."`
}

// A Cause is why the times of one shape differ.
type Cause struct {
	Shape     string    `json:"shape"`
	Text      string    `json:"text" doc:"What moved, the cause, and what limits each side."`
	Cause     why.Cause `json:"cause,omitempty" doc:"The mechanism. Absent where none explains the difference."`
	Static    bool      `json:"static,omitempty" doc:"Nothing was profiled: it follows from the builds."`
	Baseline  string    `json:"baseline_limiter,omitempty" doc:"What keeps the baseline from being faster."`
	Candidate string    `json:"candidate_limiter,omitempty" doc:"What keeps the candidate from being faster."`
	Measures  []Measure `json:"measures,omitempty" doc:"What was counted of both sides."`
	Occupancy string    `json:"occupancy,omitempty" doc:"What would let more blocks of the candidate share a multiprocessor."`
	Note      string    `json:"note,omitempty" doc:"Why there are no counters, with the remedy."`
}

// A Measure is one figure of both sides.
type Measure struct {
	Name      string   `json:"name"`
	Unit      string   `json:"unit,omitempty"`
	Baseline  *float64 `json:"baseline,omitempty" doc:"Absent if it was not counted."`
	Candidate *float64 `json:"candidate,omitempty" doc:"Absent if it was not counted."`
	Moved     bool     `json:"moved" doc:"Whether it differs by more than two profiles of the baseline do."`
}

// A Gate is how one gate came out.
type Gate struct {
	Gate     string   `json:"gate"`
	Status   string   `json:"status"`
	Required bool     `json:"required"`
	Text     string   `json:"text"`
	Details  []string `json:"details,omitempty"`
}

// A Share is a shape's share of the roofline.
type Share struct {
	Shape    string  `json:"shape"`
	Roofline float64 `json:"roofline_share"`
}

// quoted joins texts so that no two lists of texts are the same.
func quoted(texts ...string) string { return fmt.Sprintf("%q", texts) }
