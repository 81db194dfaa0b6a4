package toolchain

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Which variables a kernel can write is asked for the sake of words: "keeps state" is said of those, and not of every constant
// table. Whoever resets a kernel's state between launches takes all variables, since this can be misled by a source that
// takes pains.
//
// The PTX that comes with line information tells. An address that is taken in it is followed through the registers it is copied to
// and computed with: a store or an atomic through it writes the variable, and so does any instruction that is not known to only read,
// or a copy of the address in memory, where it cannot be followed.

// ptxReads are functions of the driver that read what they are given.
var ptxReads = []string{"vprintf", "__assertfail"}

// ptxMoves are instructions that make an address of an address.
var ptxMoves = []string{
	"mov", "cvta", "add", "sub", "mad", "mul", "shl", "shr", "and", "or", "xor", "not", "neg", "selp", "min", "max", "cvt", "prmt", "shf", "bfi", "bfe", "lop3", "mad24", "shfl", "slct", "isspacep",
}

// ptxLooks are instructions that do nothing to what an address leads to.
var ptxLooks = []string{"ld", "ldu", "ldmatrix", "setp", "set", "prefetch", "prefetchu", "tex", "applypriority", "bra", "ret", "discard"}

var (
	ptxGlobal   = regexp.MustCompile(`(?:^|\s)\.global\s[^=]*?([A-Za-z_$%][\w$]*)(?:\[\d*\])*\s*(?:=\s*(.*))?$`)
	ptxFunction = regexp.MustCompile(`(?:\.entry|\.func)\s+(?:\([^)]*\)\s*)?([A-Za-z_$%][\w$]*)\s*(?:\(([^)]*)\))?`)
	ptxName     = regexp.MustCompile(`[A-Za-z_$%][\w$]*`)
	ptxCall     = regexp.MustCompile(`^call(?:\.uni)?\s*(?:\(([^)]*)\)\s*,)?\s*([A-Za-z_$%][\w$]*)\s*(?:,\s*\(([^)]*)\))?`)
)

// A ptxBody is the statements of one function.
type ptxBody struct {
	name       string
	params     []string
	statements []string
}

// A ptxFlow is where addresses have got to. Labels are the names of variables and of functions' parameters.
type ptxFlow struct {
	globals map[string]bool
	written map[string]bool // labels
	bodies  map[string]ptxBody
	left    int // instructions that may be looked at yet
}

// writtenGlobals are the variables that the code may write; false where there is no PTX to tell.
func (f *cubinFile) writtenGlobals() (map[string]bool, bool) {
	i := slices.IndexFunc(f.sections, func(s elfSection) bool { return strings.HasSuffix(s.name, ".nv_debug_ptx_txt") && len(s.data) > 0 })
	if i < 0 {
		return nil, false
	}
	return ptxWritten(strings.ReplaceAll(string(f.sections[i].data), "\x00", "\n"))
}

// So often is all gone through, and so many instructions are looked at, before everything is given up as written. A source
// that needs more is made to.
const (
	maxPTXPasses = 64
	maxPTXSteps  = 4 << 20
)

func ptxWritten(text string) (map[string]bool, bool) {
	flow := ptxFlow{globals: map[string]bool{}, written: map[string]bool{}, bodies: map[string]ptxBody{}, left: maxPTXSteps}
	initial := map[string]string{}
	flow.read(text, initial)
	if len(flow.bodies) == 0 {
		return nil, false
	}
	// A variable whose address another one starts with can be reached through that.
	for name, value := range initial {
		for _, other := range ptxName.FindAllString(value, -1) {
			if flow.globals[other] && other != name {
				flow.written[other] = true
			}
		}
	}
	for range maxPTXPasses {
		before := len(flow.written)
		for _, body := range flow.bodies {
			if !flow.follow(body) {
				return nil, false
			}
		}
		if len(flow.written) == before {
			return flow.written, true
		}
	}
	return nil, false
}

var ptxComment = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)

// read splits a text into variables and functions.
func (w *ptxFlow) read(text string, initial map[string]string) {
	text = ptxComment.ReplaceAllString(text, " ")
	depth, start := 0, 0
	var body ptxBody
	statement := func(end int) string {
		s := strings.Join(strings.Fields(text[start:end]), " ")
		start = end + 1
		return s
	}
	initializer := false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '{' && depth == 0 && strings.Contains(text[start:i], "="):
			initializer = true
		case c == '}' && initializer:
			initializer = false
		case initializer:
		case c == '{' && depth == 0:
			head := statement(i)
			if m := ptxFunction.FindStringSubmatch(head); m != nil {
				body = ptxBody{name: m[1]}
				for param := range strings.SplitSeq(m[2], ",") {
					if names := ptxName.FindAllString(strings.Split(param, "[")[0], -1); len(names) > 0 {
						body.params = append(body.params, names[len(names)-1])
					}
				}
			}
			depth = 1
		case c == '{' && opensScope(text[start:i]):
			start = i + 1
			depth++
		case c == '{': // a vector's registers
			depth += 1000
		case c == '}' && depth >= 1000:
			depth -= 1000
		case c == '}' && depth > 0:
			start = i + 1
			if depth--; depth == 0 {
				body.statements = apart(body.statements)
				w.bodies[body.name] = body
			}
		case c == ';' && depth == 0:
			if m := ptxGlobal.FindStringSubmatch(statement(i)); m != nil {
				w.globals[m[1]] = true
				initial[m[1]] = m[2]
			}
		case c == ';':
			body.statements = append(body.statements, statement(i))
		}
	}
}

