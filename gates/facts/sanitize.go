package facts

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A Finding is one mistake of the kernel, as often as a sanitizer saw it.
type Finding struct {
	Tool      string      `json:"tool,omitempty"` // in a verdict
	Kind      FindingKind `json:"kind"`
	Text      string      `json:"text"`               // what was seen, such as "a race between write and read of shared memory"
	Severity  string      `json:"severity,omitempty"` // error unless given; warning, or info, which decides nothing
	File      string      `json:"file,omitempty"`     // from the kernel's folder
	Line      int         `json:"line,omitempty"`
	OtherFile string      `json:"other_file,omitempty"` // a race's second access
	OtherLine int         `json:"other_line,omitempty"`
	Kernel    string      `json:"kernel,omitempty"` // the function
	Shape     string      `json:"shape,omitempty"`  // of the first case, where the tool can tell
	Cases     []int       `json:"cases,omitempty"`  // all of them, by their place in the list of cases, where the tool can tell
	Count     int         `json:"count,omitempty"`
	Before    bool        `json:"before,omitempty"` // in a verdict: the baseline has it as well
}

// A FindingKind is what a sanitizer found.
type FindingKind string

const (
	KindRace          FindingKind = "race"
	KindOutOfBounds   FindingKind = "out-of-bounds"
	KindMisaligned    FindingKind = "misaligned"
	KindUninitialised FindingKind = "uninitialised-read"
	KindBarrier       FindingKind = "barrier"
	KindUseAfterFree  FindingKind = "use-after-free"
	KindUndefined     FindingKind = "undefined" // what the language gives no meaning, such as a signed overflow
	KindLeak          FindingKind = "leak"
	KindOther         FindingKind = "other"
)

// Sentence is the finding in one line: the tool, what it saw, where, and how often.
func (f Finding) Sentence() string {
	text := f.Text
	if f.Tool != "" {
		text = f.Tool + ": " + text
	}
	switch {
	case f.File != "":
		text += " in " + f.lines()
	case f.Kernel != "":
		text += " in " + f.Kernel
	}
	if f.Count > 1 {
		unit := "times"
		if f.Kind == KindRace {
			unit = "hazards"
		}
		text += fmt.Sprintf(" (%s %s)", number.Thousands(f.Count), unit)
	}
	if f.Before {
		text += " (the baseline has it as well)"
	}
	return text
}

func (f Finding) String() string { return f.Sentence() }

// lines is the line, or both lines of a race.
func (f Finding) lines() string {
	text := fmt.Sprintf("%s:%d", f.File, f.Line)
	switch {
	case f.OtherFile == "" || f.OtherFile == f.File && f.OtherLine == f.Line:
	case f.OtherFile == f.File:
		text += fmt.Sprintf(" and :%d", f.OtherLine)
	default:
		text += fmt.Sprintf(" and %s:%d", f.OtherFile, f.OtherLine)
	}
	return text
}

// A NotSearched is a kernel that no sanitizer has searched.
type NotSearched struct {
	Why  Fact
	Note bool // as a note of the verdict
}

func (n NotSearched) Sentence() string {
	if n.Note {
		return "Nothing checked for races and bad accesses: " + n.Why.Sentence()
	}
	return "races and bad accesses were not checked: " + n.Why.Sentence()
}

// A NoSanitizer is evidence of a runner that ran none.
type NoSanitizer struct{}

func (NoSanitizer) Sentence() string { return "no sanitizer was run" }

// UseRunnerWithTools is the advice to it.
type UseRunnerWithTools struct{}

func (UseRunnerWithTools) Step(Reader) string {
	return "run kernelgate check on a runner that has the tools"
}

// A ToolLacking is a sanitizer that the policy asks for and the runner did not run.
type ToolLacking struct {
	Tool string
	Why  string // empty where the evidence does not say
}

func (t ToolLacking) Sentence() string {
	if t.Why == "" {
		return t.Tool + " " + t.Reason()
	}
	return t.Tool + ": " + t.Why
}

// Reason is the fact without the tool's name.
func (t ToolLacking) Reason() string {
	if t.Why == "" {
		return "was not run"
	}
	return t.Why
}

// A NotSanitized is cases that the policy asks for and no sanitizer has seen.
type NotSanitized struct{ Missing []Fact }

func (n NotSanitized) Sentence() string {
	return "not run under the sanitizers: " + join(n.Missing, ", ")
}

// An InputNotSanitized is one of them.
type InputNotSanitized struct{ Shape, Distribution string }

func (i InputNotSanitized) Sentence() string {
	return fmt.Sprintf("%s, %s inputs", i.Shape, i.Distribution)
}

