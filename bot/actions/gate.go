package actions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// gate measures the kernels of the plan one by one and publishes every step. A failure to publish
// does not discard a verdict.
func (s *session) gate(ctx context.Context) (End, error) {
	if err := s.number(ctx); err != nil {
		return End{}, err
	}
	var trouble error
	wanted := s.state.Wanted()
	if len(wanted) == 0 {
		trouble = s.publish(ctx)
	}
	for _, run := range wanted {
		s.apply(change.Started{Job: run.Job, Token: 1, Runner: s.env.runner})
		_ = s.publish(ctx) // only the end of the run matters
		run, _ = s.state.Run(run.Job)
		result, err := s.run(ctx, run)
		if ctx.Err() != nil {
			s.abandon(ctx)
			return End{}, fmt.Errorf("measuring %s: %w", run.Name, context.Cause(ctx))
		}
		if err != nil { // as on any runner: a check that stays in progress blocks the change forever
			if result, err = s.faulty(run, err); err != nil {
				return End{}, err
			}
		}
		s.apply(change.Finished{Job: run.Job, Token: 1, Result: result})
		trouble = s.publish(ctx)
	}
	return s.finish(trouble)
}

// number finds how often each kernel of this commit was run before. It uses three sources: the
// history in the comment; the checks, since a comment can be edited and deleted; and the number of
// starts of the job, since a read-only token leaves neither. It concludes checks that an earlier
// job left unfinished.
func (s *session) number(ctx context.Context) error {
	unfinished := map[string]bool{}
	for _, r := range s.state.Past {
		if r.Phase != change.Done && r.Head != s.state.Facts.Head {
			unfinished[r.Head] = true
		}
	}
	for _, c := range present.Checks(s.view()) {
		for head := range unfinished {
			if _, err := s.clear(ctx, c, head); err != nil {
				return err
			}
		}
		before, err := s.clear(ctx, c, c.HeadSHA)
		if err != nil {
			return err
		}
		_, key, err := present.ParseExternalID(c.ExternalID)
		if err != nil {
			return fmt.Errorf("numbering the attempts: %w", err)
		}
		for i, r := range s.state.Runs {
			if r.Key() == key {
				s.state.Runs[i].Attempt = min(1+max(before, tried(s.state.Past, r), s.env.runAttempt-1), maxAttempts+1)
			}
		}
	}
	return nil
}

// run measures and judges one kernel. It returns an error only if ctx ends or the disk fails.
func (s *session) run(ctx context.Context, run change.Run) (change.Result, error) {
	dir := filepath.Join(s.scratch, run.Job)
	for _, d := range []string{filepath.Join(dir, "job"), filepath.Join(dir, "scratch")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return change.Result{}, fmt.Errorf("making a scratch folder: %w", err)
		}
	}
	job, err := s.shelf().unpack(run.Bundle, filepath.Join(dir, "job"))
	if err != nil {
		return change.Result{}, err
	}
	var note string
	if job.Policy, note = fewer(job.Policy, s.Rounds); note != "" {
		job.Notes = append(job.Notes, note)
	}
	job.Record = counter{s, run.Job}
	job.Provenance.Host = s.env.runner
	out, err := s.measure(ctx, job, run, filepath.Join(dir, "scratch"))
	if err != nil {
		return change.Result{}, err
	}
	result, verdict := judge(job.Policy, job.PolicyFile, out.Evidence, run.Rules)
	s.verdicts[run.Job] = verdict
	s.lines.print(report.Terminal(verdict, report.TerminalOptions{Width: 120}))
	return result, s.write(run.Name, out, job.PolicyText, verdict)
}

// faulty returns the verdict on a kernel that this machine could not measure, or whose evidence it
// could not store.
func (s *session) faulty(run change.Run, fault error) (change.Result, error) {
	policy, err := s.state.Plan.ReadPolicy()
	if err != nil {
		return change.Result{}, errors.Join(fault, err)
	}
	e := s.state.FaultEvidence(run, fault.Error()+" (free the disk of this runner or repair it, then run the job again)")
	result, verdict := judge(policy, s.state.Plan.PolicyFile, e, run.Rules)
	s.verdicts[run.Job] = verdict
	return result, nil
}

