package report

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
)

// wrap breaks text at spaces into lines of at most width cells; a word that is
// longer is broken where it must be. A width of none is no limit.
func wrap(s string, width int) []string {
	if width <= 0 || lipgloss.Width(s) <= width {
		return []string{s}
	}
	var lines []string
	var b strings.Builder
	used := 0
	flush := func() {
		lines = append(lines, b.String())
		b.Reset()
		used = 0
	}
	for word := range strings.SplitSeq(s, " ") {
		if word == "" {
			continue
		}
		w := lipgloss.Width(word)
		if used > 0 && used+1+w > width {
			flush()
		}
		if w > width {
			pieces := breakWord(word, width)
			lines = append(lines, pieces[:len(pieces)-1]...)
			word = pieces[len(pieces)-1]
			w = lipgloss.Width(word)
		}
		if used > 0 {
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += w
	}
	if used > 0 || len(lines) == 0 {
		flush()
	}
	return lines
}

// Hanging breaks a text into lines of at most width cells. The first line begins with first, and the others with rest.
func Hanging(first, rest, s string, width int) string {
	var b strings.Builder
	lead := first
	for _, l := range wrap(s, max(width-max(lipgloss.Width(first), lipgloss.Width(rest)), 1)) {
		b.WriteString(strings.TrimRight(lead+l, " ") + "\n")
		lead = rest
	}
	return b.String()
}

// breakWord cuts between runes, after punctuation where there is some, and keeps
// a sequence that sets colour whole.
func breakWord(word string, width int) []string {
	var pieces []string
	start, soft := 0, 0
	for i, r := range word {
		end := i + utf8.RuneLen(r)
		if i > start && !inSequence(word[start:i]) && lipgloss.Width(word[start:end]) > width {
			cut := i
			if soft > start+width/2 {
				cut = soft
			}
			pieces = append(pieces, word[start:cut])
			start = cut
		}
		if strings.ContainsRune("._-/,:;=", r) {
			soft = end
		}
	}
	return append(pieces, word[start:])
}

// inSequence reports whether s ends within an escape sequence.
func inSequence(s string) bool {
	i := strings.LastIndexByte(s, '\x1b')
	return i >= 0 && !strings.ContainsRune(s[i:], 'm')
}

func longestWord(s string) int {
	longest := 0
	for word := range strings.SplitSeq(s, " ") {
		longest = max(longest, lipgloss.Width(word))
	}
	return longest
}
