package facts

import (
	"fmt"
	"strings"
)

// A NotReached is a gate that was not run because an earlier one did not pass.
type NotReached struct{}

func (NotReached) Sentence() string { return "an earlier gate did not pass" }

// A Fault is what kept a run from its end: the runner's, or one of the base that both sides have.
type Fault struct {
	Setup bool // the base is at fault
	Text  string
}

func (f Fault) Sentence() string {
	if f.Setup {
		return "The setup is at fault, not the change: " + f.Text
	}
	return "The runner could not do its work: " + f.Text
}

// A Lacking is a required gate whose evidence is missing.
type Lacking struct {
	Gate string
	Why  Fact
}

func (l Lacking) Sentence() string {
	return fmt.Sprintf("The evidence lacks what the %s gate needs: %s", l.Gate, l.Why.Sentence())
}

// Gather is the advice for a gate whose evidence is missing.
type Gather struct {
	Gate string
	Why  Fact
}

func (g Gather) Step(Reader) string {
	return fmt.Sprintf("measure with a runner that provides what the %s gate lacks (%s), or ask for less in the policy", g.Gate, g.Why.Sentence())
}

// An AllPassed is a pass without a speed to show.
type AllPassed struct {
	Static bool // the kernel was compiled and not run
}

func (a AllPassed) Sentence() string {
	if a.Static {
		return "It compiles within its budgets. This was a static check: nothing was run."
	}
	return "Every required gate passed."
}

// Remaining is the end of the summary of a pass that leaves something wrong, or nothing.
func Remaining(existing []string) string {
	if len(existing) == 0 {
		return ""
	}
	return ". Not everything is right: " + strings.Join(existing, ", ") + "."
}

// A ChoosesBySize is a side that chooses between variants by the problem size.
type ChoosesBySize struct {
	Side   string
	Chosen string // which variant served which shapes
}

func (c ChoosesBySize) Sentence() string {
	return fmt.Sprintf("The %s chooses a variant by problem size: %s.", c.Side, c.Chosen)
}

// AsRefactoring is the advice to name a change as what it may be: its outputs are those of the baseline, and a rule for
// refactorings asks for no gain.
type AsRefactoring struct {
	Label string // that the rule asks for, or
	Title string // the pattern of its titles
	Rule  string
	Asked string // of the speed; empty where that is nothing
}

func (a AsRefactoring) Step(Reader) string {
	how := fmt.Sprintf("give it the label `%s`", a.Label)
	if a.Label == "" {
		how = fmt.Sprintf("give it a title that matches `%s`", a.Title)
	}
	asked := "nothing about its speed"
	if a.Asked != "" {
		asked = "only " + a.Asked
	}
	return fmt.Sprintf("or, if it is a refactoring, %s: the outputs are bit-identical to the baseline's, and the rule `%s` asks %s", how, a.Rule, asked)
}