// A Clean is a search that found nothing, or nothing new.
type Clean struct {
	Ran      []string
	Cases    int
	Existing int // findings that the baseline has as well
	Lacking  []ToolLacking
}

func (c Clean) Sentence() string {
	text := fmt.Sprintf("%s found nothing in %s", strings.Join(c.Ran, ", "), number.Plural(c.Cases, "case"))
	switch {
	case len(c.Ran) == 0:
		text = "there is nothing for these tools to find in this kernel"
	case c.Existing > 0:
		text = fmt.Sprintf("%s found nothing new in %s; as before this change: %s (see below)",
			strings.Join(c.Ran, ", "), number.Plural(c.Cases, "case"), number.Plural(c.Existing, "finding"))
	}
	if len(c.Lacking) > 0 {
		text += "; not checked: " + join(c.Lacking, "; ")
	}
	return text
}

// An ExistingFindings is findings that the baseline has as well, in a few words.
type ExistingFindings struct{ Findings int }

func (e ExistingFindings) Sentence() string {
	return number.Plural(e.Findings, "sanitizer finding") + " as before"
}

// A FaultyBaseline is the note about them.
type FaultyBaseline struct {
	First Finding
	More  int
}

func (f FaultyBaseline) Sentence() string {
	more := ""
	if f.More > 0 {
		more = fmt.Sprintf(", and %d more", f.More)
	}
	f.First.Before = false // the sentence says so
	return fmt.Sprintf("The baseline has a mistake that this change did not cause: %s%s. Fix it on the base branch.", f.First.Sentence(), more)
}

// A Faulty is a kernel in which the sanitizers found mistakes.
type Faulty struct {
	Findings []Finding
	Hidden   int  // findings that are not listed
	Existed  bool // the baseline has all of them as well
}

func (f Faulty) Sentence() string {
	if len(f.Findings) == 0 {
		return fmt.Sprintf("The sanitizers found %d faults and list none", f.Hidden)
	}
	text := f.Findings[0].Sentence()
	if more := len(f.Findings) - 1 + f.Hidden; more > 0 {
		text += fmt.Sprintf("; %d more", more)
	}
	if f.Existed {
		text += ". It was there before this change"
	}
	return text
}

// A HiddenFindings is findings that a tool does not list.
type HiddenFindings struct{ Findings int }

func (h HiddenFindings) Sentence() string {
	return fmt.Sprintf("and %d more that are not listed", h.Findings)
}

// FixFindings is the advice to them.
type FixFindings struct {
	Existed bool // the baseline has all of them as well, and the policy defers for them
}

func (f FixFindings) Step(Reader) string {
	if f.Existed {
		return "fix it in this change or on the base branch first: the policy also defers for findings of the baseline (gates.sanitize.existing)"
	}
	return "fix what the sanitizers found"
}

// A ToolFailed is a sanitizer that gave no answer about the candidate.
type ToolFailed struct{ Tool, Detail string }

func (t ToolFailed) Sentence() string { return t.Tool + ": " + t.Detail }

// RunToEnd is the advice for a kernel that fails under a sanitizer.
type RunToEnd struct{ Under string }

func (r RunToEnd) Step(Reader) string { return "make the kernel run to its end under " + r.Under }

// SanitizeLess is the advice for a sanitizer that does not come to an end.
type SanitizeLess struct{}

func (SanitizeLess) Step(Reader) string {
	return "name a smaller shape in gates.sanitize.shapes, or raise gates.sanitize.timeout"
}

// LookForRace is the advice for a kernel that is right at one time and wrong at another.
type LookForRace struct {
	CPU      bool
	Searched Searched
	Shapes   string // that were searched
}

// Searched is what is known about races in a kernel.
type Searched int

const (
	NoSanitizeGate Searched = iota // the policy has no sanitize gate
	NotYetSearched                 // it has one, which an earlier gate kept from running
	NothingFound
)

func (l LookForRace) Step(Reader) string {
	cause := "look for a race"
	if l.CPU {
		cause = "look for memory that is read before it is written, or that several threads use at once"
	}
	switch l.Searched {
	case NoSanitizeGate:
		return cause + ": write sanitize: {shapes: [SMALL]} below gates in the policy, with the name of a small shape, and run kernelgate check"
	case NotYetSearched:
		return cause + ": run kernelgate check --policy with a copy of the policy that has determinism: false, so that the sanitize gate runs"
	}
	return fmt.Sprintf("%s: the sanitizers found nothing on %s; name more shapes in gates.sanitize.shapes and run kernelgate check", cause, l.Shapes)
}