// apart gives the variables that calls pass parameters in a name for each call: compilers use the same few for all of them.
func apart(statements []string) []string {
	names := map[string]string{}
	var out []string
	for i, s := range statements {
		if strings.HasPrefix(s, ".param ") {
			if found := ptxName.FindAllString(strings.Split(s, "[")[0], -1); len(found) > 0 {
				last := found[len(found)-1]
				names[last] = fmt.Sprintf("%s$%d", last, i)
			}
			continue
		}
		if len(names) > 0 {
			s = ptxName.ReplaceAllStringFunc(s, func(name string) string { return cmp.Or(names[name], name) })
		}
		out = append(out, s)
	}
	return out
}

// opensScope tells a brace of its own from one within an instruction.
func opensScope(before string) bool {
	before = strings.TrimSpace(before)
	return before == "" || strings.HasSuffix(before, ":")
}

var ptxLabel = regexp.MustCompile(`^(?:[\w$%]+:\s*)+`)

// follow goes through one function until no register learns of another address.
func (w *ptxFlow) follow(body ptxBody) bool {
	held := map[string]map[string]bool{} // labels by register or parameter variable
	for _, p := range body.params {
		held[p] = map[string]bool{body.name + "/" + p: true}
	}
	for range maxPTXPasses {
		changed := false
		learn := func(name string, labels map[string]bool) {
			if len(labels) == 0 {
				return
			}
			if held[name] == nil {
				held[name] = map[string]bool{}
			}
			for l := range labels {
				changed = changed || !held[name][l]
				held[name][l] = true
			}
		}
		if w.left -= len(body.statements); w.left < 0 {
			return false
		}
		for _, s := range body.statements {
			w.step(ptxLabel.ReplaceAllString(s, ""), held, learn)
		}
		if !changed {
			return true
		}
	}
	return false
}

// step is one instruction.
func (w *ptxFlow) step(s string, held map[string]map[string]bool, learn func(string, map[string]bool)) {
	if strings.HasPrefix(s, "@") {
		_, s, _ = strings.Cut(s, " ")
	}
	if s == "" || s[0] == '.' {
		return // a directive
	}
	labels := func(operand string) map[string]bool {
		all := map[string]bool{}
		for _, name := range ptxName.FindAllString(operand, -1) {
			if w.globals[name] {
				all[name] = true
			}
			maps.Copy(all, held[name])
		}
		return all
	}
	if strings.HasPrefix(s, "call") {
		w.call(s, labels, learn)
		return
	}
	op, rest, _ := strings.Cut(s, " ")
	kind, _, _ := strings.Cut(op, ".")
	operands := ptxOperands(rest)
	switch {
	case len(operands) == 0:
	case strings.HasPrefix(op, "st.param"):
		for _, name := range ptxName.FindAllString(operands[0], 1) {
			learn(name, labels(strings.Join(operands[1:], " ")))
		}
	case strings.HasPrefix(op, "ld.param"):
		for _, to := range ptxName.FindAllString(operands[0], -1) {
			learn(to, labels(strings.Join(operands[1:], " ")))
		}
	case kind == "st" || kind == "atom" || kind == "red":
		for _, o := range operands {
			if strings.HasPrefix(o, "[") {
				w.write(labels(o), false)
			} else {
				w.write(labels(o), true)
			}
		}
	case slices.Contains(ptxMoves, kind):
		from := labels(strings.Join(operands[1:], " "))
		for _, to := range ptxName.FindAllString(operands[0], -1) {
			learn(to, from)
		}
	case slices.Contains(ptxLooks, kind):
	case strings.HasPrefix(op, "cp.async.ca.") || strings.HasPrefix(op, "cp.async.cg."):
		w.write(labels(operands[0]), false)
	default:
		w.write(labels(rest), false)
	}
}

func (w *ptxFlow) call(s string, labels func(string) map[string]bool, learn func(string, map[string]bool)) {
	m := ptxCall.FindStringSubmatch(s)
	if m == nil {
		w.write(labels(s), true)
		return
	}
	back, callee := m[1], m[2]
	args := ptxOperands(m[3])
	body, known := w.bodies[callee]
	for i, a := range args {
		given := labels(a)
		switch {
		case known && i < len(body.params):
			if w.written[callee+"/"+body.params[i]] {
				w.write(given, false)
			}
			for _, name := range ptxName.FindAllString(back, -1) {
				learn(name, given)
			}
		case slices.Contains(ptxReads, callee):
		default:
			w.write(given, true)
		}
	}
}

// write notes that variables are written, or that their address is where it cannot be followed. The text of a message that is
// printed gets about and is never written through.
func (w *ptxFlow) write(labels map[string]bool, escapes bool) {
	for l := range labels {
		if !escapes || !strings.HasPrefix(l, "$str") && !strings.HasPrefix(l, "__unnamed_") {
			w.written[l] = true
		}
	}
}

// ptxOperands splits at commas outside of brackets and braces.
func ptxOperands(list string) []string {
	var out []string
	depth, start := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(list[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(list[start:]); last != "" {
		out = append(out, last)
	}
	return out
}
