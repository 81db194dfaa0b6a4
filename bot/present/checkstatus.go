package present

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A checkStatus is where a change or one of its kernels is: once for the check, the
// comment and the status, so that no two can contradict each other.
type checkStatus struct {
	sign               string
	title              string // plain
	heading            string // plain; the title where nothing else is said
	lead               string // Markdown, in paragraphs; may be empty
	status, conclusion string
	faulty             bool // the runner could not judge it
	refused            bool // nobody can let it pass but by an override
	untouched          bool // it changes no kernel
}

func newCheckStatus(sign, status, conclusion, title, lead string) checkStatus {
	if lead != "" {
		lead += "\n"
	}
	title = report.Clip(report.Plain(title), titleRunes)
	return checkStatus{sign: sign, title: title, heading: title, lead: lead, status: status, conclusion: conclusion}
}

// state is that of a commit status. A required status blocks until it is a success, so that
// what waits for a person is pending, and what nobody works at is an error.
func (at checkStatus) state() string {
	switch {
	case at.status != completed:
		return "pending"
	case at.conclusion == success:
		return "success"
	case at.conclusion == actionRequired && !at.refused:
		return "pending"
	case at.conclusion == cancelled, at.faulty:
		return "error"
	}
	return "failure"
}

// whole is what a check's title was too short for.
func (at checkStatus) whole() string {
	if !strings.HasSuffix(at.title, "…") || len(at.heading) <= len(at.title) {
		return ""
	}
	return at.sign + " **" + report.EscapeProse(at.heading) + "**\n"
}

const (
	signPass      = "✅"
	signFail      = "❌"
	signUnsure    = "❓"  // measured, and not decided
	signWaits     = "⏸️" // for somebody
	signError     = "⚠️"
	signInform    = "ℹ️"
	signWorking   = "⏳"
	signCancelled = "🚫"
)

// overall is what the required check says.
func (v View) overall() checkStatus { return v.worst(v.own()) }

// own is how the change stands by itself: by its kernels, and by what it does to the rules
// themselves, which no override covers.
func (v View) own() checkStatus {
	if v.State.Facts.Open && v.State.Facts.BaseGone {
		return v.baseGone()
	}
	return v.withVoided(v.withRules(v.ofKernels()))
}

// baseGone is a pull request to a branch that does not exist. No override lets it pass: what
// it would be merged into is not known.
func (v View) baseGone() checkStatus {
	base := report.Clip(report.Plain(v.State.Facts.Base), nameRunes)
	code := report.EscapeCode(base)
	lead := fmt.Sprintf("There is no branch %s in this repository. Its policy and its kernels decide how this change is judged, so there is no verdict now.\n\n"+
		"Choose a different base branch (*Edit* next to the title), or push %s again. The bot then continues.", code, code)
	if len(v.State.Runs) > 0 {
		lead += " The figures below were measured while the branch existed."
	}
	return newCheckStatus(signWaits, completed, actionRequired, "The base branch "+base+" is gone", lead)
}

// ofKernels is what the gates lead to, unless somebody has overridden them.
func (v View) ofKernels() checkStatus {
	own := v.judged()
	o := v.override()
	if o == nil || own.conclusion == success {
		return own
	}
	lead := fmt.Sprintf("For this commit only%s: %s\n\nWithout the override: %s %s.",
		when(o.At), report.Escape(report.Clip(report.Plain(o.Reason), 500)), own.sign, clause(own.heading))
	at := newCheckStatus(signPass, completed, success, "Overridden by @"+o.By+": "+o.Reason, lead)
	at.heading = report.Clip(report.Plain("Overridden by @"+o.By), titleRunes) // the reason follows
	return at
}

