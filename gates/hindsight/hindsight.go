// Package hindsight tries a policy on evidence of past runs, before the policy is merged. [Judge]
// judges one run by two policies, [Summarize] says what the runs come to, and a [Noise] has the
// recorded A/A controls of a device, on which the gate's error rate and power are simulated. The
// verdicts are those of gates.Judge. Like gates, the package does no I/O.
package hindsight

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A Policy is a policy with the file name that verdicts quote.
type Policy struct {
	*policy.Policy
	File string
}

// A Judgement is what evidence comes to by a policy.
type Judgement struct {
	Outcome gates.Outcome  `json:"outcome"`
	Reason  gates.Reason   `json:"reason,omitempty"`
	Rule    string         `json:"rule"`
	Enforce policy.Enforce `json:"enforce,omitempty"` // where the rule does not block
	Summary string         `json:"summary"`
}

func judgementOf(v *gates.Verdict) Judgement {
	return Judgement{Outcome: v.Outcome, Reason: v.Reason, Rule: v.Rule, Enforce: v.Enforce, Summary: v.Summary}
}

// Same reports whether two judgements are alike for the author of a change.
func (j Judgement) Same(other Judgement) bool {
	return j.Outcome == other.Outcome && j.Reason == other.Reason && (j.Outcome == gates.Pass || j.Enforce == other.Enforce)
}

// String is such as "DEFER (too-slow)" or "shadow: DEFER (too-slow)".
func (j Judgement) String() string {
	text := string(j.Outcome)
	if j.Reason != "" && j.Outcome != gates.Pass {
		text += " (" + string(j.Reason) + ")"
	}
	if !j.Enforce.Blocks() && j.Outcome != gates.Pass {
		text = string(j.Enforce) + ": " + text
	}
	return text
}

// A Row is one past run by the old policy and by the new one.
type Row struct {
	Run    string    `json:"run"` // where its evidence is
	Kernel string    `json:"kernel"`
	Device string    `json:"device,omitempty"`
	Old    Judgement `json:"old"`
	New    Judgement `json:"new"`
	Lacks  *Lack     `json:"lacks,omitempty"`
	// Seconds that the rounds took up to the verdict, by each policy. By the new one they are the least:
	// rounds that were not measured are counted as far as gates.Next asks for them now.
	OldSeconds float64 `json:"old_seconds"`
	NewSeconds float64 `json:"new_seconds"`
}

// A Lack is evidence that a run by the new policy would gather and that is not there.
type Lack struct {
	Gate gates.Gate `json:"gate"`
	Have int        `json:"rounds,omitempty"`        // performance: the rounds that are there
	Want int        `json:"rounds_wanted,omitempty"` // performance: the rounds until the next look
	Part string     `json:"part,omitempty"`          // what is missing from evidence that is there
	Both bool       `json:"old_too,omitempty"`       // the old policy asks for it as well
}

func (l *Lack) String() string {
	text := fmt.Sprintf("no evidence for %s", l.Gate)
	switch {
	case l.Part != "":
		text = fmt.Sprintf("%s: %s", l.Gate, l.Part)
	case l.Gate == gates.GatePerformance && l.Have > 0:
		text = fmt.Sprintf("%d rounds are there, and it decides after %d at the earliest", l.Have, l.Want)
	}
	if l.Both {
		text += " (by the old policy too)"
	}
	return text
}

// Flips reports whether the new policy reaches a different verdict on evidence that suffices for it.
func (r Row) Flips() bool { return r.Lacks == nil && !r.Old.Same(r.New) }

