package submission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/verify"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// A Hosted hears of the jobs of submissions, as the controller hears of those of changes. It is a
// fleet.Results. Everything is read from the journal, because a runner may go on after a change of the leader.

// unfinished is the submission of a job. One that nobody waits for has no result.
func (h *Hosted) unfinished(ctx context.Context, job string) (*Submission, error) {
	if !IsSubmission(job) {
		return nil, fmt.Errorf("job %s: %w", job, jobs.ErrCancelled)
	}
	one, err := h.read(ctx, job)
	if err == nil && one != nil {
		err = h.enter(ctx, one.Token) // claims are compared with earlier ones
	}
	switch {
	case err != nil:
		return nil, err
	case one == nil:
		return nil, fmt.Errorf("job %s: %w", job, jobs.ErrCancelled)
	case one.State == Done:
		h.done(one) // perhaps another bot has ended it
		return one, fmt.Errorf("job %s: %w", job, jobs.ErrLeaseLost)
	}
	return one, nil
}

// Started notes that a runner has a job.
func (h *Hosted) Started(ctx context.Context, job string, _ uint64, _ fleet.Runner) error {
	one, err := h.unfinished(ctx, job)
	if err != nil {
		return err
	}
	h.Progress(job, runners.Event{Text: "starting"})
	h.log.Info("measuring a submission", "submission", one.id(), "kernel", one.Kernel, "intent", one.Intent)
	return nil
}

// Progress keeps the last event of a job.
func (h *Hosted) Progress(job string, e runners.Event) {
	h.mu.Lock()
	var of *Submission
	for _, one := range h.all {
		if one.State != Done && subjectOf(one) == job {
			one.State, of = Running, one
		}
	}
	h.mu.Unlock()
	if of != nil {
		h.progressed(of.id(), e)
	}
}

// jobOf is the job that was packed for a submission.
func (h *Hosted) jobOf(ctx context.Context, one *Submission) (runners.Job, error) {
	r, _, err := h.Bundles.Get(ctx, one.Work.Bundle)
	if err != nil {
		return runners.Job{}, err
	}
	defer r.Close()
	return bundle.Peek(r)
}

// Earlier counts a claim by its machine code, and returns what an earlier claim of the same code has left.
// A claim without budget ends here, before anything is measured.
func (h *Hosted) Earlier(ctx context.Context, job string, _ uint64, c runners.Code) (protocol.PriorEvidence, error) {
	one, err := h.unfinished(ctx, job)
	if err != nil || one.Intent != result.Claim {
		return protocol.PriorEvidence{}, err
	}
	rec, err := h.record(ctx, one)
	if err != nil {
		return protocol.PriorEvidence{}, err
	}
	found, err := rec.Earlier(ctx, c)
	if rec.spent {
		if err := h.finish(ctx, one, "", 0, outcome{spent: true, gate: rec.gate}); err != nil {
			return protocol.PriorEvidence{}, err
		}
		if _, err := h.Queue.Cancel(ctx, job); err != nil {
			h.log.Warn("the job of a claim without budget stays in the queue", "submission", one.id(), "err", err)
		}
		return protocol.PriorEvidence{}, fmt.Errorf("job %s: %w", job, jobs.ErrCancelled)
	}
	if err != nil {
		return protocol.PriorEvidence{}, err
	}
	answer := protocol.PriorEvidence{Head: found.Head, Again: found.Again}
	if found.Evidence != nil {
		answer.Evidence, err = json.Marshal(found.Evidence)
	}
	return answer, err
}

func (h *Hosted) record(ctx context.Context, one *Submission) (*record, error) {
	job, err := h.jobOf(ctx, one)
	if err != nil {
		return nil, err
	}
	return &record{s: h.Service, one: one, at: h.clock(), job: job, gate: job.Rule().Gates.Performance}, nil
}

// Begin returns the attempt that Earlier has counted. A probe spends nothing.
func (h *Hosted) Begin(ctx context.Context, job string, _ uint64, c runners.Code) (runners.Attempt, error) {
	one, err := h.unfinished(ctx, job)
	if err != nil {
		return runners.Attempt{}, err
	}
	if one.Intent != result.Claim {
		return runners.Attempt{Number: 1, CodeNumber: 1}, nil
	}
	rec, err := h.record(ctx, one)
	if err != nil {
		return runners.Attempt{}, err
	}
	_, attempt, err := h.counted(ctx, one, rec.job, c)
	if err == nil && attempt.Number == 0 {
		err = errors.New("the claim was not counted")
	}
	return attempt, err
}

// counted is the claims of the kernel, and the attempt of this claim at the machine code; zero if there is none.
func (h *Hosted) counted(ctx context.Context, one *Submission, job runners.Job, c runners.Code) (claimList, runners.Attempt, error) {
	list, err := h.claims(ctx, one)
	if err != nil {
		return list, runners.Attempt{}, err
	}
	mine := claimOf(one, h.clock())
	mine.Code = codeName(job, c)
	attempt, _ := attemptOfHandle(list.all, mine)
	return list, attempt, nil
}

// Built refuses builds of hosts that do not measure: submissions do not ask for them.
func (h *Hosted) Built(_ context.Context, job string, _ uint64, _ fleet.Runner, _ fleet.Build) (bool, error) {
	return false, fmt.Errorf("job %s: %w", job, jobs.ErrCancelled)
}

// Lost ends a submission that has lost its runners, as their fault.
func (h *Hosted) Lost(ctx context.Context, job string, token uint64, why string) error {
	one, err := h.unfinished(ctx, job)
	if one != nil && one.State == Done {
		return nil
	}
	if err != nil {
		return err
	}
	return h.finish(ctx, one, "", token, outcome{err: errors.New(why)})
}

