package strict

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// example says what to write for a scalar.
func example(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return "a number"
	}
	return "a text"
}

// describe describes what the author wrote.
func describe(n *Node) string {
	text, scalar := n.Text()
	switch {
	case n.Null():
		return "empty"
	case n.Mapping():
		return "a mapping"
	case n.List():
		return "a list"
	case !scalar:
		return "missing"
	}
	return strconv.Quote(text)
}

// suggestion names the known field that a misspelt one most likely meant, or all of them.
func (k *keys) suggestion(got string) string {
	if meant := cmp.Or(k.elsewhere[strings.ToLower(got)], closest(got, k.names)); meant != "" {
		return fmt.Sprintf(" (did you mean %s?)", meant)
	}
	return fmt.Sprintf(" (known here: %s)", strings.Join(slices.Sorted(slices.Values(k.names)), ", "))
}

// closest returns the known name that is nearest to a misspelt one. It allows one typo in three
// letters, and two at most. If a word is a prefix of several names, none of them is preferred.
func closest(got string, known []string) string {
	const maxTypos, minPrefix = 2, 3
	best, distance := "", maxTypos+1
	var begun []string
	for _, name := range known {
		if min(len(got), len(name)) >= minPrefix && (strings.HasPrefix(name, got) || strings.HasPrefix(got, name)) {
			begun = append(begun, name)
		}
		if max(len(got), len(name))-min(len(got), len(name)) > maxTypos {
			continue
		}
		if d := Typos(got, name); d < distance && 3*d <= len(got) {
			best, distance = name, d
		}
	}
	if best == "" && len(begun) == 1 {
		return begun[0]
	}
	return best
}

// Typos counts letters that are missing, added, wrong or swapped with their neighbour.
func Typos(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j-1]+cost, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
