package report

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// unenforced is the beginning of a verdict that blocks nothing, such as "shadow: would be "; "" for a
// verdict that counts.
func unenforced(e policy.Enforce, o gates.Outcome) string {
	if e.Blocks() || o == gates.Pass {
		return ""
	}
	return Plain(string(e)) + ": would be "
}

// signFor is the mark of a verdict. One that does not pass and blocks nothing informs or warns.
func signFor(v *gates.Verdict) sign { return signBy(v.Outcome, v.Reason, v.Enforce) }

func signBy(o gates.Outcome, r gates.Reason, e policy.Enforce) sign {
	switch {
	case e.Blocks() || o == gates.Pass:
		return signOfVerdict(o, r)
	case e == policy.EnforceWarn:
		return signError
	}
	return signInform
}

// SignEnforced is Sign for the verdict of a rule with this enforcement.
func SignEnforced(o gates.Outcome, r gates.Reason, e policy.Enforce) string {
	return signs[signBy(o, r, e)].emoji
}

// Unenforced says what blocks nothing, a line for each rule: the rule that applies, and the rule that
// is tried as well.
func Unenforced(v *gates.Verdict) []string {
	var said []string
	if !v.Enforce.Blocks() {
		why := "The check succeeds, because rule " + quoted(v.Rule) + " does not block."
		if v.Enforce == policy.EnforceInform {
			why = "It blocks nothing: by the policy, " + quoted(v.Provenance.Label) + " only informs."
		}
		said = append(said, fmt.Sprintf("%s: would be %s %s", Plain(string(v.Enforce)), because(v.Outcome, v.Reason, v.Summary), why))
	}
	if t := v.Trial; t != nil {
		begin := Plain(string(t.Enforce)) + ": rule " + quoted(t.Rule)
		if t.Lacks != "" {
			said = append(said, fmt.Sprintf("%s is not decided: this run did not gather all that it needs for %s. It does not block.", begin, Plain(string(t.Lacks))))
		} else {
			said = append(said, fmt.Sprintf("%s would be %s It does not block.", begin, because(t.Outcome, t.Reason, t.Summary)))
		}
	}
	return said
}

// because is an outcome with its reason, as the end of a sentence.
func because(o gates.Outcome, r gates.Reason, summary string) string {
	said := Plain(string(o))
	if o == gates.Pass {
		return said + "."
	}
	if r != "" {
		said += " (" + Plain(string(r)) + ")"
	}
	if why := strings.TrimPrefix(lowered(strings.TrimRight(InNotation(Plain(summary)), ".")), "too slow: "); why != "" {
		said += " because " + why
	}
	return Clip(said, unenforcedRunes) + "."
}

const unenforcedRunes = 400

// enforcement is what blocks nothing, in sight. A warning has its mark.
func enforcement(v *gates.Verdict) []block {
	var blocks []block
	for _, said := range Unenforced(v) {
		sign := signInform
		if strings.HasPrefix(said, string(policy.EnforceWarn)) && !strings.Contains(said, "would be "+string(gates.Pass)+".") {
			sign = signError
		}
		blocks = append(blocks, paragraph{append(line{mark(sign), text(" ")}, prose(said)...)})
	}
	return blocks
}
