package gates

import (
	"cmp"
	"slices"
	"strings"
)

// A mistake identifies findings that differ only in their lines. Lines move when a source is edited,
// so mistakes of candidate and baseline are matched by the text, which has the kind and the size of
// the access, and by the function.
type mistake struct {
	kind     FindingKind
	severity string
	text     string
	place    string
}

// mistakeOf is empty for a finding without a function or a file, which cannot be matched.
func mistakeOf(f Finding) mistake {
	name, _, _ := strings.Cut(f.Kernel, "<") // the arguments of a template change with a tile size
	place := cmp.Or(strings.TrimSpace(name), f.File)
	if place == "" {
		return mistake{}
	}
	return mistake{f.Kind, cmp.Or(f.Severity, "error"), f.Text, place}
}

// markExisting marks the findings that the baseline has as well. A mistake exists where the
// candidate has it on no more lines, no more often and in no case in which the baseline does not
// have it. Where the candidate has it on more lines, the lines that both have are marked, so that
// the new ones show.
func markExisting(found, baseline []Finding) {
	is, was := byMistake(found), byMistake(baseline)
	for m, indices := range is {
		before := was[m]
		if m == (mistake{}) || len(before) == 0 {
			continue
		}
		whole := noMoreOf(found, indices, baseline, before)
		for _, i := range indices {
			found[i].Before = whole || slices.ContainsFunc(before, func(b int) bool {
				return sameLines(found[i], baseline[b]) && noMoreOf(found, []int{i}, baseline, []int{b})
			})
		}
	}
}

func byMistake(list []Finding) map[mistake][]int {
	groups := map[mistake][]int{}
	for i, f := range list {
		groups[mistakeOf(f)] = append(groups[mistakeOf(f)], i)
	}
	return groups
}

// noMoreOf compares how many findings of a mistake there are, how often they were seen and in which
// cases.
func noMoreOf(found []Finding, is []int, baseline []Finding, was []int) bool {
	often, seen := countOf(found, is)
	before, in := countOf(baseline, was)
	// A tool that names cases names all of them; one side without cannot be compared.
	return len(is) <= len(was) && often <= before && (len(seen) > 0) == (len(in) > 0) &&
		!slices.ContainsFunc(seen, func(i int) bool { return !slices.Contains(in, i) })
}

func countOf(list []Finding, indices []int) (often int, cases []int) {
	for _, i := range indices {
		often += max(list[i].Count, 1)
		cases = append(cases, list[i].Cases...)
	}
	return often, cases
}

func sameLines(a, b Finding) bool {
	return a.File != "" && a.File == b.File && a.Line == b.Line && a.OtherFile == b.OtherFile && a.OtherLine == b.OtherLine
}
