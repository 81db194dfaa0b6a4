package runners

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
)

// A Record remembers what was measured of machine code, for whatever commit that
// was. It is asked twice: after the build, and before the first round.
//
// An attempt counts from before its first round, whatever becomes of it: if what
// is cancelled or fails did not count, one could ask again until luck passes what
// is not faster. Before that no time was taken, and nothing was left to luck.
type Record interface {
	// Earlier finds what is known of the code.
	Earlier(ctx context.Context, c Code) (Earlier, error)
	// Begin counts one more attempt. Asked again by the same run it returns the same
	// one.
	Begin(ctx context.Context, c Code) (Attempt, error)
}

// An Attempt is how a measurement counts against the policy's error rate.
type Attempt struct {
	Number int // of the attempt at this machine code, from 1
	// CodeNumber says that the code is the n-th distinct machine code of the change or of
	// its author, from 1. It is the same for all attempts at the code.
	CodeNumber int
}

// A Code is what a measurement is about: the machine code of both sides, what
// built it and what runs it. A commit is no part of it.
type Code struct {
	Baseline  string `json:"baseline,omitempty"` // hash; none for a kernel that is new
	Candidate string `json:"candidate"`
	Compiler  string `json:"compiler,omitempty"`
	Device    string `json:"device"`
	Arch      string `json:"arch,omitempty"`
}

// CodeOf is what the evidence is about; ok is false where a side did not build.
func CodeOf(e *gates.Evidence) (c Code, ok bool) {
	if e.Candidate == nil || e.Candidate.Code == "" || !e.Candidate.OK {
		return Code{}, false
	}
	c = Code{Candidate: e.Candidate.Code, Compiler: e.Candidate.Compiler, Device: e.Device.Name, Arch: e.Device.Arch}
	if b := e.Baseline; b != nil {
		if b.Code == "" || !b.OK {
			return Code{}, false
		}
		c.Baseline = b.Code
		if b.Compiler != c.Compiler {
			c.Compiler += ", " + b.Compiler
		}
	}
	return c, true
}

// Hash names the code together with what else its evidence depends on.
func (c Code) Hash(with ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q %q", c.Baseline, c.Candidate, c.Compiler, c.Device, c.Arch, with)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Earlier is what is known of a code.
type Earlier struct {
	Evidence *gates.Evidence // to go on with; nil where there is none
	Head     string          // the commit that it was measured for
	Again    bool            // somebody wants more rounds, whether or not a verdict has fallen
}
