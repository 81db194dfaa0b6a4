package runners

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
)

// A Record remembers what was measured about machine code, for whichever commit. It is asked twice:
// after the build, and before the first round.
//
// An attempt counts from before its first round, whatever happens to it. If cancelled or failed
// attempts did not count, a user could retry until a kernel that is not faster passes by luck.
// Before that point no time was taken, and nothing was left to luck.
type Record interface {
	// Earlier finds what is known about the code.
	Earlier(ctx context.Context, c Code) (Earlier, error)
	// Begin counts one more attempt. If the same run asks again, it returns the same attempt.
	Begin(ctx context.Context, c Code) (Attempt, error)
}

// An Attempt says how a measurement counts against the policy's error rate.
type Attempt struct {
	Number int // number of the attempt at this machine code, from 1
	// CodeNumber means that the code is the n-th distinct machine code of the change or of its
	// author, from 1. It is the same for all attempts at the code.
	CodeNumber int
}

// A Code is what a measurement is about: the machine code of both sides, what built it and what
// runs it. The commit is not part of it.
type Code struct {
	Baseline  string `json:"baseline,omitempty"` // hash; none for a new kernel
	Candidate string `json:"candidate"`
	Compiler  string `json:"compiler,omitempty"`
	Device    string `json:"device"`
	Arch      string `json:"arch,omitempty"`
	// Picks identifies the configurations of @triton.autotune that the tuner picked on either side. The
	// machine code is that of all configurations, and rounds of different picks are not about the same kernel.
	Picks string `json:"picks,omitempty"`
}

// CodeOf returns what the evidence is about. ok is false if a side did not build.
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
	c.Picks = picksOf(e)
	return c, true
}

// picksOf identifies which configuration runs at which shape of either side; "" if nothing was picked.
func picksOf(e *gates.Evidence) string {
	h, picked := sha256.New(), false
	for role, b := range []*gates.Build{e.Baseline, e.Candidate} {
		if b == nil {
			continue
		}
		parts := []gates.Build{*b}
		for _, part := range b.Parts {
			parts = append(parts, part.Build)
		}
		for _, part := range parts {
			if part.Tuning == nil {
				continue
			}
			for _, pick := range part.Tuning.Picks {
				picked = true
				fmt.Fprintf(h, "%d %q %q %q\n", role, part.Variant, pick.Shape, pick.Configuration)
			}
		}
	}
	if !picked {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Hash identifies the code together with everything else that its evidence depends on.
func (c Code) Hash(with ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q %q", c.Baseline, c.Candidate, c.Compiler, c.Device, c.Arch, with)
	if c.Picks != "" { // names of logs without picks stay as they are
		fmt.Fprintf(h, " %q", c.Picks)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Earlier is what is known about a code.
type Earlier struct {
	Evidence *gates.Evidence // to continue with; nil if there is none
	Head     string          // the commit for which it was measured
	Again    bool            // somebody wants more rounds, whether or not there is a verdict
}
