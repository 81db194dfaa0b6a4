package strict

import (
	"fmt"
	"slices"
	"strings"
)

// Word reads one word out of a fixed set.
func Word[T ~string](n *Node, into *T, words []T) { WordCalled(n, into, words, nil) }

// WordCalled is Word for words that have different names in other tools, which the message
// translates.
func WordCalled[T ~string](n *Node, into *T, words []T, elsewhere map[string]string) {
	text, ok := n.Text()
	if ok && slices.Contains(words, T(text)) {
		*into = T(text)
		return
	}
	said := ""
	if ok && !n.Null() {
		said = fmt.Sprintf("%q ", text)
	}
	n.Errorf("%sis not one of %s%s", said, JoinWords(words), meant(text, words, elsewhere))
}

// meant returns the word that the author most likely meant, for the end of a message.
func meant[T ~string](text string, words []T, elsewhere map[string]string) string {
	word, lower := elsewhere[strings.ToLower(text)], strings.ToLower(text)
	if i := slices.Index(words, T(lower)); word == "" && i >= 0 {
		word = lower
	}
	if word == "" && len(text) > 3 { // a short word is one letter from many
		known := make([]string, len(words))
		for i, w := range words {
			known[i] = string(w)
		}
		word = closest(lower, known)
	}
	if word == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", word)
}

// Meant returns the known name that a misspelt one most likely means, or "" if none is close.
func Meant(got string, known []string) string { return closest(got, known) }

// WordSchema returns the JSON Schema of such a word.
func WordSchema[T ~string](words []T) map[string]any { return map[string]any{"enum": words} }

// JoinWords lists the words in a sentence.
func JoinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
