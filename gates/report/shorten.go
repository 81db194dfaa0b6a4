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
	return shortest(kept[0].blocks, limit)
}

func leftOut(names []string) paragraph {
	return paragraph{line{text("Shortened: see "), mono("report.md"),
		text(" in the run's results for " + strings.Join(names, ", ") + ".")}}
}

// shortest is the title with as much of its paragraph as there is room for.
func shortest(blocks []block, limit int) string {
	title := markdown(blocks[:1])
	if len(blocks) > 1 && len(title) <= limit {
		words := plainText(blocks[1].(paragraph).text)
		for runes := min(utf8.RuneCountInString(words), limit); runes > 20; runes = runes * 3 / 4 {
			s := markdown([]block{blocks[0], paragraph{cell(clip(words, runes))}})
			if len(s) <= limit {
				return s
			}
		}
	}
	if len(title) <= limit {
		return title
	}
	word := escape(clean(plainText(blocks[0].(heading).text)))
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
