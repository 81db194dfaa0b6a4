package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// report prints the survivors and the share that the tests noticed, package by package and in all.
func report(out io.Writer, sampled []*mutant) error {
	sampled = slices.Clone(sampled)
	slices.SortStableFunc(sampled, func(a, b *mutant) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	var order []string
	killed, count := map[string]int{}, map[string]int{}
	all := 0
	for _, m := range sampled {
		if count[m.Package] == 0 {
			order = append(order, m.Package)
		}
		count[m.Package]++
		if m.KilledBy != "" {
			killed[m.Package]++
			all++
			continue
		}
		if _, err := fmt.Fprintf(out, "%s/%s:%d: survived\n  - %s\n  + %s\n", m.Package, m.File, m.Line, m.Old, m.New); err != nil {
			return err
		}
	}
	for _, pkg := range order {
		if _, err := fmt.Fprintf(out, "%-20s %4d of %4d killed, %s\n", pkg, killed[pkg], count[pkg], percent(killed[pkg], count[pkg])); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%-20s %4d of %4d killed, %s\n", "all", all, len(sampled), percent(all, len(sampled)))
	return err
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
