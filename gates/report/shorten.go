package report

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// shorten leaves out whole sections, the least important first, until the text
// fits. What is folded stands in one fold, where there is one around it.
func shorten(d document, limit int, fold bool) string {
	kept := slices.Clone(d.sections)
	s := written(kept, nil, fold)
	if limit <= 0 || len(s) <= limit {
		return s
	}
	var left []string
	for len(kept) > 1 {
		least := 0
		for i := range kept {
			if kept[i].keep < kept[least].keep {
				least = i
			}
		}
		left = append(left, kept[least].name)
		kept = slices.Delete(kept, least, least+1)
		if s := written(kept, left, fold); len(s) <= limit {
			return s
		}
	}
	if len(kept) == 0 {
		return ""
	}
	if title, ok := kept[0].blocks[0].(heading); ok {
		return shortest(title, limit)
	}
	return ""
}

// written is sections as Markdown, and the names of those that were left out.
func written(sections []section, left []string, fold bool) string {
	above, folded := document{sections}.sight()
	var parts []string
	for _, s := range above {
		parts = append(parts, markdown(s.blocks))
	}
	var below []string
	for _, s := range folded {
		below = append(below, markdown(s.blocks))
	}
	if fold && below != nil {
		below = []string{Fold(FoldTitle, strings.Join(below, "\n"))}
	}
	parts = append(parts, below...)
	if left != nil {
		parts = append(parts, markdown([]block{leftOut(left)}))
	}
	return strings.Join(parts, "\n")
}

func leftOut(names []string) paragraph {
	return paragraph{line{text("Shortened: see "), mono("report.md"),
		text(" in the run's results for " + strings.Join(names, ", ") + ".")}}
}

// shortest is as much of the title as there is room for.
func shortest(title heading, limit int) string {
	if s := markdown([]block{title}); len(s) <= limit {
		return s
	}
	word := escape(clean(plainText(title.text)))
	for len(word) > limit {
		_, size := utf8.DecodeLastRuneInString(word)
		word = word[:len(word)-size]
	}
	return word
}

// plainText is a line's words without style or signs.
func plainText(l line) string {
	var b strings.Builder
	for _, in := range l {
		b.WriteString(in.text)
	}
	return strings.TrimSpace(b.String())
}