// judged is what the gates alone lead to.
func (v View) judged() checkStatus {
	s, plan := v.State, v.plan()
	switch {
	case plan == nil && !s.Facts.Open:
		return newCheckStatus(signCancelled, completed, cancelled, closedTitle(s), "Nothing was measured.")
	case plan == nil:
		return newCheckStatus(signWorking, inProgress, "", readingTitle, "The bot is finding out which kernels changed, and what the policy asks of them.")
	case plan.UnknownMembers:
		return unknownMembers()
	case plan.Refused:
		return refused(plan)
	case len(plan.Problems) > 0:
		return mistakes(plan)
	case plan.NoPolicy:
		return v.noPolicy(plan)
	case len(s.Runs) == 0:
		at := newCheckStatus(signPass, completed, success, "No kernel changed", "This change touches no file of a kernel: there is nothing to measure.")
		at.untouched = true
		return at
	}
	return v.together()
}

// mistakes keeps everything from being measured: what is asked is not known.
func mistakes(plan *change.Plan) checkStatus {
	title := "A manifest has mistakes"
	if slices.ContainsFunc(plan.Problems, func(p gates.Diagnostic) bool { return p.File == plan.PolicyFile }) {
		title = "The policy has mistakes"
	}
	return newCheckStatus(signFail, completed, failure, title+": "+place(plan.Problems[0]), problems(plan, "mistakes")+
		"\nNothing was measured. Policy and manifests are read from the base branch: fix this there, then update this branch.")
}

// unknownMembers is a merge group with commits of a pull request that nobody knows. Whose rules and whose
// decisions apply to them is not known either.
func unknownMembers() checkStatus {
	return newCheckStatus(signFail, completed, failure, "The merge group contains commits of an unknown pull request",
		"GitHub's merge queue does not name a pull request for every commit of this group, and its commits do not show one either. Nothing was measured.\n\n"+
			"Remove the pull requests from the queue and add them again. If this does not help, the operator of the bot checks that the App has the permission to read merge queues.")
}

// refused is a change that holds more than is read of one: nothing is known about its
// kernels, so it cannot pass.
func refused(plan *change.Plan) checkStatus {
	return newCheckStatus(signFail, completed, failure, "The change is too large to read", problems(plan, "reasons")+
		"\nNothing was measured. Every change is read before anyone has approved it, so its size is limited.")
}

// problems lists a plan's, each with its place if it has one.
func problems(plan *change.Plan, what string) string {
	items := make([]string, len(plan.Problems))
	for i, p := range plan.Problems {
		items[i] = "- "
		if p.File != "" {
			items[i] += report.EscapeCode(place(p)) + ": "
		}
		items[i] += report.EscapeProse(report.Clip(p.Message, 1000))
	}
	return foldOverflow(items, leadRoom, what)
}

// leadRoom is for what must be read before anything else.
const leadRoom = 1500

func place(p gates.Diagnostic) string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return p.File
}

func (v View) noPolicy(plan *change.Plan) checkStatus {
	lead := fmt.Sprintf("The base branch has no %s, so nothing is asked of this change.", report.EscapeCode(cmp.Or(plan.PolicyFile, "policy")))
	if len(v.State.Runs) > 0 {
		lead += " The verdict by this change's policy is shown for information."
	}
	if v.waits() {
		lead += "\n\n" + v.held().lead
	}
	return newCheckStatus(signInform, completed, success, noPolicyTitle, strings.TrimRight(lead, "\n"))
}

// waits tells whether something could be measured if somebody approved it.
func (v View) waits() bool {
	return v.State.Facts.Open && v.State.Held() && slices.ContainsFunc(v.State.Runs, change.Run.Awaited)
}

// held is a fork's commit that nobody has approved.
func (v View) held() checkStatus {
	plan := v.plan()
	if plan.NeverForks() {
		at := newCheckStatus(signWaits, completed, actionRequired, "Code from forks is not run here",
			"This commit comes from a fork, and the policy never runs code from forks. Push the branch to this repository, or ask a maintainer to comment "+
				"`/override` with the reason.")
		at.refused = true
		return at
	}
	role := plan.Commands().OKToTest
	return newCheckStatus(signWaits, completed, actionRequired, fmt.Sprintf("A fork's commit: waits for /ok-to-test by someone with %s access", role),
		fmt.Sprintf("This commit comes from a fork, and its code runs only after an approval: someone with %s access reads it, then comments %s. "+
			"A new push needs a new approval.", report.EscapeCode(string(role)), report.EscapeCode("/ok-to-test "+v.State.Facts.Head)))
}

