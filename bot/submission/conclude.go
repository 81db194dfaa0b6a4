package submission

import (
	"context"
	"errors"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// Names of the files that a token may read of its submissions.
const (
	ReportFile = "answer.md"
	LogFile    = "build.log"
)

// An outcome is what became of a submission where it was measured.
type outcome struct {
	got   *check.Result // nil if there is none
	err   error         // why there is none
	spent bool          // the budget of the owner was spent
	gate  *policy.PerformanceGate
}

// conclude returns a submission with its result.
func (s *Service) conclude(ctx context.Context, one *Submission, o outcome) *Submission {
	done := new(*one)
	done.State, done.Ended = Done, s.clock().UTC()
	failed := func(outcome gates.Outcome, reason gates.Reason, text string) {
		done.Result = &result.Result{Schema: result.Schema, Kernel: done.Kernel, Outcome: outcome, Reason: reason, Summary: text, Blocks: true, Head: done.Head}
	}
	got := o.got
	switch {
	case o.spent:
		failed(gates.Defer, result.ReasonBudget, "Nothing was measured: the error rate of today is spent for this kernel.")
		done.Result.ToPass = []string{advice}
	case o.err != nil:
		text := "The submission could not be judged: " + o.err.Error()
		if bad := (usage.Error{}); errors.As(o.err, &bad) {
			failed(gates.Defer, gates.ReasonBuild, text)
		} else {
			failed(gates.Error, gates.ReasonRunner, text)
		}
	case got == nil || got.Verdict == nil:
		failed(gates.Error, gates.ReasonSetup, "This host does not measure the kernel.")
		if got != nil && got.LeftOut != "" {
			done.Result.Summary = "This host does not measure the kernel: " + got.LeftOut
		}
	case done.Intent == result.Probe:
		done.Result = result.Probed(got.Verdict, got.Evidence)
	default:
		done.Result = result.Redacted(got.Verdict, got.Evidence)
	}
	done.Result.Intent = done.Intent
	if !o.spent && got != nil && got.Verdict != nil {
		done.Folder = got.Dir
		done.Result.Evidence = URI(done.Handle, "report")
		done.Why = whyOf(done, result.Redact(got.Verdict, got.Evidence))
	}
	if done.Intent == result.Claim {
		list, err := s.place.claims(ctx, done)
		if err == nil {
			done.Result.Budget = budgetOf(list.all, claimOf(done, done.Ended), o.gate)
		}
	}
	return done
}

// URI names a resource of a submission: report or log.
func URI(handle, what string) string { return "kernelgate://submissions/" + handle + "/" + what }

// answer is the report that the author of a submission may read.
func (o outcome) answer(done *Submission) string {
	if done.Intent == result.Claim && done.Why != nil {
		return report.Markdown(result.Redact(o.got.Verdict, o.got.Evidence), report.Options{})
	}
	return done.Result.Text()
}

// log is what the compilers said.
func (o outcome) log() string {
	if o.got == nil {
		return ""
	}
	return o.got.BuildLog
}