// measure returns evidence unless ctx ends. Every failure is recorded as the runner's fault.
func (s *session) measure(ctx context.Context, job runners.Job, run change.Run, scratch string) (runners.Measured, error) {
	err := cmp.Or(s.fit(job, run), s.spent(run))
	if err == nil {
		var out runners.Measured
		if out, err = s.Measure(ctx, job, scratch, s.Progress); err == nil {
			return out, nil
		}
	}
	if ctx.Err() != nil {
		return runners.Measured{}, err
	}
	return runners.Measured{Evidence: job.Fault(err)}, nil
}

// fit returns why this job does not measure a kernel, or nil.
func (s *session) fit(job runners.Job, run change.Run) error {
	devices := job.Policy.Devices.Prefer
	switch {
	case len(s.Kernels) > 0 && !slices.Contains(s.Kernels, run.Folder) && !slices.Contains(s.Kernels, run.ManifestName()):
		return fmt.Errorf("the workflow has this job measure only %s (add %s to its kernels)", strings.Join(s.Kernels, ", "), run.Name)
	case run.Device != "" && !slices.Contains(s.Labels, run.Device):
		return fmt.Errorf("the policy asks for a verdict on %s, and this runner is %s: a job of a workflow runs on one machine and cannot know what another job measured "+
			"(gate several devices with kernelgate serve, or list one device in the policy)", run.Device, strings.Join(s.Labels, ", "))
	case len(devices) > 0 && !slices.ContainsFunc(devices, func(d string) bool { return slices.Contains(s.Labels, d) }):
		return fmt.Errorf("the policy lets only %s measure, and this runner is %s (choose a different runner with runs-on, or add its labels to KERNELGATE_LABELS)",
			strings.Join(devices, ", "), strings.Join(s.Labels, ", "))
	}
	return nil
}

// judge is the only source of verdicts.
func judge(policy *policy.Policy, file string, e *gates.Evidence, rules []string) (change.Result, *gates.Verdict) {
	v := change.Judge(policy, file, e, rules)
	return change.NewResult(v), v
}

// abandon publishes that there will be no verdict. GitHub gives a cancelled job a few seconds.
func (s *session) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for i, r := range s.state.Runs {
		if r.Unfinished() {
			s.state.Runs[i].Phase, s.state.Runs[i].Ended = change.Abandoned, s.Now()
		}
	}
	if err := s.publish(ctx); err != nil {
		s.lines.say("warning", err.Error())
	}
}

// write stores the results of a kernel's run, for the workflow to upload.
func (s *session) write(kernel string, out runners.Measured, policy string, v *gates.Verdict) error {
	if err := s.makeResults(); err != nil {
		return err
	}
	name := folderName(kernel)
	dir := filepath.Join(s.results, name)
	err := os.Mkdir(dir, 0o755)
	for n := 2; errors.Is(err, fs.ErrExist); n++ {
		dir = filepath.Join(s.results, fmt.Sprintf("%s-%d", name, n))
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	return check.WriteResults(dir, out, policy, v)
}

// folderName turns a kernel's name into a folder name. If two kernels share a name, the name
// contains the kernel's path, which may have characters that an artifact must not have:
// actions/upload-artifact refuses all files of a job if one path contains a colon, a quote or a
// newline. The caller adds a number to names that collide.
func folderName(kernel string) string {
	const longest = 100 // file systems allow 255 bytes
	plain := func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-()+", r)) {
			return r
		}
		return '-'
	}
	return strings.Map(plain, kernel[:min(len(kernel), longest)])
}

// makeResults creates a folder that no earlier job has written to.
func (s *session) makeResults() error {
	if s.results != "" {
		return nil
	}
	root := s.Results
	if root == "" {
		root = s.env.temp
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	dir, err := os.MkdirTemp(root, "kernelgate-results-")
	if err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	s.results, err = filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("making the results folder: %w", err)
	}
	return os.Chmod(dir, 0o755)
}
