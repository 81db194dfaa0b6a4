package change

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/grammar"
)

// A State is what a change's events add up to.
type State struct {
	ID        ID        `json:"id"`
	Seq       uint64    `json:"seq"` // of the last event; 0 before the first
	First     time.Time `json:"first"`
	Facts     Facts     `json:"facts"`
	Plan      *Plan     `json:"plan,omitempty"`       // the newest, perhaps of earlier facts: see NeedsPlan
	Runs      []Run     `json:"runs,omitempty"`       // of the plan, one for each key
	ExtraRuns []Run     `json:"extra_runs,omitempty"` // for information
	Searches  []Run     `json:"searches,omitempty"`   // tunings and bisections
	Past      []Run     `json:"past,omitempty"`       // attempts before, oldest first

	Approved      []ForkApproved `json:"approved,omitempty"`       // commits of a fork that may be run
	Override      *Override      `json:"override,omitempty"`       // the last one; see Overridden
	Voided        []VoidDecision `json:"voided,omitempty"`         // decisions about the head that a new base or new rules ended
	RulesApproved *RulesApproved `json:"rules_approved,omitempty"` // the last word; see ApprovedRules
	RulesSince    time.Time      `json:"rules_since,omitzero"`     // when the base's rules were last found to be others; see otherRules
	Cancelled     string         `json:"cancelled,omitempty"`      // the head whose runs somebody ended
	Commands      []Command      `json:"commands,omitempty"`
	// CommandsBefore is how many commands there were before those that are kept, and
	// CommandsUpTo the largest number among their comments, by kind. GitHub numbers comments
	// upwards, so that no forgotten command is followed a second time.
	CommandsBefore int          `json:"commands_before,omitempty"`
	CommandsUpTo   map[On]int64 `json:"commands_up_to,omitempty"`

	Dropping        []string          `json:"dropping,omitempty"` // jobs that nobody waits for
	Checks          map[string]Posted `json:"checks,omitempty"`   // by name@sha
	Comment         Posted            `json:"comment"`
	AnnouncedDigest string            `json:"announced_digest,omitempty"` // what pull requests with the same head know of this one
	NeedsPublish    bool              `json:"needs_publish,omitempty"`    // GitHub does not show everything yet
	Republish       bool              `json:"republish,omitempty"`        // nor need it show what was published: all of it is written again
}

// A Phase is how far a run is.
type Phase string

const (
	Queued    Phase = "queued"
	Running   Phase = "running"
	Done      Phase = "done"
	Abandoned Phase = "abandoned" // superseded or cancelled
)

// A Run is one attempt at one kernel of one head.
type Run struct {
	KernelSpec
	Head    string    `json:"head"`
	Job     string    `json:"job"`
	Attempt int       `json:"attempt"`
	Phase   Phase     `json:"phase"`
	Token   uint64    `json:"token,omitempty"`
	Runner  string    `json:"runner,omitempty"`
	Builds  bool      `json:"builds,omitempty"` // the runner compiles it, and measures nothing
	Asked   time.Time `json:"asked"`
	Begun   time.Time `json:"begun"`
	Ended   time.Time `json:"ended"`
	Result  *Result   `json:"result,omitempty"`
	// Compiled is the outcome of the build stage; nil before it ends, and where there is none.
	Compiled *Compiled `json:"compiled,omitempty"`
	// ExtraRun is a measurement that somebody asked for in addition to the policy's; nil for a run in line.
	ExtraRun *grammar.Rebench `json:"extra_run,omitempty"`
	// OnlyExplain says that the extra run profiles both sides, on the shapes of ExtraRun, and measures nothing.
	OnlyExplain bool `json:"only_explain,omitempty"`
	// Search is the request of a search, and Command is the id of the command that made the request. For
	// every other run they are nil and "".
	Search  *grammar.Request `json:"search,omitempty"`
	Command string           `json:"command,omitempty"`
	Replied int64            `json:"replied,omitempty"` // the comment that holds the report of a search
}

