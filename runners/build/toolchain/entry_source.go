package toolchain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
)

// A template without an instance has no code, and only the compiler knows which function a name with
// aliases, enumerators or default arguments means. If the plain build has no kernel of an entry's
// name, a second build appends this source to the author's: an empty kernel, the marker, is
// instantiated with the number and the address of each entry. So the compiler generates the entry's
// code, and the marker's mangled name shows which function it chose.
//
// The author's source comes first and can change these lines by macros, but only into something that
// it could have contained anyway: the launched kernel is one of that source in any case. The entry's
// text cannot become different code, because manifest.ParseEntry composes it of names, integers and
// types.
const (
	markerName     = "kernelgate_entry"
	markerFileName = markerName + ".cu"
)

// markerSource returns "" if no entry needs a marker.
func markerSource(entries []manifest.Entry) string {
	var lines strings.Builder
	for i, e := range entries {
		if e.Plain() {
			continue
		}
		kind := cmp.Or(e.Signature(), "decltype("+e.Address()+")")
		fmt.Fprintf(&lines, "template __global__ void %s<%d, %s, %s>();\n", markerName, i, kind, e.Address())
	}
	if lines.Len() == 0 {
		return ""
	}
	return "template <int number, typename T, T kernel> __global__ void " + markerName + "() {}\n" + lines.String()
}

// marked distinguishes the markers from the other functions: it returns, by the number of an entry,
// the function that its marker names. The author's source may define markers, too; a number with
// two markers has none.
func marked(names []entryname.Name) (others []entryname.Name, byNumber map[int]entryname.Name) {
	byNumber = map[int]entryname.Name{}
	markers := map[int][]string{}
	for _, n := range names {
		number, meant, ok := markerOf(n)
		if !ok {
			others = append(others, n)
			continue
		}
		markers[number] = append(markers[number], meant)
	}
	for number, meant := range markers {
		same := slices.DeleteFunc(slices.Clone(others), func(n entryname.Name) bool { return n.Whole != meant[0] })
		if len(meant) == 1 && len(same) == 1 {
			byNumber[number] = same[0]
		}
	}
	return others, byNumber
}

// markerOf parses kernelgate_entry<number, type, &function>.
func markerOf(n entryname.Name) (number int, meant string, ok bool) {
	t, ok := n.Tree.(*demangle.Template)
	if !ok || n.Bare != markerName || len(t.Args) != 3 {
		return 0, "", false
	}
	literal, isLiteral := t.Args[0].(*demangle.Literal)
	address, isAddress := t.Args[2].(*demangle.Unary)
	if !isLiteral || !isAddress || literal.Neg {
		return 0, "", false
	}
	number, err := strconv.Atoi(literal.Val)
	typed, isTyped := address.Expr.(*demangle.Typed)
	if err != nil || !isTyped {
		return 0, "", false
	}
	var function entryname.Name
	function.Take(typed)
	return number, function.Whole, function.Whole != ""
}
