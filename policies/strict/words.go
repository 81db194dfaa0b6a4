package strict

import (
	"fmt"
	"slices"
	"strings"
)

// Word reads one word out of a fixed set.
func Word[T ~string](n *Node, into *T, words []T) {
	text, ok := n.Text()
	if ok && slices.Contains(words, T(text)) {
		*into = T(text)
		return
	}
	said := ""
	if ok && !n.Null() {
		said = fmt.Sprintf("%q ", text)
	}
	n.Errorf("%sis not one of %s", said, JoinWords(words))
}

// WordSchema says the same to an editor.
func WordSchema[T ~string](words []T) map[string]any { return map[string]any{"enum": words} }

// JoinWords lists them in a sentence.
func JoinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
