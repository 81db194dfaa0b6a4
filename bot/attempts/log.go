// Package attempts counts how often each machine code is measured, so that the error rate that a policy allows is spent once
// for each code and not once for each push.
//
// A Log is what the journal has about one machine code, one set of sources, one pull request or one author. A Key names the
// logs that a run belongs to. A Store reads and writes them: it tells a runner what was measured before (Prior), gives an
// attempt its number before its first round (Start), refuses rounds that were not counted (Verify), and keeps the evidence
// for the next attempt at the same code (Record, Carry). A program without a journal writes Marks, and Count gives an attempt
// the same number.
package attempts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/compat"
	"github.com/kernelgate/kernelgate/runners"
)

// A Log is what the bot knows about one machine code, or about one set of sources, whichever
// commit, pull request or merge group brought it: how many attempts were made to measure it, and
// the evidence that they left.
//
// A policy allows an error rate for one machine code, and every attempt at it spends a share. If
// attempts were counted by commit, a push that changes no machine code would be a new chance, and
// a cancelled or failed attempt would be free: an author just below the threshold could try until
// luck lets the change pass. So an attempt is written down before its first round, and no attempt
// is ever forgotten: the journal keeps these events forever. There is an event only for an attempt
// that a runner has worked on.
//
// Sources have logs too, which only count: they may build to different machine code each time
// (__TIME__ does that), and that is no new chance either.
//
// A pull request's kernel has a log, and so has an author's work on one kernel against one
// baseline. These list the distinct machine codes that were measured, in order. The index of a
// code in these lists is its number, and the n-th code may spend only a part of the error rate
// that shrinks with n: two hundred variants of a kernel together have one chance, not two hundred.
type Log struct {
	Seq      uint64 // of the last event; 0 before the first
	Attempts int    // the number of the last one
	// CodeNumber is the number that the machine code was given at its first attempt; 0
	// before that. Its evidence has the same number in all rounds, so it never changes.
	CodeNumber  int
	codeIndexes map[string]int // of the listed codes, from 1
	numbers     map[LeaseRef]int
	found       map[gathered]Found // the newest of each
}

// gathered says what evidence is about. Machine code with a different dispatch is a different
// kernel, so its evidence is separate, while the attempts count together.
type gathered struct {
	attempt  int
	dispatch string
}

// NewLog is a log before its first event.
func NewLog() *Log {
	return &Log{numbers: map[LeaseRef]int{}, found: map[gathered]Found{}, codeIndexes: map[string]int{}}
}

// A Key is what evidence depends on in addition to the machine code. The bot knows all of it
// without asking a runner.
type Key struct {
	Repo         int64
	Folder       string // of the kernel
	Requirements string // digest of manifest and reference
	Policy       string // hash
	// Label is the device that the run is for, if the policy asks for a run on each of several. Two
	// devices share no evidence, even if their GPUs have one name. Informs says that its verdict blocks
	// nothing.
	Label   string
	Informs bool
}

// words is what the name of a log depends on. A key without a label has the names that it always had.
func (m Key) words(words ...string) []string {
	if m.Label != "" {
		words = append(words, "on", m.Label)
	}
	return words
}

// KeyOf is a run's.
func KeyOf(id change.ID, p *change.Plan, run change.Run) Key {
	policy := sha256.Sum256([]byte(p.Policy))
	return Key{
		Repo: id.Repo, Folder: run.Folder, Requirements: run.RequirementsDigest, Policy: hex.EncodeToString(policy[:]), Label: run.Device, Informs: run.Informs,
	}
}

// OfCode names the log of a machine code, as a subject in the journal.
func (m Key) OfCode(c runners.Code) string {
	return fmt.Sprintf("code-%d-%s", m.Repo, c.Hash(m.words(m.Folder, m.Requirements, m.Policy)...))
}

// OfSources names the log of the sources that the code was built from, by the same compiler
// on the same device. What the tuner picks differs from run to run, and the attempts at all picks count.
func (m Key) OfSources(sources string, c runners.Code) string {
	c.Baseline, c.Candidate, c.Picks = "", "", ""
	return fmt.Sprintf("sources-%d-%s", m.Repo, c.Hash(m.words(m.Folder, m.Requirements, m.Policy, sources)...))
}

// Listed names a candidate's machine code in the lists of a pull request and of an author. The
// same code with different requirements is a different entry, with separate attempts. The same
// code against a different baseline is not: only the base branch has moved on. Different picks of the tuner are a different
// entry, since their rounds are not pooled.
func (m Key) Listed(c runners.Code) string {
	c.Baseline = ""
	return c.Hash(m.words(m.Requirements)...)
}

