// Package grammar parses the commands that people write in the comments of a pull request, such as
// /rebench sdpa_fp8 rounds=20. Parse finds the command in a comment, as GitHub renders it; Request
// is its stored form; Help lists the commands. It knows only the syntax and which role of the
// policy a command needs. It does not check the author's role, which the caller does, or whether a
// kernel or a ref exists, which the planner does.
package grammar

import (
	"fmt"
	"strconv"
	"strings"
)

// A Command is one of Rebench, Why, Tune, Bisect, Cancel, Explain, Override, OKToTest, ApprovePolicy and ShowHelp. The
// grammar has an entry for each. String formats it as a comment; for a command from Parse, Parse
// reads that comment back to the same command.
type Command interface {
	fmt.Stringer
	// Name returns the word after the slash.
	Name() string
}

// Rebench requests another measurement. Empty fields are as in the policy.
type Rebench struct {
	Kernels []string `json:"kernels,omitempty"` // folders or names
	Device  string   `json:"device,omitempty"`  // of the policy; "" means all of them
	Shapes  []string `json:"shapes,omitempty"`
	Seeds   []int64  `json:"seeds,omitempty"`
	Rounds  int      `json:"rounds,omitempty"`
	Versus  string   `json:"versus,omitempty"` // a branch, a tag, a commit, or Self
	Profile bool     `json:"profile,omitempty"`
}

// Self as Rebench.Versus measures the candidate against itself, which shows the noise of the
// machine.
const Self = "self"

// Why asks why a kernel became faster or slower. A word is a kernel if the change touches one of that
// name, and otherwise a shape.
type Why struct {
	Words  []string `json:"words,omitempty"`
	Shapes []string `json:"shapes,omitempty"` // that were named as such
}

// Cancel stops the run of the pull request's head.
type Cancel struct{}

// Explain asks which rule applies and what it requires.
type Explain struct{}

// Override lets the head pass in spite of the gates. The reason is unescaped: escape it before you
// show it.
type Override struct {
	Reason string `json:"reason"`
}

// OKToTest lets one commit of a fork reach a runner. SHA consists of lower-case hex digits and may
// be incomplete: the code that decides about the approval can reply with the full id.
type OKToTest struct {
	SHA string `json:"sha"`
}

// ApprovePolicy lets one commit change the gate's rules. SHA is as in OKToTest.
type ApprovePolicy struct {
	SHA string `json:"sha"`
}

// ShowHelp lists the commands.
type ShowHelp struct{}

func (Rebench) Name() string       { return "rebench" }
func (Why) Name() string           { return "why" }
func (Cancel) Name() string        { return "cancel" }
func (Explain) Name() string       { return "explain" }
func (Override) Name() string      { return "override" }
func (OKToTest) Name() string      { return "ok-to-test" }
func (ApprovePolicy) Name() string { return "approve-policy" }
func (ShowHelp) Name() string      { return "help" }

func (r Rebench) String() string {
	words := append(append([]string{"/rebench"}, r.Kernels...), deviceWords(r.Device)...)
	if len(r.Shapes) > 0 {
		words = append(words, "shapes="+strings.Join(r.Shapes, ","))
	}
	if len(r.Seeds) > 0 {
		seeds := make([]string, len(r.Seeds))
		for i, seed := range r.Seeds {
			seeds[i] = strconv.FormatInt(seed, 10)
		}
		words = append(words, "seeds="+strings.Join(seeds, ","))
	}
	if r.Rounds > 0 {
		words = append(words, "rounds="+strconv.Itoa(r.Rounds))
	}
	if r.Versus != "" {
		words = append(words, "vs="+r.Versus)
	}
	if r.Profile {
		words = append(words, "profile")
	}
	return strings.Join(words, " ")
}

func (w Why) String() string {
	words := append([]string{"/why"}, w.Words...)
	if len(w.Shapes) > 0 {
		words = append(words, "shapes="+strings.Join(w.Shapes, ","))
	}
	return strings.Join(words, " ")
}

func (Cancel) String() string          { return "/cancel" }
func (Explain) String() string         { return "/explain" }
func (o Override) String() string      { return "/override " + o.Reason }
func (o OKToTest) String() string      { return "/ok-to-test " + o.SHA }
func (a ApprovePolicy) String() string { return "/approve-policy " + a.SHA }
func (ShowHelp) String() string        { return "/help" }