// Same tells whether both are of the same kernel on the same device. What a comment remembers of a
// run may have no folder.
func (r Run) Same(other Run) bool {
	if r.Folder == "" || other.Folder == "" {
		return r.Name == other.Name
	}
	return r.Key() == other.Key()
}

// Count is which attempt it was: at its head or, where its machine code was
// measured for another head too, at that.
func (r Run) Count() int {
	if r.Result == nil {
		return r.Attempt
	}
	return max(r.Attempt, r.Result.Attempt)
}

// ReportID names the comment with the report of a search, as the id of a command names the reply to the
// command. It is "" for every other run.
func (r Run) ReportID() string {
	if r.Search == nil {
		return ""
	}
	return r.Command + "-report"
}

// BotSearch is the prefix of the id of a search that the bot itself started.
const BotSearch = "bot-"

// Reports tells whether there is a report that GitHub does not show yet. A command from a button and a
// search that the bot started get no comment with a report.
func (r Run) Reports() bool {
	aside := strings.HasPrefix(r.Command, "button-") || strings.HasPrefix(r.Command, BotSearch)
	return r.Search != nil && r.Phase == Done && r.Result != nil && r.Replied == 0 && !aside
}

// Unfinished tells whether a runner is still needed.
func (r Run) Unfinished() bool { return r.Phase == Queued || r.Phase == Running }

// A Command is one that somebody gave, and what became of it.
type Command struct {
	Asked
	When     time.Time `json:"when"`
	Answered bool      `json:"answered,omitempty"`
	OK       bool      `json:"ok,omitempty"`
	Answer   Answer    `json:"answer,omitzero"`
	Replied  int64     `json:"replied,omitempty"` // the comment that holds the reply
}

// New is a change before its first event.
func New(id ID) *State { return &State{ID: id} }

