package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// casesAtOnce is how many cases one process is asked for: their list must fit into its environment.
const casesAtOnce = 256

// Correctness runs each side once over all cases, and records what the harness says about its
// outputs. Cases that the candidate does not mention are left out; the gate counts them.
func (w *Worker) Correctness(ctx context.Context, gate *policy.CorrectnessGate, p runners.Progress) (*gates.Correctness, error) {
	if w.job.Manifest.Command.Test != nil {
		return w.test(ctx, p)
	}
	result := &gates.Correctness{}
	cases := runners.Cases(w.job, gate, w.rng)
	done := 0
	for chunk := range slices.Chunk(cases, casesAtOnce) {
		p.Report(runners.Event{Gate: gates.GateCorrectness, Text: "running the harness", Done: done, Total: len(cases), Unit: "cases"})
		found, err := w.compare(ctx, chunk)
		if err != nil {
			return nil, err
		}
		result.Cases = append(result.Cases, found...)
		if len(found) > 0 && found[len(found)-1].Failure != nil {
			break
		}
		done += len(chunk)
	}
	return result, nil
}

// test runs the test command on the candidate and, if that fails, on the baseline. The change did
// not cause a failure that the baseline has too.
func (w *Worker) test(ctx context.Context, p runners.Progress) (*gates.Correctness, error) {
	argv := w.job.Manifest.Command.Test
	run := func(role runners.Role) (*gates.Failure, error) {
		p.Report(runners.Event{Gate: gates.GateCorrectness, Text: "testing the " + string(role)})
		s := w.sides[role]
		r := s.request(proving)
		r.shapes = s.manifest.ShapesFor(s.variant)
		out, failure, err := w.config.harness(argv, s.dir).run(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("testing the %s: %w", role, err)
		}
		if failure != nil {
			failure.Detail = strings.ReplaceAll(failure.Detail, "the bench command", "the test command")
			fmt.Fprintf(&w.log, "# test of the %s: %s\n%s\n%s\n", role, failure.Detail, strings.Join(argv, " "), tail(out.stdout.String()+out.stderr.String()))
		}
		return failure, nil
	}
	t := &gates.Test{Command: strings.Join(argv, " ")}
	var err error
	if t.Failure, err = run(runners.Candidate); err != nil {
		return nil, err
	}
	if _, ok := w.sides[runners.Baseline]; ok && t.Failure != nil {
		if t.Baseline, err = run(runners.Baseline); err != nil {
			return nil, err
		}
	}
	return &gates.Correctness{Test: t}, nil
}

// compare asks both sides for the same cases. A baseline that fails here only loses its figures:
// the change may be the fix.
func (w *Worker) compare(ctx context.Context, cases []runners.Case) ([]gates.Case, error) {
	baseline := map[caseKey]figure{}
	if _, ok := w.sides[runners.Baseline]; ok {
		said, _, err := w.askCases(ctx, runners.Baseline, cases)
		if err != nil {
			return nil, err
		}
		baseline = said
	}
	candidate, failure, err := w.askCases(ctx, runners.Candidate, cases)
	if err != nil {
		return nil, err
	}
	var found []gates.Case
	for _, c := range cases {
		evidence := c.Evidence()
		f, ok := candidate[keyOf(c)]
		if !ok {
			if failure != nil {
				evidence.Failure = failure
				return append(found, evidence), nil
			}
			continue
		}
		evidence.Errors, evidence.Deterministic = &f.errors, f.deterministic
		if b, ok := baseline[keyOf(c)]; ok {
			evidence.Baseline = &b.errors
			if f.hash != "" && b.hash != "" {
				same := f.hash == b.hash
				evidence.BitParity = &same
			}
		}
		found = append(found, evidence)
	}
	if failure != nil {
		found[len(found)-1].Failure = failure
	}
	return found, nil
}

type caseKey struct {
	shape        string
	seed         uint64
	distribution string
}

func keyOf(c runners.Case) caseKey { return caseKey{c.Shape.Name, c.Seed, string(c.Distribution)} }

// askCases returns one side's figures by case. If a case is printed twice, the worst of every
// figure counts.
func (w *Worker) askCases(ctx context.Context, role runners.Role, cases []runners.Case) (map[caseKey]figure, *gates.Failure, error) {
	r := w.sides[role].request(correctness)
	r.cases = cases
	for _, c := range cases {
		if !slices.ContainsFunc(r.shapes, func(s manifest.Shape) bool { return s.Name == c.Shape.Name }) {
			r.shapes = append(r.shapes, c.Shape)
		}
	}
	said, failure, err := w.ask(ctx, role, r, needs{figures: true})
	if err != nil {
		return nil, nil, fmt.Errorf("asking the %s for its error figures: %w", role, err)
	}
	found := map[caseKey]figure{}
	for _, f := range said.figures {
		if f.seed == nil || f.distribution == "" {
			if failure == nil {
				failure = &gates.Failure{Kind: gates.FailureOutput, Detail: fmt.Sprintf(
					"the bench command's results can not be read: line %d: a line of figures names its seed and distribution in correctness mode (copy them from KERNELGATE_CASES)", f.line)}
			}
			continue
		}
		key := caseKey{f.shape, *f.seed, f.distribution}
		if first, ok := found[key]; ok {
			f = worse(first, f)
		}
		found[key] = f
	}
	if len(found) == 0 && failure == nil {
		failure = &gates.Failure{Kind: gates.FailureOutput, Detail: "the bench command printed no error figures in correctness mode (print one line for every case of KERNELGATE_CASES)"}
	}
	return found, failure, nil
}

func worse(a, b figure) figure {
	runners.Worse(&a.errors, &b.errors)
	if a.deterministic == nil || b.deterministic != nil && !*b.deterministic {
		a.deterministic = b.deterministic
	}
	if a.hash != b.hash {
		no := false
		a.hash, a.deterministic = "", &no
	}
	return a
}
