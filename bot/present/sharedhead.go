package present

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Beside is how another open pull request or merge group with the same head stands by itself.
// GitHub asks for a check by commit, and the newest of its name counts for everything that
// has the commit. So a commit has one truth: the worst of all that ask something of it. A head that
// is wrong for one base must not be let in by another, into a branch that asks nothing. That the policies name different
// checks does not matter: a branch may require a check that its policy does not name any more.
type Beside struct {
	ID       change.ID
	Base     string // the branch that it goes to; "" where that is not known
	stranger bool   // from a fork, and nobody has approved it
	sign     string
	title    string
	distance severity
}

// BesideOf is what other changes need to know of a change.
func BesideOf(v View) Beside {
	at := v.own()
	return Beside{ID: v.State.ID, Base: v.State.Facts.Base, stranger: v.State.Held(), sign: at.sign, title: at.title, distance: severityOf(at.status, at.conclusion)}
}

// BesideCheck is the same, read from a check that was written for the other. The facts of a merge group
// are not known.
func BesideCheck(id change.ID, f change.Facts, status, conclusion, title string) Beside {
	at := severityOf(status, conclusion)
	return Beside{ID: id, Base: f.Base, stranger: f.Fork && at != passes, sign: at.sign(), title: title, distance: at}
}

// name is how a sentence calls it.
func (b Beside) name() string {
	if b.ID.Kind == change.Pull {
		return fmt.Sprintf("#%d", b.ID.Number)
	}
	return "A merge group"
}

// Told names what others know by BesideOf, so that they are told again when that
// changes. It begins with the head.
func Told(v View) string {
	b := BesideOf(v)
	return v.State.Facts.Head + " " + digest([]any{v.State.Facts.Open, b.Base, b.stranger, b.title, b.distance})
}

// ToldHead is the head that Told was about.
func ToldHead(told string) string {
	head, _, _ := strings.Cut(told, " ")
	return head
}

// IsSharedHead tells whether a check's title tells of another change, and so not how
// its own stands.
func IsSharedHead(title string) bool { return sharedHeadTitle.MatchString(title) }

var sharedHeadTitle = regexp.MustCompile(`^(#[0-9]+|A merge group) has the same head`)

// A severity says how far something is from passing.
type severity int

const (
	passes severity = iota
	unfinished
	waits
	ended
	fails
)

func severityOf(status, conclusion string) severity {
	switch {
	case status != completed:
		return unfinished
	case conclusion == success:
		return passes
	case conclusion == actionRequired:
		return waits
	case conclusion == cancelled:
		return ended
	}
	return fails
}

func (r severity) sign() string {
	return [...]string{passes: signPass, unfinished: signWorking, waits: signWaits, ended: signCancelled, fails: signFail}[r]
}

// answeredBy is the other change that answers for a stranger's pull request: one that goes to the same
// branch with the same head asks the same question, and its code is not the stranger's. So a
// stranger cannot make somebody else's commit wait for an approval.
func answeredBy(stranger bool, base string, others []Beside) *Beside {
	if !stranger || base == "" {
		return nil
	}
	if i := slices.IndexFunc(others, func(b Beside) bool { return !b.stranger && b.Base == base }); i >= 0 {
		return &others[i]
	}
	return nil
}

// answeredBy is the change that answers for this one, if it is a stranger's. Without a plan a stranger's
// pull request then has no check: which name its base requires is not known, and the commit is not the stranger's.
func (v View) answeredBy() *Beside {
	return answeredBy(v.State.Held(), v.State.Facts.Base, v.Beside)
}

// worst is what the required check says, given how the change itself stands: the worst
// of all that have its head. As long as the change itself is not done, that is what it says.
func (v View) worst(own checkStatus) checkStatus {
	ownBase := Beside{ID: v.State.ID, Base: v.State.Facts.Base, stranger: v.State.Held()}
	least := severityOf(own.status, own.conclusion)
	if by := v.answeredBy(); by != nil {
		own, least = v.answered(*by), passes
	} else if least == unfinished {
		return own
	}
	var other *Beside
	for i, b := range v.Beside {
		counts := answeredBy(b.stranger, b.Base, append(slices.Clone(v.Beside), ownBase)) == nil
		if counts && b.distance > least {
			other, least = &v.Beside[i], b.distance
		}
	}
	if other == nil {
		return own
	}
	lead := fmt.Sprintf("GitHub requires this check per commit. %s has the same head and goes to %s, so the check shows the worse verdict of the two, until one of them is closed or gets a different head.\n\n"+
		"%s: %s %s.\n\nThis change: %s %s.", other.name(), baseName(other.Base), other.name(), other.sign, clause(other.title), own.sign, clause(own.heading))
	status, conclusion := completed, failure
	switch other.distance {
	case unfinished:
		status, conclusion = inProgress, ""
	case waits:
		conclusion = actionRequired
	case ended:
		conclusion = cancelled
	}
	at := newCheckStatus(other.sign, status, conclusion, fmt.Sprintf("%s has the same head: %s", other.name(), other.title), lead)
	at.heading = fmt.Sprintf("%s has the same head, and does not pass", other.name()) // how it stands follows
	return at
}

// answered is a stranger's pull request that another change answers for.
func (v View) answered(by Beside) checkStatus {
	lead := fmt.Sprintf("%s has the same head and goes to the same branch. It asks the same of this commit, so its verdict counts for both, and no code of the fork runs.", by.name())
	return newCheckStatus(signPass, completed, success, fmt.Sprintf("%s has the same head and passes", by.name()), lead)
}

func baseName(base string) string {
	if base == "" {
		return "its branch"
	}
	return report.EscapeCode(report.Clip(report.Plain(base), nameRunes))
}

func clause(title string) string { return report.EscapeProse(strings.TrimSuffix(title, ".")) }
