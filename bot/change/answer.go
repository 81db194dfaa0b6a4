package change

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// An Answer is what the bot says to a command, as facts: its kind, and the values of that kind. Package present writes the
// sentences, so that a stored answer has no wording.
type Answer struct {
	Kind AnswerKind `json:"kind,omitempty"`

	Command string      `json:"command,omitempty"`
	Needs   policy.Role `json:"needs,omitempty"`
	Has     policy.Role `json:"has,omitempty"`
	SHA     string      `json:"sha,omitempty"`  // that the command names
	Head    string      `json:"head,omitempty"` // when it was answered
	Base    string      `json:"base,omitempty"` // the same
	Word    string      `json:"word,omitempty"` // of the command, for a kernel
	Kernels []string    `json:"kernels,omitempty"`
	Devices []string    `json:"devices,omitempty"` // that the kernels have runs on
	Decided []string    `json:"decided,omitempty"` // kernels whose earlier rounds have decided
	Busy    []string    `json:"busy,omitempty"`    // kernels that are queued or being measured

	RulesWait bool             `json:"rules_wait,omitempty"` // for an approval of what the change does to them
	Workflow  bool             `json:"workflow,omitempty"`   // kernelgate runs as a workflow
	Roles     *policy.Commands `json:"roles,omitempty"`      // that commands need
	Rules     *AppliedRules    `json:"rules,omitempty"`
	Reasons   []Reasons        `json:"reasons,omitempty"`
	// Quote is the message of another package about a request that it cannot serve, such as the planner's.
	Quote string `json:"quote,omitempty"`
}

// Reasons is why one kernel became faster or slower, from stored evidence.
type Reasons struct {
	Kernel string      `json:"kernel"`
	Shapes []gates.Why `json:"shapes"`
}

// AppliedRules is a policy with the kernels that its rules apply to.
type AppliedRules struct {
	File    string          `json:"file"`
	Policy  string          `json:"policy"` // its text
	Change  policy.Change   `json:"change"` // without kernel and paths
	Kernels []AppliedKernel `json:"kernels"`
}

// An AppliedKernel is one kernel of a change, in what a rule may ask of it.
type AppliedKernel struct {
	Name  string   `json:"name"` // in its manifest
	Paths []string `json:"paths,omitempty"`
}

// An AnswerKind says which answer it is. Its comment names the fields that it has.
type AnswerKind string

// Answers to any command.
const (
	AnswerMisread     AnswerKind = "misread" // the mistake is the request's
	AnswerNoCommand   AnswerKind = "no_command"
	AnswerRole        AnswerKind = "role"        // Command, Needs, Has
	AnswerUnavailable AnswerKind = "unavailable" // Command
	AnswerBaseGone    AnswerKind = "base_gone"
	AnswerHeadMoved   AnswerKind = "head_moved" // Head
	AnswerBaseMoved   AnswerKind = "base_moved" // Base
	AnswerRulesMoved  AnswerKind = "rules_moved"
	AnswerNotHead     AnswerKind = "not_head" // Command, SHA, Head
	AnswerHelp        AnswerKind = "help"     // Roles, Workflow
)

// Answers to /explain.
const (
	AnswerExplainNoBase    AnswerKind = "explain_no_base"
	AnswerExplainUnread    AnswerKind = "explain_unread"
	AnswerExplainRefused   AnswerKind = "explain_refused"
	AnswerExplainMistakes  AnswerKind = "explain_mistakes"
	AnswerExplainNoPolicy  AnswerKind = "explain_no_policy"
	AnswerExplainNoKernel  AnswerKind = "explain_no_kernel"
	AnswerExplainedByRules AnswerKind = "explained" // Rules
)

// Answers to /override, /ok-to-test, /cancel and /approve-policy.
const (
	AnswerOverridden     AnswerKind = "overridden" // Head, RulesWait
	AnswerNoFork         AnswerKind = "no_fork"
	AnswerNeverForks     AnswerKind = "never_forks"
	AnswerForkWaits      AnswerKind = "fork_waits"    // Head
	AnswerForkApproved   AnswerKind = "fork_approved" // Head
	AnswerNothingRuns    AnswerKind = "nothing_runs"
	AnswerCancelled      AnswerKind = "cancelled"
	AnswerUnread         AnswerKind = "unread"
	AnswerRulesUnchanged AnswerKind = "rules_unchanged"
	AnswerRulesTightened AnswerKind = "rules_tightened"
	AnswerOwnChange      AnswerKind = "own_change"
	AnswerOwnPush        AnswerKind = "own_push"       // Head
	AnswerPusherUnknown  AnswerKind = "pusher_unknown" // Head
	AnswerRulesApproved  AnswerKind = "rules_approved" // Head
)

// Answers to /rebench.
const (
	AnswerPlanMistakes   AnswerKind = "plan_mistakes"
	AnswerNoKernel       AnswerKind = "no_kernel" // Workflow: the verdict is written again
	AnswerWorkflowAsks   AnswerKind = "workflow_asks"
	AnswerUnknownKernel  AnswerKind = "unknown_kernel"  // Word, Kernels
	AnswerUnknownDevice  AnswerKind = "unknown_device"  // Word, Devices
	AnswerSeveralKernels AnswerKind = "several_kernels" // Word, Kernels: their folders
	AnswerKernelGone     AnswerKind = "kernel_gone"
	AnswerNoProfile      AnswerKind = "no_profile"
	AnswerSpent          AnswerKind = "spent"       // Kernels: the one, Quote
	AnswerRemeasuring    AnswerKind = "remeasuring" // Kernels
	AnswerBusy           AnswerKind = "busy"        // Busy
	AnswerMoreRounds     AnswerKind = "more_rounds" // Decided, Busy
	AnswerExtraRun       AnswerKind = "extra_run"
	AnswerCannotServe    AnswerKind = "cannot_serve" // Quote
)

// Answers to /why, in addition to those to /rebench.
const (
	AnswerReasons     AnswerKind = "reasons"       // Reasons, Kernels: those that are profiled now, Busy
	AnswerWhyNeedsRun AnswerKind = "why_needs_run" // Kernels: those without evidence, Needs, Has, Reasons
)

// Answers to /tune and /bisect, in addition to those to /rebench.
const (
	AnswerTuning      AnswerKind = "tuning"       // Kernels: the one
	AnswerBisecting   AnswerKind = "bisecting"    // Kernels: the one
	AnswerWhichKernel AnswerKind = "which_kernel" // Command, Kernels
	AnswerSearchRuns  AnswerKind = "search_runs"  // Command, Kernels: the one
)