// OfPull names the list of machine codes of a pull request. The list is the same for every
// baseline, for every author of a push, and for all devices that block: a head passes if it passes on
// each, and with a list for each device an author could let one code be wrong on one device and the
// next code on another, and spend the whole error rate once for each. A device that informs spends
// nothing of it.
func (m Key) OfPull(number int) string {
	words := []string{m.Folder, strconv.Itoa(number)}
	if m.Informs {
		words = m.words(words...)
	}
	return fmt.Sprintf("pullcodes-%d-%s", m.Repo, runners.Code{}.Hash(words...))
}

// OfAuthor names the list of the machine codes that an author's pull requests brought
// against one baseline on one device. After a merge that changes the kernel, the baseline
// is a different one, and the author has a new list. A different pick of the tuner does not give a new list.
func (m Key) OfAuthor(author string, c runners.Code) string {
	c.Candidate, c.Compiler, c.Picks = "", "", ""
	return fmt.Sprintf("authorcodes-%d-%s", m.Repo, c.Hash(m.words(m.Folder, strings.ToLower(author))...))
}

// A LeaseRef is one runner's lease of one job.
type LeaseRef struct {
	Job   string `json:"job"`
	Token uint64 `json:"token"`
}

// Begun says that an attempt begins: its rounds may be seen from now on.
type Begun struct {
	LeaseRef
	Attempt    int    `json:"attempt"`
	CodeNumber int    `json:"code_number"` // of the machine code
	Head       string `json:"head"`
}

// Listed says that a machine code is measured for the first time in this list.
type Listed struct {
	Code string `json:"code"` // see Key.Listed
}

// Found says what evidence there is.
type Found struct {
	LeaseRef
	Attempt  int    `json:"attempt"` // of the last round; 0 where nothing was timed
	Head     string `json:"head"`    // what it was gathered for
	Evidence string `json:"evidence"`
	// Dispatch is that of the run.
	Dispatch string `json:"dispatch,omitempty"`
}

// Kinds of events.
const (
	BegunKind  = "begun"
	FoundKind  = "found"
	ListedKind = "listed"
)

// Apply adds an event that this program has stored.
func (a *Log) Apply(seq uint64, kind string, data []byte) error {
	return a.apply(compat.Writer{}, seq, kind, data)
}

// apply adds an event that another version may have stored.
func (a *Log) apply(from compat.Writer, seq uint64, kind string, data []byte) error {
	switch kind {
	case BegunKind:
		var b Begun
		if err := from.Decode(kind, data, &b); err != nil {
			return fmt.Errorf("reading a stored attempt: %w", err)
		}
		a.begin(b)
	case FoundKind:
		var f Found
		if err := from.Decode(kind, data, &f); err != nil {
			return fmt.Errorf("reading stored evidence: %w", err)
		}
		a.found[gathered{f.Attempt, f.Dispatch}] = f
	case ListedKind:
		var l Listed
		if err := from.Decode(kind, data, &l); err != nil {
			return fmt.Errorf("reading a stored machine code: %w", err)
		}
		a.list(l.Code)
	default:
		return from.Unknown(fmt.Sprintf("an event of the kind %q", kind))
	}
	a.Seq = seq
	return nil
}

func (a *Log) begin(b Begun) {
	a.numbers[b.LeaseRef] = b.Attempt
	a.Attempts = max(a.Attempts, b.Attempt)
	if a.CodeNumber == 0 {
		a.CodeNumber = b.CodeNumber
	}
}

func (a *Log) list(code string) {
	if _, ok := a.codeIndexes[code]; !ok {
		a.codeIndexes[code] = len(a.codeIndexes) + 1
	}
}

// Number is the number of the attempt that a lease started; ok is false where it started none.
func (a *Log) Number(c LeaseRef) (attempt int, ok bool) {
	attempt, ok = a.numbers[c]
	return attempt, ok
}

// Next is the attempt that a lease starts now: one more than any before it, and at
// least the number that another log has given it. The machine code has the number
// of its first attempt, or the given one if this is the first. ok is false where the
// lease has started one already.
func (a *Log) Next(c LeaseRef, least, codeNumber int, head string) (b Begun, ok bool) {
	if _, begun := a.numbers[c]; begun {
		return Begun{}, false
	}
	return Begun{LeaseRef: c, Attempt: max(least, a.Attempts+1), CodeNumber: cmp.Or(a.CodeNumber, codeNumber), Head: head}, true
}

// IndexOf is where in the list a machine code is, from 1; 0 if it is not listed.
func (a *Log) IndexOf(code string) int { return a.codeIndexes[code] }

// Best is the evidence to go on with for runs of a dispatch: that of the last attempt that
// left any.
func (a *Log) Best(dispatch string) (best Found, ok bool) {
	for of, f := range a.found {
		if of.dispatch == dispatch && (!ok || of.attempt > best.Attempt) {
			best, ok = f, true
		}
	}
	return best, ok
}

// Of is the evidence that an attempt left about runs of a dispatch.
func (a *Log) Of(attempt int, dispatch string) (Found, bool) {
	f, ok := a.found[gathered{attempt, dispatch}]
	return f, ok
}
