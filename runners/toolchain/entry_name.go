package toolchain

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A functionName is the name of a function in machine code, taken apart. The keys are written as kernels.Entry writes its own.
type functionName struct {
	symbol string // as the driver and the tools know it
	text   string // as people read it: ns::scale<64, true>(float*, float const*)
	whole  string // key of all of it
	named  string // key without the parameters
	bare   string // and without template arguments
	tree   demangle.AST
}

const (
	// A name that is longer than any compiler's is no name for people: it stays as it is.
	maxMangled = 16 << 10
	// Substitutions make long texts of short names: one of more than 2^14 bytes stays as it is too.
	maxDemangled = 14
)

// newFunctionName takes a symbol apart. One that is no mangled function is its own name.
func newFunctionName(symbol string) functionName {
	n := functionName{symbol: symbol, text: symbol, whole: symbol, named: symbol, bare: symbol}
	if len(symbol) > maxMangled || !strings.HasPrefix(symbol, "_Z") {
		return n
	}
	tree, err := demangle.ToAST(symbol)
	if err != nil {
		return n
	}
	if typed, ok := tree.(*demangle.Typed); ok {
		n.take(typed)
	}
	return n
}

func (n *functionName) take(typed *demangle.Typed) {
	function, ok := typed.Type.(*demangle.FunctionType)
	if !ok {
		return
	}
	limit, left := demangle.MaxLength(maxDemangled), 1<<maxDemangled
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
	n.tree = typed.Name
	n.text = name + "(" + strings.Join(params, ", ") + ")"
	n.named, n.bare = nameKey(name), nameKey(bare)
	n.whole = n.named + "(" + strings.Join(keys, ",") + ")"
}

var internalScope = regexp.MustCompile(`\(anonymous namespace\)::|_INTERNAL_\w*::`)

// written is a demangled name as people would write it: a scope without a name is none.
func written(name string) string {
	return strings.ReplaceAll(internalScope.ReplaceAllString(name, ""), "> >", ">>")
}

var (
	nameBlanks  = regexp.MustCompile(`\s*([<>,*&():])\s*`)
	nameNumbers = regexp.MustCompile(`\b([0-9]+)(?:u|l|ul|ll|ull)\b`)
)

// nameKey writes a demangled name as kernels.Entry.Key does.
func nameKey(name string) string {
	return nameNumbers.ReplaceAllString(nameBlanks.ReplaceAllString(name, "$1"), "$1")
}

// matches are the functions that an entry may mean: the one with this very symbol, or those of its C++ name.
func matches(entry manifest.Entry, names []functionName) []functionName {
	var found []functionName
	for _, n := range names {
		key := n.named
		switch {
		case entry.Plain() && n.symbol == entry.Name():
			return []functionName{n}
		case entry.Plain():
			key = n.bare
		case entry.Listed() && entry.Untemplated():
			key = n.bare + strings.TrimPrefix(n.whole, n.named)
		case entry.Listed():
			key = n.whole
		}
		if key == entry.Key() {
			found = append(found, n)
		}
	}
	return found
}

// maxListed is how many names a message has room for, and maxShown the bytes of each.
const (
	maxListed = 8
	maxShown  = 400
)

// listNames tells of functions, those that are nearest to the entry first.
func listNames(entry manifest.Entry, names []functionName) string {
	sorted := slices.Clone(names)
	far := map[string]int{}
	for _, n := range names {
		base := n.bare[strings.LastIndexByte(n.bare, ':')+1:]
		far[n.symbol] = 1000*typos(entry.Base(), base) + typos(entry.Key(), n.whole)
	}
	slices.SortFunc(sorted, func(a, b functionName) int {
		return cmp.Or(cmp.Compare(far[a.symbol], far[b.symbol]), strings.Compare(a.text, b.text))
	})
	var texts []string
	for _, n := range sorted[:min(len(sorted), maxListed)] {
		texts = append(texts, shown(n.text))
	}
	list := strings.Join(texts, "; ")
	if len(sorted) > maxListed {
		list += fmt.Sprintf("; and %d more", len(sorted)-maxListed)
	}
	return list
}

// shown is a name that a stranger chose, fit for a message.
func shown(name string) string {
	if len(name) > maxShown {
		name = strings.ToValidUTF8(name[:maxShown], "") + "…"
	}
	quoted := strconv.Quote(name)
	if quoted[1:len(quoted)-1] == name {
		return name
	}
	return quoted
}

// typos is how far the beginnings of two texts are apart.
func typos(a, b string) int {
	const longest = 128
	return strict.Typos(a[:min(len(a), longest)], b[:min(len(b), longest)])
}
