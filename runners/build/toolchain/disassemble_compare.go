package toolchain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/kernelgate/kernelgate/gates"
)

// A CodePair is one kernel of both sides.
type CodePair struct {
	Kernel    string
	Shapes    []string // the shapes that it is launched on, if others run different code
	Baseline  CodePlace
	Candidate CodePlace
	// Sampled is how often a profiler found warps at the instructions of each side, by their places in bytes; nil if it did not look.
	Sampled struct{ Baseline, Candidate map[int]int }
}

// A CodePlace says where a kernel's machine code is. A side that does not have it has no path.
type CodePlace struct {
	Path   string
	Symbol string
}

// diffLines bounds the stored diff of a kernel.
const diffLines = 200

// Compare shows the differences between the sides. It is for people, so an error is reported in
// place and fails nothing.
func (d *Disassembler) Compare(ctx context.Context, pairs []CodePair) *gates.MachineCode {
	m := &gates.MachineCode{Tool: d.Version}
	if m.More = len(pairs) - gates.MaxCodeChanges; m.More > 0 {
		pairs = pairs[:gates.MaxCodeChanges]
	}
	m.More = max(m.More, 0)
	listings, err := d.all(ctx, pairs)
	if err != nil {
		return &gates.MachineCode{Skipped: err.Error()}
	}
	for _, p := range pairs {
		before, after := listings[p.Baseline.Path][p.Baseline.Symbol], listings[p.Candidate.Path][p.Candidate.Symbol]
		c := gates.CodeChange{Kernel: clipped(p.Kernel), Shapes: p.Shapes}
		if p.Baseline.Path != "" {
			c.Baseline = before.count()
		}
		if p.Candidate.Path != "" {
			c.Candidate = after.count()
		}
		if c.Baseline != nil && c.Candidate != nil {
			var diff string
			diff, c.Hottest = compareFromHottest(before, after, p.Sampled.Baseline, p.Sampled.Candidate)
			c.Diff, c.Cut = gates.ClipDiff(diff, diffLines)
		}
		m.Changes = append(m.Changes, c)
	}
	// Of several kernels, those that differ are shown. If none differs, the difference is in their
	// data.
	differs := func(c gates.CodeChange) bool { return c.Baseline == nil || c.Candidate == nil || c.Diff != "" }
	if slices.ContainsFunc(m.Changes, differs) {
		m.Changes = slices.DeleteFunc(m.Changes, func(c gates.CodeChange) bool { return !differs(c) })
	}
	return m
}

// all disassembles every image once, two at a time: most of the time is the program's start.
func (d *Disassembler) all(ctx context.Context, pairs []CodePair) (map[string]map[string]listing, error) {
	var wait sync.WaitGroup
	var lock sync.Mutex
	listings, room := map[string]map[string]listing{}, make(chan struct{}, 2)
	var failures []error
	for _, p := range pairs {
		for _, path := range []string{p.Baseline.Path, p.Candidate.Path} {
			lock.Lock()
			_, begun := listings[path]
			if !begun {
				listings[path] = nil
			}
			lock.Unlock()
			if begun || path == "" {
				continue
			}
			wait.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				found, err := d.disassemble(ctx, path)
				lock.Lock()
				defer lock.Unlock()
				if listings[path] = found; err != nil {
					failures = append(failures, err)
				}
			})
		}
	}
	wait.Wait()
	return listings, errors.Join(failures[:min(1, len(failures))]...)
}

// A SourceLine is a line of a source by the base name of its file.
type SourceLine struct {
	File string
	Line int
}

// Source returns which line each instruction of a kernel comes from, by its place in bytes.
func (d *Disassembler) Source(ctx context.Context, place CodePlace) (map[int]SourceLine, error) {
	all, err := d.disassemble(ctx, place.Path)
	if err != nil {
		return nil, err
	}
	lines := map[int]SourceLine{}
	for _, i := range all[place.Symbol] {
		if i.File != "" {
			lines[i.At] = SourceLine{i.File, i.Line}
		}
	}
	return lines, nil
}

func (l listing) count() *gates.Instructions {
	n := &gates.Instructions{}
	into := map[class]*int{classTensor: &n.Tensor, classMemory: &n.Memory, classBarrier: &n.Barrier, classSpecial: &n.Special, classOther: &n.Other}
	for _, i := range l {
		*into[i.Class]++
		if i.Vector {
			n.Vector++
		}
	}
	return n
}

func (l listing) text() []byte {
	var b strings.Builder
	for _, i := range l {
		b.WriteString(i.Text + "\n")
	}
	return []byte(b.String())
}

// compareFromHottest returns a diff that begins with the hottest loop of both sides, and goes on with what comes before and after it. If a
// side has no loop, or the loops are equal, the diff begins where the code does.
func compareFromHottest(before, after listing, sampledBefore, sampledAfter map[int]int) (string, *gates.HottestLoop) {
	was, old, had := before.hottest(sampledBefore)
	is, new, has := after.hottest(sampledAfter)
	if !had || !has {
		return compareListings(before, after), nil
	}
	found := &gates.HottestLoop{Baseline: was, Candidate: is}
	within := compareFrom(before[old.first:old.last+1], after[new.first:new.last+1], old.first, new.first)
	if within == "" {
		found.Same = true
		return compareListings(before, after), found
	}
	parts := []string{within, compareListings(before[:old.first], after[:new.first]), compareFrom(before[old.last+1:], after[new.last+1:], old.last+1, new.last+1)}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part)
	}
	return b.String(), found
}

// compareListings returns a diff whose hunks name the source line of their first change.
func compareListings(before, after listing) string { return compareFrom(before, after, 0, 0) }

// compareFrom is compareListings for parts of functions: each begins after so many instructions.
func compareFrom(before, after listing, oldFirst, newFirst int) string {
	text := string(diff.Diff("baseline", before.text(), "candidate", after.text()))
	if _, text, _ = strings.Cut(text, "\n+++ "); text == "" {
		return ""
	}
	_, text, _ = strings.Cut(text, "\n")
	lines := strings.Split(text, "\n")
	head, old, new := -1, 0, 0
	for i, l := range lines {
		var a, b int
		if _, err := fmt.Sscanf(l, "@@ -%d,%d +%d,", &old, &a, &new); err == nil && strings.HasPrefix(l, "@@") {
			if _, rest, ok := strings.Cut(l, "+"); ok {
				fmt.Sscanf(rest, "%d,%d", &new, &b)
			}
			if oldFirst+newFirst > 0 {
				lines[i] = fmt.Sprintf("@@ -%d,%d +%d,%d @@", old+oldFirst, a, new+newFirst, b)
			}
			// A side without lines in a hunk is numbered by the line before it.
			if old--; a == 0 {
				old++
			}
			if new--; b == 0 {
				new++
			}
			head = i
			continue
		}
		switch {
		case strings.HasPrefix(l, "-"):
			head = say(lines, head, before, old)
			old++
		case strings.HasPrefix(l, "+"):
			head = say(lines, head, after, new)
			new++
		default:
			old, new = old+1, new+1
		}
	}
	return strings.Join(lines, "\n")
}

// say adds an instruction's source line to the head of a hunk, once.
func say(lines []string, head int, l listing, at int) int {
	if head >= 0 && at >= 0 && at < len(l) && l[at].File != "" {
		lines[head] += fmt.Sprintf(" %s:%d", l[at].File, l[at].Line)
	}
	return -1
}
