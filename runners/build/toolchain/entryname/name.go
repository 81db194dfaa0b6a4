// Package entryname takes the names of functions in machine code apart, and finds the one that a manifest names.
package entryname

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Name is the parsed name of a function in machine code. The keys have the form of manifest.Entry.
type Name struct {
	Symbol string // as the driver and the tools know it
	Text   string // as people read it: ns::scale<64, true>(float*, float const*)
	Whole  string // key of all of it
	named  string // key without the parameters
	Bare   string // and without template arguments
	Tree   demangle.AST
}

const (
	// A name longer than any compiler's is not demangled.
	MaxMangled = 16 << 10
	// Substitutions make long texts of short names: a text of more than 2^14 bytes is not used
	// either.
	MaxDemangled = 14
)

// Parse parses a symbol. A symbol that is not a mangled function is its own name.
func Parse(symbol string) Name {
	n := Name{Symbol: symbol, Text: symbol, Whole: symbol, named: symbol, Bare: symbol}
	if len(symbol) > MaxMangled || !strings.HasPrefix(symbol, "_Z") {
		return n
	}
	tree, err := demangle.ToAST(symbol)
	if err != nil {
		return n
	}
	if typed, ok := tree.(*demangle.Typed); ok {
		n.Take(typed)
	}
	return n
}

func (n *Name) Take(typed *demangle.Typed) {
	function, ok := typed.Type.(*demangle.FunctionType)
	if !ok {
		return
	}
	limit, left := demangle.MaxLength(MaxDemangled), 1<<MaxDemangled
	write := func(part demangle.AST, options ...demangle.Option) string {
		text := demangle.ASTToString(part, append(options, limit)...)
		left -= len(text)
		return written(text)
	}
	name, bare := write(typed.Name), write(typed.Name, demangle.NoTemplateParams)
	var params, keys []string
	for _, p := range function.Args {
		if left <= 0 {
			return
		}
		text := write(p)
		params, keys = append(params, text), append(keys, nameKey(text))
	}
	if left <= 0 {
		return
	}
	n.Tree = typed.Name
	n.Text = name + "(" + strings.Join(params, ", ") + ")"
	n.named, n.Bare = nameKey(name), nameKey(bare)
	n.Whole = n.named + "(" + strings.Join(keys, ",") + ")"
}

var internalScope = regexp.MustCompile(`\(anonymous namespace\)::|_INTERNAL_\w*::`)

// written returns a demangled name as people would write it: without a scope that has no name.
func written(name string) string {
	return strings.ReplaceAll(internalScope.ReplaceAllString(name, ""), "> >", ">>")
}

var (
	nameBlanks  = regexp.MustCompile(`\s*([<>,*&():])\s*`)
	nameNumbers = regexp.MustCompile(`\b([0-9]+)(?:u|l|ul|ll|ull)\b`)
)

// nameKey returns a demangled name in the form of manifest.Entry.Key.
func nameKey(name string) string {
	return nameNumbers.ReplaceAllString(nameBlanks.ReplaceAllString(name, "$1"), "$1")
}

// Match returns the functions that an entry may mean: the one with this symbol, or those with its
// C++ name.
func Match(entry manifest.Entry, names []Name) []Name {
	var found []Name
	for _, n := range names {
		key := n.named
		switch {
		case entry.Plain() && n.Symbol == entry.Name():
			return []Name{n}
		case entry.Plain():
			key = n.Bare
		case entry.Listed() && entry.Untemplated():
			key = n.Bare + strings.TrimPrefix(n.Whole, n.named)
		case entry.Listed():
			key = n.Whole
		}
		if key == entry.Key() {
			found = append(found, n)
		}
	}
	return found
}

// maxListed is how many names a message lists, and maxShown the bytes of each.
const (
	maxListed = 8
	maxShown  = 400
)

// List lists functions for a message, those nearest to the entry first.
func List(entry manifest.Entry, names []Name) string {
	sorted := slices.Clone(names)
	far := map[string]int{}
	for _, n := range names {
		base := n.Bare[strings.LastIndexByte(n.Bare, ':')+1:]
		far[n.Symbol] = 1000*typos(entry.Base(), base) + typos(entry.Key(), n.Whole)
	}
	slices.SortFunc(sorted, func(a, b Name) int {
		return cmp.Or(cmp.Compare(far[a.Symbol], far[b.Symbol]), strings.Compare(a.Text, b.Text))
	})
	var texts []string
	for _, n := range sorted[:min(len(sorted), maxListed)] {
		texts = append(texts, Quote(n.Text))
	}
	list := strings.Join(texts, "; ")
	if len(sorted) > maxListed {
		list += fmt.Sprintf("; and %d more", len(sorted)-maxListed)
	}
	return list
}

// typos returns the edit distance of the beginnings of two texts.
func typos(a, b string) int {
	const longest = 128
	return strict.Typos(a[:min(len(a), longest)], b[:min(len(b), longest)])
}

// MaxKernels bounds the kernels of one source, because each name is parsed.
const MaxKernels = 1024