// Finished judges the evidence of a runner, once it answers its job.
func (h *Hosted) Finished(ctx context.Context, job string, token uint64, by fleet.Runner, evidence, log []byte, _ []string) error {
	one, err := h.unfinished(ctx, job)
	if one != nil && one.State == Done && one.Work.Lease == token {
		return nil // the answer to the first delivery was lost
	}
	if err != nil {
		return err
	}
	packed, err := h.jobOf(ctx, one)
	if err != nil {
		return err
	}
	e, err := gates.ParseEvidence("the runner's evidence", evidence)
	earlier := 0
	if err == nil {
		earlier, err = h.earlierRounds(ctx, one, packed, e)
	}
	if err == nil {
		err = verify.Check(packed, earlier, e)
	}
	if own := (unavailable{}); errors.As(err, &own) {
		return own
	}
	if err != nil {
		e = packed.Fault(err)
	}
	v := gates.Judge(packed.Policy, packed.PolicyFile, e)
	got := &check.Result{Verdict: v, Measured: runners.Measured{Evidence: e, BuildLog: string(log)}}
	if err := h.finish(ctx, one, by.Name, token, outcome{got: got, gate: packed.Rule().Gates.Performance}); err != nil {
		return err
	}
	fault := ""
	if v.Outcome == gates.Error && v.Reason == gates.ReasonRunner {
		fault = v.Summary
	}
	h.Judged(ctx, by.Name, one.Work.Name+" "+one.Kernel, fault)
	return nil
}

// unavailable is an error of the bot: the runner did not cause it.
type unavailable struct{ error }

func (u unavailable) Unwrap() error { return u.error }

// earlierRounds refuses rounds that were not counted before they were measured, and rounds of earlier claims that
// differ from the stored ones. It returns how many are of earlier claims.
func (h *Hosted) earlierRounds(ctx context.Context, one *Submission, job runners.Job, e *gates.Evidence) (int, error) {
	if e.Fault != "" || e.Performance == nil || len(e.Performance.Rounds) == 0 {
		return 0, nil
	}
	own, known := runners.Attempt{Number: 1, CodeNumber: 1}, (*gates.Evidence)(nil)
	if one.Intent == result.Claim {
		code, ok := runners.CodeOf(e)
		if !ok {
			return 0, errors.New("the runner sent times without the machine code that they are about")
		}
		list, attempt, err := h.counted(ctx, one, job, code)
		if err != nil {
			return 0, unavailable{err}
		}
		mine := claimOf(one, h.clock())
		mine.Code = codeName(job, code)
		found, err := h.earlierThan(ctx, list.all, mine)
		if err != nil {
			return 0, unavailable{err}
		}
		own, known = attempt, found.Evidence
	}
	rounds := e.Performance.Rounds
	before := len(rounds)
	for before > 0 && own.Number > 0 && max(1, rounds[before-1].Attempt) == own.Number {
		before--
	}
	if got := e.Performance.CodeNumber(); own.Number > 0 && before < len(rounds) && got != own.CodeNumber {
		return 0, fmt.Errorf("the runner sent rounds of machine code %d of the day, and the server has counted it as number %d", got, own.CodeNumber)
	}
	if before == 0 {
		return 0, nil
	}
	if known == nil || known.Performance == nil || len(known.Performance.Rounds) < before || !sameJSON(known.Performance.Rounds[:before], rounds[:before]) {
		return 0, fmt.Errorf("the runner sent %d rounds that the server has not counted", before)
	}
	return before, nil
}

func sameJSON(a, b any) bool {
	one, errA := json.Marshal(a)
	other, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(one) == string(other)
}

// finish writes the result of a submission. Of two results the journal takes the first.
func (h *Hosted) finish(ctx context.Context, one *Submission, by string, token uint64, o outcome) error {
	done := h.conclude(ctx, one, o)
	done.decided, done.Work = nil, new(*one.Work)
	done.Work.Lease, done.Work.Runner = token, by
	var err error
	if one.Intent == onlyCompile && o.got != nil && o.got.Verdict.Outcome != gates.Error {
		done.Static = &Static{Kernel: done.Kernel}
		done.Static.fill(o.got.Verdict, o.got.Evidence)
	}
	if o.got != nil {
		if done.Work.Evidence, err = h.packJSON(ctx, "evidence", o.got.Evidence); err != nil {
			return err
		}
	}
	if done.Work.Report, err = h.pack(ctx, "report", []byte(o.answer(done))); err != nil {
		return err
	}
	if done.Work.Log, err = h.pack(ctx, "log", []byte(o.log())); err != nil {
		return err
	}
	err = h.end(ctx, done)
	if errors.Is(err, journal.ErrConflict) {
		now, err := h.unfinished(ctx, subjectOf(one))
		if now != nil && now.State == Done && now.Work.Lease == token {
			return nil // the answer to this very write was lost
		}
		return err
	}
	if err != nil {
		return err
	}
	h.log.Info("result of a submission", "submission", one.id(), "outcome", done.Result.Outcome, "reason", done.Result.Reason, "runner", by)
	return nil
}

// end writes a result, and puts it into memory before anybody reads the submissions of its owner again.
func (h *Hosted) end(ctx context.Context, done *Submission) error {
	r, err := h.rollOf(done.Token)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	isNew := done.seq == 0
	if isNew {
		if err := h.list(ctx, r, done); err != nil {
			return err
		}
	}
	if err := h.append(ctx, done, endedKind); err != nil {
		r.read = false // perhaps it was written
		return err
	}
	if isNew {
		h.change(func() { h.all = append(h.all, done.short()) })
	}
	h.done(done)
	return nil
}
