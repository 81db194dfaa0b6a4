package pages

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A CodeView shows side by side how one kernel's machine code changed.
type CodeView struct {
	gates.CodeChange
	Loop   string // which loop the instructions begin with; "" for none
	Number int    // distinguishes kernels with the same name
	First  []CodeHunk
	Rest   []CodeHunk // shown on demand
	Lines  int        // number of rows in Rest
	At     string     // address of the page that shows the rows, if this one does not
}

// A CodeHunk holds the instructions of one place in the source.
type CodeHunk struct {
	File string
	Line int
	Rows []CodeRow
}

// A CodeRow is an instruction of the baseline and the instruction that replaced it.
type CodeRow struct{ Before, After, Class string }

// codeShown is the number of rows of a kernel that are shown at first.
const codeShown = 40

func codeViews(v *gates.Verdict) []CodeView {
	if v.MachineCode == nil {
		return nil
	}
	var list []CodeView
	for i, c := range v.MachineCode.Changes {
		view := CodeView{CodeChange: c, Number: i + 1}
		if c.Hottest != nil {
			view.Loop = report.HottestLoop(c.Hottest)
		}
		room := codeShown
		for _, h := range hunks(c.Diff) {
			shown := min(room, len(h.Rows))
			if room -= shown; shown > 0 {
				view.First = append(view.First, CodeHunk{h.File, h.Line, h.Rows[:shown]})
			}
			if rest := h.Rows[shown:]; len(rest) > 0 {
				view.Rest = append(view.Rest, CodeHunk{h.File, h.Line, rest})
				view.Lines += len(rest)
			}
		}
		list = append(list, view)
	}
	return list
}

// codeInPage is the number of rows up to which a page shows the code of all kernels.
const codeInPage = 120

// chosenCode returns the views with the rows of one kernel. If there are few rows, it returns all of them.
func chosenCode(all []CodeView, chosen string) []CodeView {
	rows := 0
	for _, c := range all {
		for _, h := range append(c.First[:len(c.First):len(c.First)], c.Rest...) {
			rows += len(h.Rows)
		}
	}
	if rows <= codeInPage {
		return all
	}
	all = slices.Clone(all) // the original belongs to the cache
	for i := range all {
		if c := &all[i]; strconv.Itoa(c.Number) != chosen && len(c.First) > 0 {
			c.First, c.Rest, c.At = nil, nil, "?code="+strconv.Itoa(c.Number)+"#machine-code"
		}
	}
	return all
}

// hunks parses a unified diff and puts removed lines next to the lines that replaced them.
func hunks(diff string) []CodeHunk {
	var list []CodeHunk
	var gone, added []string
	flush := func() {
		if len(list) == 0 && len(gone)+len(added) > 0 {
			list = append(list, CodeHunk{})
		}
		for i := range max(len(gone), len(added)) {
			h := &list[len(list)-1]
			switch {
			case i >= len(gone):
				h.Rows = append(h.Rows, CodeRow{"", added[i], "added"})
			case i >= len(added):
				h.Rows = append(h.Rows, CodeRow{gone[i], "", "gone"})
			default:
				h.Rows = append(h.Rows, CodeRow{gone[i], added[i], "gone added"})
			}
		}
		gone, added = nil, nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
			list = append(list, hunkAt(line))
		case strings.HasPrefix(line, "-"):
			if len(added) > 0 { // the added lines so far precede this one
				flush()
			}
			gone = append(gone, line[1:])
		case strings.HasPrefix(line, "+"):
			added = append(added, line[1:])
		case line != "":
			flush()
			if len(list) == 0 {
				list = append(list, CodeHunk{})
			}
			same := strings.TrimPrefix(line, " ")
			list[len(list)-1].Rows = append(list[len(list)-1].Rows, CodeRow{same, same, "same"})
		}
	}
	flush()
	return list
}

// hunkAt reads the place in the source from a hunk's heading: "@@ -6,311 +6,344 @@ scale.cu:5".
func hunkAt(heading string) CodeHunk {
	_, place, _ := strings.Cut(strings.TrimPrefix(heading, "@@"), "@@")
	place = strings.TrimSpace(place)
	if at := strings.LastIndex(place, ":"); at >= 0 {
		if line, err := strconv.Atoi(place[at+1:]); err == nil {
			return CodeHunk{File: place[:at], Line: line}
		}
	}
	return CodeHunk{File: place}
}