// together sums up the runs of all kernels.
func (v View) together() checkStatus {
	runs := v.deciding()
	if len(runs) == 1 {
		at := v.ofRun(runs[0])
		if at.status == queued {
			at.status = inProgress // as it was while the change was read
		}
		return at
	}
	var passed, unenforced, deferred, faulty, unfinished, abandoned []change.Run
	for _, r := range runs {
		switch {
		case r.Unfinished() && v.State.Facts.Open:
			unfinished = append(unfinished, r)
		case r.Phase != change.Done:
			abandoned = append(abandoned, r)
		case outcome(r) == gates.Pass:
			passed = append(passed, r)
		case !r.Result.Blocks():
			unenforced = append(unenforced, r)
		case outcome(r) == gates.Defer:
			deferred = append(deferred, r)
		default:
			faulty = append(faulty, r)
		}
	}
	of := func(some []change.Run) string { return fmt.Sprintf("%d of %d %s", len(some), len(runs), v.noun()) }
	switch {
	case v.waits():
		return v.held()
	case len(unfinished) > 0:
		title := fmt.Sprintf("Measuring: %d of %d %s done", len(runs)-len(unfinished), len(runs), v.noun())
		if len(deferred) > 0 {
			title += fmt.Sprintf(", %d deferred", len(deferred))
		}
		if len(faulty) > 0 {
			title += fmt.Sprintf(", %d without a verdict", len(faulty))
		}
		if lacking := v.lacking(unfinished); len(lacking) > 0 {
			title += "; no runner for " + strings.Join(lacking, ", ")
		}
		return newCheckStatus(signWorking, inProgress, "", title, "")
	case len(deferred) > 0:
		title := fmt.Sprintf("DEFER: %s (%s)", of(deferred), reasons(deferred))
		if len(faulty) > 0 {
			title += fmt.Sprintf("; the runner failed on %d more", len(faulty))
		}
		sign := signUnsure
		if slices.ContainsFunc(deferred, func(r change.Run) bool { return v.done(r).sign == signFail }) {
			sign = signFail
		}
		return newCheckStatus(sign, completed, failure, title, "")
	case len(faulty) > 0:
		at := newCheckStatus(signError, completed, failure, fmt.Sprintf("%s%s could not be judged (%s)", runnerTitle, of(faulty), reasons(faulty)), "")
		at.faulty = true
		return at
	case len(abandoned) > 0:
		return v.stopped()
	}
	if len(unenforced) > 0 {
		sign, word := signInform, policy.EnforceShadow
		if slices.ContainsFunc(unenforced, func(r change.Run) bool { return enforce(r) == policy.EnforceWarn }) {
			sign, word = signError, policy.EnforceWarn
		}
		title := fmt.Sprintf("%s: %s would not pass (%s)", word, of(unenforced), reasons(unenforced))
		if len(passed) > 0 {
			title += fmt.Sprintf("; %s PASS", of(passed))
		}
		return newCheckStatus(sign, completed, success, title, "The rules of these kernels do not block, so the check succeeds.")
	}
	return newCheckStatus(signPass, completed, success, v.allPassed(passed), "")
}

// reasons names the first few kernels, and why.
func reasons(runs []change.Run) string {
	var words []string
	for i, r := range runs {
		if i == 3 {
			words = append(words, "…")
			break
		}
		word := r.Name
		if r.Result != nil && r.Result.Reason != "" && r.Result.Reason != gates.ReasonRunner {
			word += ": " + string(r.Result.Reason)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}
