package report

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// shorten leaves out whole sections, the least important first, until the text
// fits.
func shorten(d document, limit int) string {
	kept := slices.Clone(d.sections)
	written := make([]string, len(kept))
	for i, s := range kept {
		written[i] = markdown(s.blocks)
	}
	s := strings.Join(written, "\n")
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
		written = slices.Delete(written, least, least+1)
		s := strings.Join(written, "\n") + "\n" + markdown([]block{leftOut(left)})
		if len(s) <= limit {
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
