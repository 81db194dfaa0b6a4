package change

import (
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/compat"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// An Event is one of Seen, Planned, Asked, Answered, Searching, Reviewed, Started, Built, Finished,
// Dropped, Published, HeadShared and RepublishAsked.
type Event interface{ kind() string }

// Facts is a change as GitHub tells it.
type Facts struct {
	Repo          string    `json:"repo"` // owner/name
	DefaultBranch string    `json:"default_branch,omitempty"`
	Title         string    `json:"title,omitempty"`
	Claims        []string  `json:"claims,omitempty"` // what its title and description name: see why.Claims
	Author        string    `json:"author,omitempty"`
	Labels        []string  `json:"labels,omitempty"` // sorted
	Draft         bool      `json:"draft,omitempty"`
	Open          bool      `json:"open,omitempty"`
	Merged        bool      `json:"merged,omitempty"`
	Fork          bool      `json:"fork,omitempty"`
	Head          string    `json:"head"`
	Base          string    `json:"base"`                // the branch that it goes to
	BaseSHA       string    `json:"base_sha,omitempty"`  // of a group, a push, a sweep or a watch: the commit to compare with
	Kernels       []string  `json:"kernels,omitempty"`   // of a sweep or a watch: patterns of kernel folders; none means all
	Watch         *Watching `json:"watch,omitempty"`     // only for a watch
	Pulls         []int     `json:"pulls,omitempty"`     // a group's last pull request
	Members       []Member  `json:"members,omitempty"`   // a group's pull requests, once they were found
	Rules         string    `json:"rules,omitempty"`     // digest of the base's, once they changed under an open pull request
	BaseGone      bool      `json:"base_gone,omitempty"` // the branch Base does not exist: nothing can be planned
	Ended         EndReason `json:"ended,omitempty"`     // why GitHub does not show it any more
	Updated       time.Time `json:"updated"`
}

// Watching says what a watch compares with, and when the watch was due.
type Watching struct {
	Due     time.Time     `json:"due"`
	Against watch.Against `json:"against"`
	Tag     string        `json:"tag,omitempty"`      // of the release; BaseSHA is its commit
	Slower  float64       `json:"slower"`             // smallest slowdown that counts: 0.01 is 1 %
	MovedTo string        `json:"moved_to,omitempty"` // the commit that the tag has now, if somebody moved it
	Pinned  []watch.Pin   `json:"pinned,omitempty"`   // kernels that are compared with an earlier release
}

// An EndReason says why a repository, with all its changes, can be reached no more.
type EndReason string

const (
	RepositoryDeleted EndReason = "repository_deleted"
	AppUninstalled    EndReason = "app_uninstalled"
	AppRemoved        EndReason = "app_removed" // from this repository
)

// Known reports whether it is one of these.
func (r EndReason) Known() bool {
	return r == RepositoryDeleted || r == AppUninstalled || r == AppRemoved
}

// A Member is a pull request of a merge group, in what a rule may ask of it. One without
// a number stands for commits of which nobody knows where they come from.
type Member struct {
	Number int      `json:"number,omitempty"`
	Head   string   `json:"head,omitempty"`
	Title  string   `json:"title,omitempty"`
	Labels []string `json:"labels,omitempty"`
	Draft  bool     `json:"draft,omitempty"`
}

// Seen says that GitHub's view of the change is new.
type Seen struct {
	Facts
	// Override is there for a merge group with a pull request that was let pass: it was
	// given for commits that the group merges.
	Override *Override `json:"override,omitempty"`
	// RulesApproved is there for a merge group in the same way.
	RulesApproved *RulesApproved `json:"rules_approved,omitempty"`
}

// A Plan is what is to be measured, and by which rules. Policy and manifests are
// the base's.
type Plan struct {
	Key        string `json:"key"` // of the facts it was made from
	Head       string `json:"head"`
	Base       string `json:"base"`              // the merge base
	Rules      string `json:"rules,omitempty"`   // digest of what the base asks of kernels, when the plan was made
	Check      string `json:"check"`             // name of the required check
	PolicyFile string `json:"policy_file"`       // for messages
	Policy     string `json:"policy"`            // its text; empty where there is none
	Forks      string `json:"forks,omitempty"`   // the policy's word on forks
	Refused    bool   `json:"refused,omitempty"` // it holds more than is read: Problems say what
	NoPolicy   bool   `json:"no_policy,omitempty"`
	// UnknownMembers says that a merge group has commits of a pull request that is not known. It cannot pass.
	UnknownMembers bool               `json:"unknown_members,omitempty"`
	Problems       []gates.Diagnostic `json:"problems,omitempty"` // mistakes in policy or manifests: nothing can be measured
	Paths          []string           `json:"paths,omitempty"`    // changed files, the first of them, for rules that go by path
	Kernels        []Kernel           `json:"kernels,omitempty"`
	RuleChange     *RuleChange        `json:"rule_change,omitempty"` // nil where the rules stay as they are

	parsed *parsedPolicy
}

// A KernelSpec says what is measured of one kernel on one device, and by which rules. A plan has one
// for each key, and each attempt at it has the one that it was started with.
type KernelSpec struct {
	Name   string `json:"name"`   // as it is shown
	Folder string `json:"folder"` // identifies the kernel
	// Device is the label of the device that the run is for, if the policy asks for a run on each of
	// several. Informs says that its verdict blocks nothing.
	Device  string `json:"device,omitempty"`
	Informs bool   `json:"informs,omitempty"`
	Rule    string `json:"rule"`
	Trial   string `json:"trial,omitempty"` // a rule that does not block and is tried as well
	// Rules is all that apply, in a merge group whose pull requests get different ones.
	Rules              []string `json:"rules,omitempty"`
	Labels             []string `json:"labels"`                        // of the runners that may measure it, most wanted first
	Build              string   `json:"build,omitempty"`               // label of the runners that may compile it before that
	Sources            string   `json:"sources,omitempty"`             // digest of what is built and measured
	RequirementsDigest string   `json:"requirements_digest,omitempty"` // digest of what the base asks of it in addition to the policy
	// Dispatch is the digest of what decides, apart from the machine code, what a merge runs at
	// every problem size. Evidence holds only where it is equal.
	Dispatch string `json:"dispatch,omitempty"`
	Bundle   string `json:"bundle,omitempty"` // its blob
	// HeadSources is the digest of the sources of the head's kernel, without the baseline. Only a watch
	// sets it.
	HeadSources string `json:"head_sources,omitempty"`
	Was         string `json:"was,omitempty"` // the folder of the kernel before the change, if the change renames the kernel
}

// ManifestName is the kernel's name in its manifest: Name without the device of the run, and without
// the folder that is added where two kernels have one name.
func (k KernelSpec) ManifestName() string {
	return strings.TrimSuffix(k.KernelName(), " ("+k.Folder+")")
}

// KernelName is Name without the device of the run: all runs of a kernel have it.
func (k KernelSpec) KernelName() string {
	if k.Device == "" {
		return k.Name
	}
	return strings.TrimSuffix(k.Name, gates.NameOn("", k.Device))
}

// A Kernel is one kernel that the change touches.
type Kernel struct {
	KernelSpec
	Paths []string `json:"paths,omitempty"` // changed files that are the kernel's
	// Reused says that an earlier run of the same sources under the same rule stays as it is.
	Reused bool `json:"reused,omitempty"`
	// Result is there when no runner is needed: the kernel was removed, or existing evidence
	// is judged by a different rule.
	Result *Result `json:"result,omitempty"`
}

// Planned says what the change's facts lead to.
type Planned struct {
	Plan
}

// Asked is a command that somebody gave, in writing or by a button.
type Asked struct {
	ID      string          `json:"id"`                // comment-<number>, line-<number>, review-<number> or button-<delivery>
	Comment int64           `json:"comment,omitempty"` // what was written; 0 for a button
	On      On              `json:"on,omitempty"`      // what Comment is the number of
	By      string          `json:"by"`
	Request grammar.Request `json:"request"`
	Head    string          `json:"head"` // when it was asked: what its author could see
	Base    string          `json:"base"` // the same
	// Rules is the digest of what the base asked then. It is empty if there was no plan to read yet.
	Rules string `json:"rules,omitempty"`
}

// On is where a command stands, since GitHub numbers each kind by itself.
type On string

const (
	InConversation On = ""
	OnLine         On = "line"   // a comment on a line of the change
	InReview       On = "review" // to which nobody can react
)

// An Effect is what a command leads to. At most one field is set.
type Effect struct {
	Approve      *ForkApproved  `json:"approve,omitempty"`
	ApproveRules *RulesApproved `json:"approve_rules,omitempty"`
	Override     *Override      `json:"override,omitempty"`
	Cancel       string         `json:"cancel,omitempty"` // the head whose runs end
	Rebench      []Rerun        `json:"rebench,omitempty"`
	ExtraRuns    []ExtraRun     `json:"extra_runs,omitempty"`
	Search       *Search        `json:"search,omitempty"`
}

// A ForkApproved is somebody's decision that runners may run one commit of a fork.
type ForkApproved struct {
	For Scope  `json:"for"`
	By  string `json:"by"`
}

// An Override lets one head pass in spite of the gates.
type Override struct {
	For    Scope  `json:"for"`
	By     string `json:"by"`
	Reason string `json:"reason"` // as it was written: escape it before it is shown
	At     string `json:"at"`
	// Folders is the kernels that it counts for, in a group of several pull requests: those
	// of its own one. None means all.
	Folders []string `json:"folders,omitempty"`
}

// Rerun is one more attempt at a kernel, which adds to the evidence.
type Rerun struct {
	Folder string `json:"folder"`
	Device string `json:"device,omitempty"` // as in KernelKey
	Bundle string `json:"bundle"`
}

// ExtraRun is a measurement for information: against another baseline, or of other
// shapes or seeds than the policy's. It changes no verdict.
type ExtraRun struct {
	Folder  string          `json:"folder"`
	Device  string          `json:"device,omitempty"` // as in KernelKey
	Bundle  string          `json:"bundle"`
	Rebench grammar.Rebench `json:"rebench"`
	// OnlyExplain profiles both sides on the shapes of Rebench, and measures nothing.
	OnlyExplain bool `json:"only_explain,omitempty"`
}

// Search is a job with more than one comparison: a tuning or a bisection. Its result is a report, which
// changes no verdict.
type Search struct {
	Folder  string          `json:"folder"`
	Device  string          `json:"device,omitempty"` // as in KernelKey
	Bundle  string          `json:"bundle"`
	Request grammar.Request `json:"request"`
}

// Searching says that the bot itself starts a search. ID takes the place of the id of a command.
type Searching struct {
	ID     string `json:"id"`
	Search Search `json:"search"`
}

// Answered is the bot's decision on a command, with what follows from it.
type Answered struct {
	ID     string `json:"id"`
	OK     bool   `json:"ok"`
	Answer Answer `json:"answer"`
	Effect Effect `json:"effect"`
}

// Started says that a runner has begun with a job.
type Started struct {
	Job    string `json:"job"`
	Token  uint64 `json:"token"` // of the lease; a later lease has a larger one
	Runner string `json:"runner"`
	Builds bool   `json:"builds,omitempty"` // it compiles the job, and measures nothing
}

// Built says that a runner has compiled a job and that it goes on to one that measures.
type Built struct {
	Job   string `json:"job"`
	Token uint64 `json:"token"`
	Compiled
}

// Compiled is the outcome of a job's build stage.
type Compiled struct {
	By       string     `json:"by"`
	Evidence string     `json:"evidence,omitempty"` // blob: what the compilers reported
	Log      string     `json:"log,omitempty"`      // blob
	Fault    BuildFault `json:"fault,omitempty"`    // why there is no evidence
}

// A BuildFault says why a job was not compiled ahead of its measuring. The bot's log has the details.
type BuildFault string

const (
	BuildLost       BuildFault = "lost"       // the runner stopped responding
	BuildRunner     BuildFault = "runner"     // the runner reports a fault of its own
	BuildUnreadable BuildFault = "unreadable" // the runner sent no evidence
	BuildMeasured   BuildFault = "measured"   // the runner sent figures that only a measurement can give
	BuildOfOtherJob BuildFault = "other_job"  // the evidence does not answer the job
	BuildUndecided  BuildFault = "no_verdict" // the evidence leads to no verdict on the change
)

// Reviewed is the word of code owners' reviews on what the head does to the rules; nil
// where they do not approve it, or no longer.
type Reviewed struct {
	RulesApproved *RulesApproved `json:"rules_approved,omitempty"`
}

// A Result is the verdict on one kernel, with the names of the blobs that prove it.
type Result struct {
	Outcome gates.Outcome `json:"outcome"`
	Reason  gates.Reason  `json:"reason,omitempty"`
	Line    string        `json:"line"` // the verdict in one line
	Rule    string        `json:"rule"`
	// Enforce is that of the rule, where it does not block.
	Enforce  policy.Enforce `json:"enforce,omitempty"`
	Verdict  string         `json:"verdict"`            // blob
	Evidence string         `json:"evidence,omitempty"` // blob
	Log      string         `json:"log,omitempty"`      // blob
	Files    []string       `json:"files,omitempty"`    // blobs
	Device   string         `json:"device,omitempty"`
	Attempt  int            `json:"attempt,omitempty"` // at the machine code: of the last round that was measured; 0 where none was
	// Speedups are the point estimates of the shapes that must gain, for lists.
	Speedups map[string]float64 `json:"speedups,omitempty"`
	// P50 is the candidate's time on each shape as reports show it, in microseconds, for the history.
	P50 map[string]float64 `json:"p50,omitempty"`
	// What the kernel's high-water mark is derived from: the commit that the candidate was measured against, the
	// device's architecture, and baseline/candidate by shape.
	Against string           `json:"against,omitempty"`
	Arch    string           `json:"arch,omitempty"`
	Ratios  map[string]Ratio `json:"ratios,omitempty"`
	// Report is the blob with the report of a search, which has no verdict and no evidence.
	Report string `json:"report,omitempty"`
	// Unbuildable says that the baseline did not build.
	Unbuildable bool `json:"unbuildable,omitempty"`
}

// A Ratio is the candidate's speed relative to the baseline's, at one problem size.
type Ratio struct {
	Value float64 `json:"value"`
	Dims  string  `json:"dims"`
}

// Finished is a job's verdict.
type Finished struct {
	Job    string `json:"job"`
	Token  uint64 `json:"token"`
	Runner string `json:"runner,omitempty"`
	Result Result `json:"result"`
}

// Dropped says that jobs which nobody waits for were taken out of the queue.
type Dropped struct {
	Jobs []string `json:"jobs"`
}

// A Posted check or comment is one that GitHub has.
type Posted struct {
	ID     int64  `json:"id"`
	Digest string `json:"digest"`         // of what it says
	Done   bool   `json:"done,omitempty"` // a check that is concluded
	For    Scope  `json:"for,omitzero"`   // what its conclusion holds for
}

// Published is what was written to GitHub. It names what is new alone.
type Published struct {
	Checks          map[string]Posted `json:"checks,omitempty"` // by name@sha
	Comment         *Posted           `json:"comment,omitempty"`
	Replies         map[string]int64  `json:"replies,omitempty"`          // by the command's id
	AnnouncedDigest string            `json:"announced_digest,omitempty"` // as in State
	// Complete says that GitHub now shows all that follows from the events before.
	Complete bool `json:"complete,omitempty"`
}

// HeadShared says that there is news of another pull request or merge group with the same head:
// GitHub asks for a check by commit, so what is shown of the one is shown of the other.
type HeadShared struct {
	Other string `json:"other"` // its ID
}

// RepublishAsked says that GitHub may not show what was published last: a bot that had lost the
// lead without knowing may have written after its successor.
type RepublishAsked struct{}

func (Seen) kind() string           { return "seen" }
func (Planned) kind() string        { return "planned" }
func (Asked) kind() string          { return "asked" }
func (Answered) kind() string       { return "answered" }
func (Reviewed) kind() string       { return "reviewed" }
func (Started) kind() string        { return "started" }
func (Built) kind() string          { return "built" }
func (Finished) kind() string       { return "finished" }
func (Searching) kind() string      { return "searching" }
func (Dropped) kind() string        { return "dropped" }
func (Published) kind() string      { return "published" }
func (HeadShared) kind() string     { return "head_shared" }
func (RepublishAsked) kind() string { return "republish_asked" }

// KindOf is the word under which an event is stored.
func KindOf(e Event) string { return e.kind() }

var vocabulary = compat.Vocabulary[Event]{KindOf: KindOf, All: []Event{
	Seen{}, Planned{}, Asked{}, Answered{}, Reviewed{}, Started{}, Built{}, Finished{}, Searching{}, Dropped{}, Published{}, HeadShared{}, RepublishAsked{},
}}

// Decode reads an event that this program has stored.
func Decode(kind string, data []byte) (Event, error) { return DecodeFrom(compat.Writer{}, kind, data) }

// DecodeFrom reads an event that another version may have stored. It refuses kinds and fields that this program does not
// know (compat.IsUnknown).
func DecodeFrom(from compat.Writer, kind string, data []byte) (Event, error) {
	return vocabulary.Decode(from, kind, data)
}