// PlanKey names the facts that a plan depends on.
func (f Facts) PlanKey() string {
	var text []byte
	add := func(words ...string) {
		for _, w := range words {
			text = append(strconv.AppendQuote(text, w), ' ')
		}
	}
	add(f.Head, f.Base, f.BaseSHA, f.Title, f.Rules, strconv.FormatBool(f.Draft), strconv.Itoa(len(f.Labels)))
	add(f.Labels...)
	for _, m := range f.Members {
		add(strconv.Itoa(m.Number), m.Head, m.Title, strconv.FormatBool(m.Draft), strconv.Itoa(len(m.Labels)))
		add(m.Labels...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Same tells whether nothing but the time differs.
func (f Facts) Same(other Facts) bool {
	f.Updated, other.Updated = time.Time{}, time.Time{}
	a, errA := json.Marshal(f)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && string(a) == string(b)
}

// NeedsPlan tells whether the facts have moved on from the plan. A change that is closed
// needs none, and one without a base branch can have none.
func (s *State) NeedsPlan() bool {
	return s.Facts.Open && !s.Facts.BaseGone && (s.Plan == nil || s.Plan.Key != s.Facts.PlanKey())
}

// Current is the plan, if it is one of the facts as they are.
func (s *State) Current() *Plan {
	if s.Plan == nil || s.Plan.Key != s.Facts.PlanKey() {
		return nil
	}
	return s.Plan
}

// Held tells whether the head waits for somebody's approval: code from a fork
// reaches no runner without. While it is not known what the base asks, it waits.
func (s *State) Held() bool {
	if !s.Facts.Fork {
		return false
	}
	now, known := s.Scope()
	return !known || s.Plan.NeverForks() || !s.approved(now)
}

func (s *State) approved(of Scope) bool {
	return slices.ContainsFunc(s.Approved, func(a ForkApproved) bool { return a.For == of })
}

// ApprovedHeads is the commits of a fork that may be run for the base as it is.
func (s *State) ApprovedHeads() []string {
	var heads []string
	if now, known := s.Scope(); known {
		for _, a := range s.Approved {
			if a.For.Base == now.Base && a.For.Rules == now.Rules {
				heads = append(heads, a.For.Head)
			}
		}
	}
	return heads
}

// Overridden is the override that holds now, if there is one.
func (s *State) Overridden() *Override {
	if s.Override != nil && s.holds(s.Override.For) {
		return s.Override
	}
	return nil
}

// Wanted is the jobs that should be in the queue or at a runner.
func (s *State) Wanted() []Run {
	if s.Held() || s.Current() == nil || !s.Facts.Open || s.Facts.BaseGone {
		return nil
	}
	return slices.DeleteFunc(slices.Concat(s.Runs, s.ExtraRuns, s.Searches), func(r Run) bool { return !r.Unfinished() })
}

// Unanswered is the commands that nobody has looked at.
func (s *State) Unanswered() []Command {
	return slices.DeleteFunc(slices.Clone(s.Commands), func(c Command) bool { return c.Answered })
}

// Asked tells whether a command is known, or was before it was forgotten.
func (s *State) Asked(a Asked) bool {
	return a.Comment != 0 && a.Comment <= s.CommandsUpTo[a.On] || slices.ContainsFunc(s.Commands, func(c Command) bool { return c.ID == a.ID })
}

// Settled tells whether there is nothing to do but wait for GitHub, a person or
// nobody. A change that waits for a runner is not settled.
func (s *State) Settled() bool {
	return !s.NeedsPublish && !s.NeedsPlan() && len(s.Dropping) == 0 && len(s.Unanswered()) == 0 && len(s.Wanted()) == 0
}

// Run finds the run of a job: in line, extra or a search.
func (s *State) Run(job string) (Run, bool) {
	if r := s.find(job); r != nil {
		return *r, true
	}
	return Run{}, false
}

func (s *State) find(job string) *Run {
	for _, list := range [][]Run{s.Runs, s.ExtraRuns, s.Searches} {
		if i := slices.IndexFunc(list, func(r Run) bool { return r.Job == job }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// kernelIndex is the index of the run in line with a key, or -1.
func (s *State) kernelIndex(key KernelKey) int {
	return slices.IndexFunc(s.Runs, func(r Run) bool { return r.Key() == key })
}

// Meant is the runs in line that a word of a command may mean: those of the kernel in that folder
// or, where there is none, those of kernels of that name.
func (s *State) Meant(word string) []Run {
	if runs := s.OfKernel(word); len(runs) > 0 {
		return runs
	}
	return slices.DeleteFunc(slices.Clone(s.Runs), func(r Run) bool { return r.ManifestName() != word && r.Name != word })
}

// CheckKey is the name under which a check is remembered.
func CheckKey(name, sha string) string { return name + "@" + sha }

// splitCheckKey is the name and the commit of a check's key.
func splitCheckKey(key string) (name, sha string) {
	at := strings.LastIndex(key, "@")
	return key[:max(at, 0)], key[at+1:]
}

// ChecksOf is what was posted for a commit.
func (s *State) ChecksOf(sha string) []Posted {
	var all []Posted
	for key, posted := range s.Checks {
		if _, of := splitCheckKey(key); of == sha {
			all = append(all, posted)
		}
	}
	return all
}

// Clone is a copy that shares nothing which Apply changes.
func (s *State) Clone() *State {
	c := *s
	c.Runs, c.ExtraRuns, c.Past = slices.Clone(s.Runs), slices.Clone(s.ExtraRuns), slices.Clone(s.Past)
	c.Searches = slices.Clone(s.Searches)
	c.Approved, c.Commands, c.Dropping = slices.Clone(s.Approved), slices.Clone(s.Commands), slices.Clone(s.Dropping)
	c.Voided = slices.Clone(s.Voided)
	c.Checks, c.CommandsUpTo = maps.Clone(s.Checks), maps.Clone(s.CommandsUpTo)
	return &c
}
