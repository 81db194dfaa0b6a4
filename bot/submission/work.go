package submission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// Names of the files that a token may read of its submissions.
const (
	ReportFile = "answer.md"
	LogFile    = "build.log"
)

// work takes one submission to its result.
func (s *Service) work(ctx context.Context, one *Submission) error {
	s.machine.Lock()
	defer s.machine.Unlock()
	s.log.Info("measuring a submission", "handle", one.Handle, "kernel", one.Kernel, "intent", one.Intent)
	rec := &record{s: s, claim: claim{Handle: one.Handle, Token: one.Token, Kernel: one.Kernel, At: s.opt.Now().UTC()}}
	rec.claim.Day = dayOf(rec.claim.At)
	opt := s.opt
	opt.Head, opt.Kernels, opt.Results = one.Head, []string{one.Asked.Kernel}, filepath.Join(s.dir, one.Handle, "run")
	opt.Prepare = func(job *runners.Job) {
		if one.Intent == result.Probe {
			job.Policy = job.Policy.Probe()
			return
		}
		rec.job, rec.gate = *job, job.Rule().Gates.Performance
		job.Record = rec
	}
	var got *check.Result
	err := check.Run(ctx, opt, progress{s}, func(r check.Result) error {
		got = &r
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	done := one.clone()
	done.State, done.Ended = Done, s.opt.Now().UTC()
	s.conclude(done, got, err, rec)
	if err := s.writeAnswer(done, got); err != nil {
		return err
	}
	if err := s.store(done); err != nil {
		return err
	}
	s.change(func() { *one = *done })
	return nil
}

// conclude fills in the result.
func (s *Service) conclude(done *Submission, got *check.Result, err error, rec *record) {
	failed := func(outcome gates.Outcome, reason gates.Reason, text string) {
		done.Result = &result.Result{Schema: result.Schema, Kernel: done.Kernel, Outcome: outcome, Reason: reason, Summary: text, Blocks: true, Head: done.Head}
	}
	switch {
	case err != nil:
		text := "The submission could not be judged: " + err.Error()
		if bad := (usage.Error{}); errors.As(err, &bad) {
			failed(gates.Defer, gates.ReasonBuild, text)
		} else {
			failed(gates.Error, gates.ReasonRunner, text)
		}
	case got == nil || got.Verdict == nil:
		failed(gates.Error, gates.ReasonSetup, "This host does not measure the kernel.")
		if got != nil && got.LeftOut != "" {
			done.Result.Summary = "This host does not measure the kernel: " + got.LeftOut
		}
	case rec.spent:
		failed(gates.Defer, result.ReasonBudget, "Nothing was measured: the error rate of today is spent for this kernel.")
		done.Result.ToPass = []string{advice}
	case done.Intent == result.Probe:
		done.Result = result.Probed(got.Verdict, got.Evidence)
	default:
		done.Result = result.Redacted(got.Verdict, got.Evidence)
	}
	done.Result.Intent = done.Intent
	if got != nil && got.Verdict != nil {
		done.Folder = got.Dir
		done.Result.Evidence = URI(done.Handle, "report")
		done.Why = whyOf(done, result.Redact(got.Verdict, got.Evidence))
	}
	if done.Intent == result.Claim && rec.job.Manifest != nil {
		all, err := s.claims.read()
		if err == nil {
			done.Result.Budget = budgetOf(all, rec.claim, rec.gate)
		}
	}
}

// URI names a resource of a submission: report or log.
func URI(handle, what string) string { return "kernelgate://submissions/" + handle + "/" + what }

// writeAnswer writes the report that the author of a submission may read.
func (s *Service) writeAnswer(done *Submission, got *check.Result) error {
	text := done.Result.Text()
	if done.Intent == result.Claim && got != nil && got.Verdict != nil && done.Result.Reason != result.ReasonBudget {
		text = report.Markdown(result.Redact(got.Verdict, got.Evidence), report.Options{})
	}
	dir := filepath.Join(s.dir, done.Handle)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("storing the answer: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ReportFile), []byte(text), 0o600); err != nil {
		return fmt.Errorf("storing the answer: %w", err)
	}
	log := ""
	if got != nil {
		log = got.BuildLog
	}
	if err := os.WriteFile(filepath.Join(dir, LogFile), []byte(log), 0o600); err != nil {
		return fmt.Errorf("storing the answer: %w", err)
	}
	return nil
}

// File reads the report or the build log of a submission.
func (s *Service) File(token, handle, name string) (string, error) {
	one, err := s.of(token, handle)
	if err != nil {
		return "", err
	}
	if one.State != Done {
		return "", usage.Errorf("submission %s is not finished (it is %s)", handle, one.State)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, handle, name))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return string(text), nil
}

// Verdict returns the result of a submission that is done.
func (s *Service) Verdict(token, handle string) (*result.Result, error) {
	one, err := s.of(token, handle)
	if err != nil {
		return nil, err
	}
	if one.State != Done {
		return nil, usage.Errorf("submission %s is %s: ask for its status until it is done", handle, one.State)
	}
	return one.Result, nil
}

// Why explains the result of a submission that is done.
func (s *Service) Why(token, handle string) (*Why, error) {
	one, err := s.of(token, handle)
	switch {
	case err != nil:
		return nil, err
	case one.State != Done:
		return nil, usage.Errorf("submission %s is %s: ask for its status until it is done", handle, one.State)
	case one.Why == nil:
		return &Why{Handle: handle, Text: one.Result.Summary}, nil
	}
	return one.Why, nil
}
