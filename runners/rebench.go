package runners

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
)

// ErrOtherEvidence says that evidence cannot be added to: it is about something
// else than the job.
var ErrOtherEvidence = errors.New("the earlier evidence cannot be added to (gather it anew)")

// Rebench adds an attempt to evidence of an earlier run: so many rounds more, or
// as many as the policy's last look asks where rounds is 0, whether or not a
// verdict has fallen already. The number is fixed before the first of them, and
// the gates give every attempt an error rate of its own, so asking again never
// rolls the dice again.
//
// The backend may be a fresh one: both sides are built again, and must turn out
// as they were, byte for byte. What was seen of them then still holds, so
// correctness is kept and not run again.
func Rebench(ctx context.Context, job Job, b Backend, earlier *gates.Evidence, rounds int, progress Progress) (*gates.Evidence, error) {
	if err := belongs(job, b, earlier); err != nil {
		return nil, fmt.Errorf("going on with the evidence about %s: %w", job.Manifest.Name, err)
	}
	e := *earlier
	if p := earlier.Performance; p != nil {
		own := *p
		own.Rounds = slices.Clone(p.Rounds)
		e.Performance = &own
	}
	// A fault was the runner's of that time.
	e.Fault, e.Baseline, e.Candidate = "", nil, nil
	g := &gatherer{job: job, backend: b, evidence: &e, progress: progress, rule: job.Rule(), attempt: 1}
	if err := g.step(ctx, gates.Need{Gate: "build"}); err != nil || e.Fault != "" {
		e.Baseline, e.Candidate = earlier.Baseline, earlier.Candidate
		return &e, err
	}
	if err := sameBuilds(earlier, &e); err != nil {
		return nil, fmt.Errorf("going on with the evidence about %s: %w", job.Manifest.Name, err)
	}
	if p := e.Performance; p != nil && len(p.Rounds) > 0 && !cutShort(earlier) {
		if err := g.more(ctx, p, rounds); err != nil || e.Fault != "" {
			return &e, err
		}
	}
	return &e, g.run(ctx)
}

// cutShort tells whether a fault ended the first attempt. Nothing was decided
// then, so it goes on to its own looks.
func cutShort(e *gates.Evidence) bool {
	rounds := e.Performance.Rounds
	return e.Fault != "" && rounds[len(rounds)-1].Attempt <= 1
}

// more measures a further attempt, if anything is left that rounds could say.
func (g *gatherer) more(ctx context.Context, p *gates.Performance, rounds int) error {
	gate := g.rule.Gates.Performance
	n := len(p.Rounds)
	last := p.Rounds[n-1]
	if gate == nil || last.Failure != nil || !g.timed() {
		return nil
	}
	if rounds <= 0 {
		rounds = gate.Looks[len(gate.Looks)-1]
	}
	p.Exhausted = false
	g.attempt, g.before, g.spent = max(last.Attempt, 1)+1, n, p.Seconds
	return g.step(ctx, gates.Need{Gate: "performance", Rounds: n + rounds})
}

// timed tells whether the gates before it let the performance gate speak.
func (g *gatherer) timed() bool {
	v := gates.Judge(g.job.Policy, "", g.evidence)
	return slices.ContainsFunc(v.Gates, func(r gates.GateResult) bool { return r.Gate == "performance" && r.Status != gates.NotRun })
}

// belongs refuses evidence that is not about this job on this kind of device.
func belongs(job Job, b Backend, e *gates.Evidence) error {
	shapes, err := job.shapes()
	if err != nil {
		return err
	}
	differs := func(what, was, is string) error {
		return fmt.Errorf("%w: the %s was %q and is %q now", ErrOtherEvidence, what, was, is)
	}
	device := b.Device()
	switch {
	case e.Imported != "":
		return fmt.Errorf("%w: its figures come from the older report %s, without the samples", ErrOtherEvidence, e.Imported)
	case e.Kernel != job.Manifest.Name:
		return differs("kernel", e.Kernel, job.Manifest.Name)
	case e.Removed:
		return fmt.Errorf("%w: it says that the kernel was removed", ErrOtherEvidence)
	case e.Device.Name != device.Name || e.Device.Arch != device.Arch:
		return differs("device", e.Device.Name+" "+e.Device.Arch, device.Name+" "+device.Arch)
	case !slices.Equal(e.Shapes, shapes):
		return fmt.Errorf("%w: the manifest's shapes or their work have changed", ErrOtherEvidence)
	case (e.Baseline != nil) != (job.Baseline != nil) && e.Candidate != nil:
		return fmt.Errorf("%w: one of the two has a baseline, the other has none", ErrOtherEvidence)
	}
	for _, hash := range []struct{ what, was, is string }{
		{"manifest's hash", e.Provenance.Manifest, job.Provenance.Manifest},
		{"policy's hash", e.Provenance.Policy, job.Provenance.Policy},
	} {
		if hash.was != "" && hash.is != "" && hash.was != hash.is {
			return differs(hash.what, hash.was, hash.is)
		}
	}
	return nil
}

// sameBuilds holds the builds against those of the earlier run. A side that did
// not build then and does now, after a compiler's time limit say, has been
// measured by nobody: there is nothing to contradict.
func sameBuilds(was, is *gates.Evidence) error {
	for _, side := range []struct {
		role    Role
		was, is *gates.Build
	}{{Baseline, was.Baseline, is.Baseline}, {Candidate, was.Candidate, is.Candidate}} {
		if side.was == nil || side.is == nil || !side.was.OK {
			continue
		}
		if !side.is.OK {
			return fmt.Errorf("%w: the %s no longer builds: %s", ErrOtherEvidence, side.role, side.is.Error)
		}
		if side.was.Variant != side.is.Variant || side.was.Code != side.is.Code {
			return fmt.Errorf("%w: the %s builds to other machine code than it did: its sources, its flags or the compiler have changed", ErrOtherEvidence, side.role)
		}
	}
	return nil
}
