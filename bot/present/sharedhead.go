package present

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Beside is how another open pull request with the same head stands by itself.
// GitHub asks for a check by commit, and the newest of its name counts for every pull
// request that has the commit: a head that is wrong for one must not be let in by
// another, into a branch that asks nothing.
type Beside struct {
	Number   int
	Check    string // name of its required check
	sign     string
	title    string
	distance severity
}

// BesideOf is what other pull requests need to know of a change.
func BesideOf(v View) Beside {
	at := v.own()
	return Beside{Number: v.State.ID.Number, Check: v.checkName(), sign: at.sign, title: at.title, distance: severityOf(at.status, at.conclusion)}
}

// BesideCheck is the same, read from a check that was written for the other.
func BesideCheck(id change.ID, name, status, conclusion, title string) Beside {
	at := severityOf(status, conclusion)
	return Beside{Number: id.Number, Check: name, sign: at.sign(), title: title, distance: at}
}

// Told names what others know by BesideOf, so that they are told again when that
// changes. It begins with the head.
func Told(v View) string {
	b := BesideOf(v)
	return v.State.Facts.Head + " " + digest([]any{v.State.Facts.Open, b.Check, b.title, b.distance})
}

// ToldHead is the head that Told was about.
func ToldHead(told string) string {
	head, _, _ := strings.Cut(told, " ")
	return head
}

// IsSharedHead tells whether a check's title tells of another pull request, and so not how
// its own stands.
func IsSharedHead(title string) bool { return sharedHeadTitle.MatchString(title) }

var sharedHeadTitle = regexp.MustCompile(`^#[0-9]+ has the same head: `)

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
	return [...]string{passes: signPass, unfinished: signWorking, waits: signDefer, ended: signCancelled, fails: signFail}[r]
}

// worst is what the required check says, given how the change itself stands: the worst
// of all that have its head. As long as the change itself is not done, that is what it says.
func (v View) worst(own checkStatus) checkStatus {
	var other *Beside
	least := severityOf(own.status, own.conclusion)
	if least == unfinished {
		return own
	}
	for i, b := range v.Beside {
		if b.Check == v.checkName() && b.distance > least {
			other, least = &v.Beside[i], b.distance
		}
	}
	if other == nil {
		return own
	}
	lead := fmt.Sprintf("GitHub requires this check per commit, and #%d has the same head. So the check shows the worse verdict of the two, until one of them is closed or gets a different head.\n\n"+
		"#%d: %s %s.\n\nThis pull request: %s %s.", other.Number, other.Number, other.sign, clause(other.title), own.sign, clause(own.heading))
	status, conclusion := completed, failure
	switch other.distance {
	case unfinished:
		status, conclusion = inProgress, ""
	case waits:
		conclusion = actionRequired
	case ended:
		conclusion = cancelled
	}
	at := newCheckStatus(other.sign, status, conclusion, fmt.Sprintf("#%d has the same head: %s", other.Number, other.title), lead)
	at.heading = fmt.Sprintf("#%d has the same head, and does not pass", other.Number) // how it stands follows
	return at
}

func clause(title string) string { return report.EscapeProse(strings.TrimSuffix(title, ".")) }
