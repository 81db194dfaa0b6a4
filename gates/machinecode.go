package gates

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MachineCode is the machine code of both sides, where it differs. It is for the reader: no gate
// uses it.
type MachineCode struct {
	Tool    string       `json:"tool,omitempty"` // the disassembler, such as nvdisasm 13.4.92
	Changes []CodeChange `json:"changes,omitempty"`
	More    int          `json:"more,omitempty"`    // kernels that differ as well and are not listed
	Skipped string       `json:"skipped,omitempty"` // why there is none, with the remedy
}

// A CodeChange is one kernel before and after. A side that does not have it is nil.
type CodeChange struct {
	Kernel    string        `json:"kernel"`
	Shapes    []string      `json:"shapes,omitempty"` // that it is launched on, where different code serves the rest
	Baseline  *Instructions `json:"baseline,omitempty"`
	Candidate *Instructions `json:"candidate,omitempty"`
	Diff      string        `json:"diff,omitempty"` // of the disassembly, as diff -u has it, with the source's lines where they are known
	Cut       int           `json:"cut,omitempty"`  // lines of the diff that were left out
	// Hottest is the loop with which the diff begins; nil if it begins where the code does.
	Hottest *HottestLoop `json:"hottest,omitempty"`
}

// serves reports whether the kernel is launched on a shape.
func (c CodeChange) serves(shape string) bool {
	return len(c.Shapes) == 0 || slices.Contains(c.Shapes, shape)
}

// A HottestLoop is the loop of each side that probably takes most of the time.
type HottestLoop struct {
	Baseline  CodeLoop `json:"baseline"`
	Candidate CodeLoop `json:"candidate"`
	// Same says that both have the same instructions, so that the diff begins where the code does.
	Same bool `json:"same,omitempty"`
}

// A CodeLoop is a loop of a disassembly.
type CodeLoop struct {
	First    int     `json:"first"` // the number of its first instruction, from 1, as the diff counts
	Last     int     `json:"last"`
	File     string  `json:"file,omitempty"` // of its first instruction whose source is known
	Line     int     `json:"line,omitempty"` // the first and the last of that file
	LastLine int     `json:"last_line,omitempty"`
	Sampled  float64 `json:"sampled,omitempty"` // the share of the samples of a profiler that are in it; 0: it did not look
}

// Instructions is how many there are.
func (l CodeLoop) Instructions() int { return l.Last - l.First + 1 }

func (l CodeLoop) problem() string {
	switch {
	case l.First < 1 || l.Last < l.First || l.Line < 0 || l.LastLine < l.Line:
		return "does not end after its beginning"
	case len(l.File) > maxCodeText:
		return "has a file that is longer than any name"
	case !(l.Sampled >= 0 && l.Sampled <= 1):
		return fmt.Sprintf("has %v of the samples", l.Sampled)
	}
	return ""
}

// Instructions are those of a kernel by what they do, each counted once.
type Instructions struct {
	Tensor  int `json:"tensor"`  // matrices
	Memory  int `json:"memory"`  // global, shared and local memory, copies and atomics
	Barrier int `json:"barrier"` // barriers, fences and waits
	Special int `json:"special"` // special functions: roots, exponentials, reciprocals
	Other   int `json:"other"`
	// Vector is how many of them calculate with vectors, on a CPU.
	Vector int `json:"vector,omitempty"`
}

// All is how many there are.
func (i Instructions) All() int { return i.Tensor + i.Memory + i.Barrier + i.Special + i.Other }

// The bounds of what evidence holds of machine code.
const (
	MaxCodeChanges = 4
	MaxCodeDiff    = 16 << 10 // bytes
	maxCodeText    = 300
)

func (m *MachineCode) problem() (field, problem string) {
	switch {
	case len(m.Changes) > MaxCodeChanges:
		return "changes", fmt.Sprintf("are %d (at most %d)", len(m.Changes), MaxCodeChanges)
	case len(m.Tool) > maxCodeText:
		return "tool", "is longer than any name"
	case m.More < 0:
		return "more", fmt.Sprintf("is %d", m.More)
	}
	for i, c := range m.Changes {
		at := fmt.Sprintf("changes[%d]", i)
		switch {
		case c.Kernel == "" || len(c.Kernel) > maxCodeText:
			return at + ".kernel", "is empty or longer than any name"
		case len(c.Diff) > MaxCodeDiff || c.Cut < 0:
			return at + ".diff", fmt.Sprintf("has %d bytes (at most %d), or less than no line left out", len(c.Diff), MaxCodeDiff)
		}
		if h := c.Hottest; h != nil {
			if problem := cmp.Or(h.Baseline.problem(), h.Candidate.problem()); problem != "" {
				return at + ".hottest", problem
			}
		}
		for side, n := range map[string]*Instructions{"baseline": c.Baseline, "candidate": c.Candidate} {
			if n != nil && min(n.Tensor, n.Memory, n.Barrier, n.Special, n.Other, n.Vector) < 0 {
				return at + "." + side, "has a negative count"
			}
		}
	}
	return "", ""
}

// ClipDiff keeps as many whole lines of a diff as evidence may hold, and counts the lines that it
// left out.
func ClipDiff(diff string, lines int) (kept string, cut int) {
	all := strings.SplitAfter(strings.TrimSuffix(diff, "\n"), "\n")
	var b strings.Builder
	for i, l := range all {
		if i == lines || b.Len()+len(l) > MaxCodeDiff {
			return strings.TrimSuffix(b.String(), "\n"), len(all) - i
		}
		b.WriteString(l)
	}
	return b.String(), 0
}
