package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/bot/dispatch"
	"github.com/kernelgate/kernelgate/bot/journal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
)

// Started notes that a runner has a job, unless nobody wants it any more.
func (b *Bot) Started(ctx context.Context, job string, token uint64, by dispatch.Runner) error {
	id, err := change.OfJob(job)
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrCancelled, err)
	}
	_, err = b.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		run, err := b.wanted(now, job, token)
		if err != nil {
			return nil, err
		}
		if run.Phase == change.Running && run.Token == token {
			return nil, nil
		}
		return change.Started{Job: job, Token: token, Runner: by.Name}, nil
	})
	b.tender.poke(id)
	return err
}

// wanted is the run that a job is for. A result for what was superseded or
// cancelled, or of an earlier lease, is refused.
func (b *Bot) wanted(s *change.State, job string, token uint64) (change.Run, error) {
	run, ok := s.Run(job)
	switch {
	case !ok || run.Phase == change.Abandoned || s.Held() || !s.Facts.Open:
		return run, fmt.Errorf("job %s: %w", job, journal.ErrCancelled)
	case run.Phase == change.Done || token < run.Token:
		return run, fmt.Errorf("job %s: %w", job, journal.ErrLeaseLost)
	}
	return run, nil
}

// Finished judges what a runner brought. The runner's word is never a verdict:
// evidence that is not about what was asked is the runner's fault.
func (b *Bot) Finished(ctx context.Context, job string, token uint64, by dispatch.Runner, evidence, log []byte, artifacts []string) error {
	id, err := change.OfJob(job)
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrCancelled, err)
	}
	s, err := b.states.load(ctx, id)
	if err != nil {
		return err
	}
	run, ok := s.Run(job)
	if ok && run.Phase == change.Done && run.Token == token {
		return nil // the answer to the first delivery was lost
	}
	if _, err := b.wanted(s, job, token); err != nil {
		return err
	}
	result, err := b.verdictOn(ctx, s, run, token, evidence)
	if err != nil {
		return err
	}
	if err := b.remember(ctx, s, run, token, *result); err != nil {
		return err
	}
	result.Files = artifacts
	if len(log) > 0 {
		if result.Log, err = b.keepBytes(ctx, "log", log); err != nil {
			return err
		}
	}
	_, err = b.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if _, err := b.wanted(now, job, token); err != nil {
			return nil, err
		}
		return change.Finished{Job: job, Token: token, Runner: by.Name, Result: *result}, nil
	})
	if err == nil {
		b.forget(job)
		b.Log.Info("verdict", "change", id.String(), "repo", s.Facts.Repo, "job", job, "outcome", result.Outcome, "reason", result.Reason, "runner", by.Name)
	}
	b.tender.poke(id)
	return err
}

func (b *Bot) verdictOn(ctx context.Context, s *change.State, run change.Run, token uint64, data []byte) (*change.Result, error) {
	policy, err := s.Plan.ReadPolicy()
	if err != nil {
		return nil, err
	}
	e, err := gates.ParseEvidence("the runner's evidence", data)
	if err == nil {
		err = about(s, run, e)
	}
	if err == nil {
		err = b.counted(ctx, s, run, token, e)
	}
	if own := (unavailable{}); errors.As(err, &own) {
		return nil, own
	}
	if err != nil {
		e = &gates.Evidence{
			Schema: gates.EvidenceSchema, Kernel: manifestName(run),
			Provenance: gates.Provenance{Repository: s.Facts.Repo, Base: gates.Commit{SHA: s.Plan.Base}, Head: gates.Commit{SHA: run.Head}},
			Fault:      err.Error(),
		}
	}
	if run.Text != "" {
		narrow(policy, run.Text, e)
	}
	return b.judge(ctx, s.Plan.PolicyFile, policy, e)
}

// narrow makes the policy ask what a measurement on the side was asked for.
func narrow(policy *policies.Policy, text string, e *gates.Evidence) {
	c, _, err := command.Parse(text)
	r, ok := c.(command.Rebench)
	if err != nil || !ok {
		return // the text is the bot's own
	}
	if r.Versus != "" && len(r.Shapes) == 0 {
		for _, s := range e.Shapes {
			r.Shapes = append(r.Shapes, s.Name)
		}
	}
	policy.Narrow(r.Shapes, r.Seeds)
}

// manifestName is the kernel's name without the folder that tells it from
// another of that name.
func manifestName(run change.Run) string {
	return strings.TrimSuffix(run.Kernel, fmt.Sprintf(" (%s)", run.Folder))
}

// about refuses evidence about something else than the run.
func about(s *change.State, run change.Run, e *gates.Evidence) error {
	policy := sha256.Sum256([]byte(s.Plan.Policy))
	for _, is := range []struct{ what, got, want string }{
		{"kernel", e.Kernel, manifestName(run)},
		{"head", e.Provenance.Head.SHA, run.Head},
		{"base", e.Provenance.Base.SHA, s.Plan.Base},
		{"policy", e.Provenance.Policy, hex.EncodeToString(policy[:])},
	} {
		if is.got != is.want {
			return fmt.Errorf("the runner sent evidence about the %s %.40q, and was asked about %.40q (is it of another version than the server?)", is.what, is.got, is.want)
		}
	}
	return nil
}