// Judge judges one run by both policies.
func Judge(old, new Policy, run string, e *gates.Evidence) Row {
	was, is := gates.Judge(old.Policy, old.File, e), gates.Judge(new.Policy, new.File, e)
	row := Row{
		Run: run, Kernel: e.Kernel, Device: cmp.Or(e.Device.Name, e.Device.Kind), Old: judgementOf(was), New: judgementOf(is),
		OldSeconds: seconds(e, was, 0), NewSeconds: seconds(e, is, 0),
	}
	need := gates.Next(new.Policy, e)
	switch gate, part := missing(is); {
	case need.Gate != "" && decides(is, need.Gate):
		row.Lacks = &Lack{Gate: need.Gate, Want: need.Rounds, Both: gates.Next(old.Policy, e) == need}
		if e.Performance != nil {
			row.Lacks.Have = len(e.Performance.Rounds)
		}
		row.NewSeconds = max(row.OldSeconds, seconds(e, is, need.Rounds))
	case gate != "":
		oldGate, oldPart := missing(was)
		row.Lacks = &Lack{Gate: gate, Part: part, Both: gate == oldGate && part == oldPart}
		row.NewSeconds = max(row.OldSeconds, row.NewSeconds)
	}
	return row
}

// decides reports whether a gate can defer the change. One that only informs keeps no verdict from
// falling.
func decides(v *gates.Verdict, gate gates.Gate) bool {
	i := slices.IndexFunc(v.Gates, func(g gates.GateResult) bool { return g.Gate == gate })
	return i < 0 || v.Gates[i].Required
}

// missing is the required gate that asks for a part which its evidence does not have, such as a
// shape, where that decides the verdict. Its gate is empty where there is none.
func missing(v *gates.Verdict) (gates.Gate, string) {
	if v.Outcome == gates.Defer && v.Reason == gates.ReasonInconclusive {
		for _, g := range v.Gates {
			if g.Required && g.Status == gates.Missing {
				return g.Gate, g.Text
			}
		}
	}
	return "", ""
}

// seconds is how long the rounds up to a verdict took, or so many of them.
func seconds(e *gates.Evidence, v *gates.Verdict, rounds int) float64 {
	p := e.Performance
	if p == nil || len(p.Rounds) == 0 || v.Measuring == nil && rounds == 0 {
		return 0
	}
	total := 0.0
	for _, r := range p.Rounds {
		total += r.Seconds
	}
	if total == 0 {
		total = p.Seconds
	}
	if rounds == 0 {
		rounds = v.Measuring.Rounds
	}
	return total / float64(len(p.Rounds)) * float64(rounds)
}

// A Summary is what the rows come to.
type Summary struct {
	Runs       int     `json:"runs"`
	Flips      int     `json:"flips"`
	ToPass     int     `json:"to_pass"`   // of the flips
	FromPass   int     `json:"from_pass"` // of the flips
	Lacking    int     `json:"lacking"`
	OldSeconds float64 `json:"old_seconds_per_verdict"`
	NewSeconds float64 `json:"new_seconds_per_verdict"`
}

// Summarize counts the rows.
func Summarize(rows []Row) Summary {
	s := Summary{Runs: len(rows)}
	for _, r := range rows {
		s.OldSeconds += r.OldSeconds / float64(len(rows))
		s.NewSeconds += r.NewSeconds / float64(len(rows))
		switch {
		case r.Lacks != nil:
			s.Lacking++
		case !r.Flips():
		default:
			s.Flips++
			switch {
			case r.New.Outcome == gates.Pass:
				s.ToPass++
			case r.Old.Outcome == gates.Pass:
				s.FromPass++
			}
		}
	}
	return s
}

func (s Summary) String() string {
	text := fmt.Sprintf("%s judged: %s would be different", counted(s.Runs, "run"), counted(s.Flips, "verdict"))
	if s.Flips > 0 {
		text += fmt.Sprintf(" (%d would pass, %d would no longer pass", s.ToPass, s.FromPass)
		if rest := s.Flips - s.ToPass - s.FromPass; rest > 0 {
			text += fmt.Sprintf(", %d for a different reason or enforcement", rest)
		}
		text += ")"
	}
	text += fmt.Sprintf(", %s would need more evidence.", counted(s.Lacking, "run"))
	if s.OldSeconds+s.NewSeconds > 0 {
		least := ""
		if s.Lacking > 0 {
			least = " at least"
		}
		text += fmt.Sprintf(" Measuring takes %.1f s per verdict by the old policy, and%s %.1f s by the new one.", s.OldSeconds, least, s.NewSeconds)
	}
	return text
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
