package change

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/kernelgate/kernelgate/runners"
)

// An Account is what the bot knows of one machine code, or of one set of
// sources, whatever commit, pull request or merge group brought it: how many
// attempts were made at measuring it, and the evidence that is left of them.
//
// The error rate that a policy allows is one machine code's, and every attempt at
// it spends a share. Kept by commit, a push that changes no machine code would be a
// new chance, and what is cancelled or fails would be no attempt: who stands just
// below the threshold could ask until luck lets him pass. So an attempt is written
// down before its first round, and nothing here is ever forgotten: the journal
// keeps these events for good, and there is one for an attempt that a runner has
// worked at, not for what somebody says in passing.
//
// Sources have accounts too, which count alone: they may build to other machine
// code each time (__TIME__ does that), and that is no new chance either.
type Account struct {
	Seq      uint64 // of the last event; 0 before the first
	Attempts int    // the number of the last one
	numbers  map[Claim]int
	found    map[int]Found // the newest of each attempt
	best     int           // the attempt with the newest evidence; -1 without any
}

// NewAccount is one before its first event.
func NewAccount() *Account {
	return &Account{numbers: map[Claim]int{}, found: map[int]Found{}, best: -1}
}

// A Matter is what evidence depends on beside the machine code. All of it is the
// bot's own knowledge, not a runner's word.
type Matter struct {
	Repo   int64
	Folder string // of the kernel
	Asks   string // digest of manifest and reference
	Policy string // hash
}

// MatterOf is a run's.
func MatterOf(id ID, p *Plan, run Run) Matter {
	policy := sha256.Sum256([]byte(p.Policy))
	return Matter{Repo: id.Repo, Folder: run.Folder, Asks: run.Asks, Policy: hex.EncodeToString(policy[:])}
}

// OfCode names the account of a machine code, as a subject in the journal.
func (m Matter) OfCode(c runners.Code) string {
	return fmt.Sprintf("code-%d-%s", m.Repo, c.Hash(m.Folder, m.Asks, m.Policy))
}

// OfSources names the account of what the code was built from, by the same compiler
// on the same device.
func (m Matter) OfSources(sources string, c runners.Code) string {
	c.Baseline, c.Candidate = "", ""
	return fmt.Sprintf("sources-%d-%s", m.Repo, c.Hash(m.Folder, m.Asks, m.Policy, sources))
}

// A Claim is one runner's hold of one job.
type Claim struct {
	Job   string `json:"job"`
	Token uint64 `json:"token"`
}

// Begun says that an attempt begins: its rounds may be seen from now on.
type Begun struct {
	Claim
	Attempt int    `json:"attempt"`
	Head    string `json:"head"`
}

// Found says what evidence there is.
type Found struct {
	Claim
	Attempt  int    `json:"attempt"` // of the last round; 0 where nothing was timed
	Head     string `json:"head"`    // what it was gathered for
	Evidence string `json:"evidence"`
}

// Kinds of events.
const (
	BegunKind = "begun"
	FoundKind = "found"
)

// Apply adds a stored event.
func (a *Account) Apply(seq uint64, kind string, data []byte) error {
	switch kind {
	case BegunKind:
		var b Begun
		if err := json.Unmarshal(data, &b); err != nil {
			return fmt.Errorf("reading a stored attempt: %w", err)
		}
		a.numbers[b.Claim] = b.Attempt
		a.Attempts = max(a.Attempts, b.Attempt)
	case FoundKind:
		var f Found
		if err := json.Unmarshal(data, &f); err != nil {
			return fmt.Errorf("reading stored evidence: %w", err)
		}
		a.found[f.Attempt] = f
		a.best = max(a.best, f.Attempt)
	default:
		return fmt.Errorf("an event of the unknown kind %q (it was written by a newer kernelgate: install that one)", kind)
	}
	a.Seq = seq
	return nil
}

// Number is which attempt the claim began; ok is false where it began none.
func (a *Account) Number(c Claim) (attempt int, ok bool) {
	attempt, ok = a.numbers[c]
	return attempt, ok
}

// Next is the attempt that a claim begins now: one more than any before it, and at
// least the number that another account has given it. ok is false where it has
// begun already.
func (a *Account) Next(c Claim, least int, head string) (b Begun, ok bool) {
	if _, begun := a.numbers[c]; begun {
		return Begun{}, false
	}
	return Begun{Claim: c, Attempt: max(least, a.Attempts+1), Head: head}, true
}

// Best is the evidence to go on with: that of the last attempt that left any.
func (a *Account) Best() (Found, bool) {
	f, ok := a.found[a.best]
	return f, ok
}

// Of is the evidence that an attempt left.
func (a *Account) Of(attempt int) (Found, bool) {
	f, ok := a.found[attempt]
	return f, ok
}
