// Package facts has the facts that a judgement can find, one type each, and writes their sentences.
//
// The gates decide and put what they found into these types. No sentence about a judgement is written anywhere else (runners write notes about a run): a file of
// this package has the facts of one gate, and each fact has the one method that puts it into words. So a change of wording touches no judgement,
// and a judgement can be read without the wording.
package facts

import "strings"

// A Fact is one thing that a gate found, with the values behind it.
type Fact interface {
	// Sentence is the fact in words. It has no full stop, so that it can stand in a longer sentence.
	Sentence() string
}

// An Advice is one step that the author can take towards a pass.
type Advice interface {
	// Step is the advice in words.
	Step(Reader) string
}

// A Reader is who reads an advice. The author of a pull request measures again by a comment, which adds rounds. At a terminal
// there is a flag for it, which takes all rounds, the measured ones included.
type Reader struct {
	Terminal bool
	Rounds   int // that were measured
}

// A Quote is text that somebody else wrote, such as a compiler or a runner. It is shown as it is.
type Quote string

// Sentence implements [Fact].
func (q Quote) Sentence() string { return string(q) }

// Quotes makes facts of texts.
func Quotes(texts []string) []Fact {
	var all []Fact
	for _, text := range texts {
		all = append(all, Quote(text))
	}
	return all
}

// A Series is several facts in one sentence.
type Series []Fact

// Sentence implements [Fact].
func (s Series) Sentence() string { return join(s, "; ") }

// Sentences writes every fact.
func Sentences[F Fact](all []F) []string {
	var texts []string
	for _, f := range all {
		texts = append(texts, f.Sentence())
	}
	return texts
}

// Steps writes every advice.
func Steps(all []Advice, to Reader) []string {
	var texts []string
	for _, a := range all {
		texts = append(texts, a.Step(to))
	}
	return texts
}

func join[F Fact](all []F, separator string) string { return strings.Join(Sentences(all), separator) }

// A Stated is the advice to make a fact untrue.
type Stated struct{ Fact Fact }

// Step implements [Advice].
func (s Stated) Step(Reader) string { return s.Fact.Sentence() }
