package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// errOtherEvidence means that the evidence cannot be extended, because it is not about the job.
var errOtherEvidence = errors.New("the new evidence cannot be added to the earlier evidence (gather it again from the start)")

// recall asks the record what is known about the code that was just built, and continues from
// there. If the earlier evidence is enough for a verdict, it applies to this commit as to the one
// for which it was measured, and nothing is measured. If a person or another rule asks for more, an
// attempt is added. The number of its rounds is fixed before the first of them, and the gates give
// every attempt a separate error rate, so asking again never gives a new chance.
//
// The backend is new, and both sides were built to the same bytes as before. What was seen of them
// then still holds, so correctness is kept and does not run again.
func (g *gatherer) recall(ctx context.Context) error {
	code, ok := runners.CodeOf(g.evidence)
	if !ok {
		return nil
	}
	was, err := g.job.Record.Earlier(ctx, code)
	if err != nil {
		return fmt.Errorf("asking what was measured before: %w", err)
	}
	if was.Evidence == nil {
		return nil
	}
	if err := belongs(g.evidence, was.Evidence); err != nil {
		return fmt.Errorf("going on with the evidence about %s: %w", g.job.Manifest.Name, err)
	}
	if was.Again && !rounds(was.Evidence) {
		g.keepCases(was.Evidence.Correctness)
		g.keepEnergy(was.Evidence.Energy)
		return nil
	}
	g.adopt(was)
	if !was.Again {
		return nil
	}
	if err := g.more(ctx, g.evidence.Performance); err != nil {
		return err
	}
	return g.moreEnergy(ctx)
}

// named returns the manifest's shapes. Each run draws its own secret one.
func named(shapes []gates.Shape) []gates.Shape {
	return slices.DeleteFunc(slices.Clone(shapes), func(s gates.Shape) bool { return s.Secret })
}

// adopt makes the earlier evidence this run's own. Rounds continue with the secret shape that they
// began with: a new one would be a new chance. The provenance, the policy's rule and the builds are
// this run's.
func (g *gatherer) adopt(was runners.Earlier) {
	now, e := *g.evidence, *was.Evidence
	e.Abilities, e.Provenance, e.Change, e.Device, e.Notes, e.Took = now.Abilities, now.Provenance, now.Change, now.Device, now.Notes, now.Took
	e.Baseline, e.Candidate, e.SameCode = now.Baseline, now.Candidate, now.SameCode
	if !rounds(was.Evidence) {
		e.Shapes = now.Shapes // no time was taken on the secret shape that it had, if any
	}
	e.SameShapes = g.job.SameShapes(&e)
	if p := was.Evidence.Performance; p != nil {
		own := *p
		own.Rounds = slices.Clone(p.Rounds)
		e.Performance = &own
		g.before, g.spent = len(own.Rounds), own.Seconds
	}
	if g.job.Profile {
		e.Profile = nil
	}
	if was.Head != "" && was.Head != now.Provenance.Head.SHA {
		e.Notes = append(slices.Clip(e.Notes), fmt.Sprintf("The machine code of both sides is what was measured at %.12s: its evidence counts for this commit, too.", was.Head))
	}
	*g.evidence = e
}

// keepCases keeps outputs that were compared, although everything else is repeated. Secret cases
// are random, and without this a wrong kernel would be right as soon as the wrong cases are not
// drawn. A launch that failed may have been the host's fault, and gets a new chance.
func (g *gatherer) keepCases(c *gates.Correctness) {
	if c == nil {
		return
	}
	g.cases = slices.DeleteFunc(slices.Clone(c.Cases), func(k gates.Case) bool { return k.Failure != nil })
	if len(g.cases) > 0 {
		g.evidence.Notes = append(slices.Clip(g.evidence.Notes), "The cases of earlier runs of this machine code are among those below: what was wrong stays so.")
	}
}

func rounds(e *gates.Evidence) bool { return e.Performance != nil && len(e.Performance.Rounds) > 0 }

// more measures a further attempt, if rounds could still change anything.
func (g *gatherer) more(ctx context.Context, p *gates.Performance) error {
	gate := g.rule.Gates.Performance
	n := len(p.Rounds)
	if gate == nil || p.Rounds[n-1].Failure != nil || !g.timed() {
		return nil
	}
	more := g.job.Rounds
	if more <= 0 {
		more = gate.Interims[len(gate.Interims)-1]
	}
	return g.performance(ctx, n+more)
}

// timed reports whether the earlier gates let the performance gate run.
func (g *gatherer) timed() bool {
	v := gates.Judge(g.job.Policy, "", g.evidence)
	return slices.ContainsFunc(v.Gates, func(r gates.GateResult) bool { return r.Gate == gates.GatePerformance && r.Status != gates.NotRun })
}

// belongs refuses evidence that cannot be extended, which means that the record made a mistake. The
// record decides whether evidence also serves a different policy.
func belongs(now, was *gates.Evidence) error {
	code, _ := runners.CodeOf(now)
	then, _ := runners.CodeOf(was)
	differs := func(what, was, is string) error {
		return fmt.Errorf("%w: the %s was %q and is %q now", errOtherEvidence, what, was, is)
	}
	switch {
	case was.Kernel != now.Kernel:
		return differs("kernel", was.Kernel, now.Kernel)
	case !was.Can().Equal(now.Can()):
		return fmt.Errorf("%w: a backend with other abilities gathered it", errOtherEvidence)
	case was.Removed:
		return fmt.Errorf("%w: it says that the kernel was removed", errOtherEvidence)
	case then.Device != code.Device || then.Arch != code.Arch:
		return differs("device", then.Device+" "+then.Arch, code.Device+" "+code.Arch)
	case then.Picks != code.Picks:
		return fmt.Errorf("%w: the tuner has picked other configurations of @triton.autotune", errOtherEvidence)
	case then != code:
		return fmt.Errorf("%w: both sides build to other machine code than they did: the sources, the flags or the compiler have changed", errOtherEvidence)
	case !slices.Equal(named(was.Shapes), named(now.Shapes)):
		return fmt.Errorf("%w: the manifest's shapes or their work have changed", errOtherEvidence)
	}
	if then, is := was.Provenance.Manifest, now.Provenance.Manifest; then != "" && is != "" && then != is {
		return differs("manifest's hash", then, is)
	}
	return nil
}
