package gates

import (
	"cmp"
	"slices"
	"strings"
)

// A mistake is findings that only their lines tell apart. Lines move when a source is
// edited, so a mistake of the candidate is held against the baseline's by what was seen,
// which has the kind and the size of the access, and by the function.
type mistake struct {
	kind     FindingKind
	severity string
	text     string
	place    string
}

// mistakeOf is none for a finding without a place: nobody can tell that it is the same.
func mistakeOf(f Finding) mistake {
	name, _, _ := strings.Cut(f.Kernel, "<") // the arguments of a template change with a tile size
	place := cmp.Or(strings.TrimSpace(name), f.File)
	if place == "" {
		return mistake{}
	}
	return mistake{f.Kind, cmp.Or(f.Severity, "error"), f.Text, place}
}

// markExisting marks what the baseline has as well. A mistake exists where the candidate
// has it in no more places, no more often and in no other case than the baseline. Where
// it has it in more, those lines that both have are marked, so that the new ones show.
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

// noMoreOf compares how many findings of a mistake there are, how often they were seen
// and in which cases.
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
