package scaffold

import (
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A touch is what a body does with an array.
type touch struct{ reads, writes, passes bool }

// readBody looks at what the body does with arrays that its declaration does not call constant. A body that passes an array on
// tells nothing about it, and then its name has to.
func (f *function) readBody() {
	for i := range f.parameters {
		p := &f.parameters[i]
		if p.access != manifest.Out {
			continue
		}
		t := touched(f.body, p.name, 3)
		switch {
		case t.passes && !t.writes:
			p.doubt = "the body passes it on"
			if !outputName.MatchString(p.name) && inputName.MatchString(p.name) {
				p.access = manifest.In
			}
		case t.reads && t.writes:
			p.access, p.doubt = manifest.InOut, ""
		case t.writes:
		case t.reads:
			p.access = manifest.In
		default:
			p.doubt = "the body does not name it"
		}
	}
	f.haveOutput()
}

var (
	outputName = regexp.MustCompile(`(?i)out|dst|dest|result|^[yoz]$|^c$|^[dg]?_?c$|_o$|^res`)
	inputName  = regexp.MustCompile(`(?i)^in|src|data|weight|^[abxqkv]$|bias|mask|input`)
)

// haveOutput makes one array an output if none is: a kernel that writes nothing cannot be compared.
func (f *function) haveOutput() {
	last, named := -1, -1
	for i, p := range f.parameters {
		switch {
		case p.access == manifest.Out || p.access == manifest.InOut:
			return
		case p.access == manifest.Scalar:
		default:
			if last = i; outputName.MatchString(p.name) {
				named = i
			}
		}
	}
	if named >= 0 {
		last = named
	}
	if last >= 0 {
		f.parameters[last].access, f.parameters[last].doubt = manifest.Out, "no array is written that the source shows"
	}
}

var (
	atomicCall = regexp.MustCompile(`atomic\w*\s*(?:<[^<>]*>)?\s*\(\s*&?\s*$`)
	storeCall  = regexp.MustCompile(`(?:__st\w*|store\w*|Store\w*|\w*_store\w*)\s*(?:<[^<>]*>)?\s*\(\s*&?\s*(?:\([^()]*\)\s*)?$`)
	loadCall   = regexp.MustCompile(`(?:__ld\w*|load\w*|Load\w*|\w*_load\w*|\w*_loadu\w*)\s*(?:<[^<>]*>)?\s*\(\s*&?\s*(?:\([^()]*\)\s*)?$`)
	aliasOf    = regexp.MustCompile(`[\w>:]\s*\*+\s*(?:const\s+|__restrict__\s+|restrict\s+)*(\w+)\s*=\s*[^;=]*$|\bauto\s*\*?\s*(\w+)\s*=\s*[^;=]*$`)
	assigned   = regexp.MustCompile(`^\s*(?:\.\w+\s*)?(=[^=]|[-+*/|&^%]=|<<=|>>=|\+\+|--)`)
	// dereferenced ends in a star that is neither a declaration's nor a product's.
	dereferenced = regexp.MustCompile(`(?:^|[^\w>)\]\s*])\s*\*\s*$`)
	closing      = regexp.MustCompile(`^\s*(?:\+[^;,()]*(?:\([^()]*\)[^;,()]*)*)?\)+\s*\[`)
)

// touched looks at every place where a body names an array, and at the variables that are made of it.
func touched(body, name string, depth int) touch {
	var t touch
	at := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
	for _, place := range at.FindAllStringIndex(body, -1) {
		before, after := body[max(0, place[0]-120):place[0]], body[place[1]:]
		end := strings.TrimLeft(after, " \t\n")
		switch {
		case strings.HasSuffix(before, ".") || strings.HasSuffix(before, "->"):
			// a member of the same name
		case atomicCall.MatchString(before):
			t.reads, t.writes = true, true
		case storeCall.MatchString(before):
			t.writes = true
		case loadCall.MatchString(before):
			t.reads = true
		case strings.HasPrefix(end, "["):
			t.element(skipBrackets(end))
		case closing.MatchString(after):
			t.element(skipBrackets(after[strings.Index(after, "["):]))
		case dereferenced.MatchString(before) && assigned.MatchString(after):
			t.element(after)
		default:
			t.whole(body, before, after, name, depth)
		}
	}
	return t
}

// element tells a write to an element from a read, by what follows it.
func (t *touch) element(after string) {
	m := assigned.FindStringSubmatch(after)
	switch {
	case m == nil:
		t.reads = true
	case m[1][0] == '=':
		t.writes = true
	default:
		t.reads, t.writes = true, true
	}
}

// whole is a place that names the array and none of its elements: an alias, a call, or arithmetic.
func (t *touch) whole(body, before, after, name string, depth int) {
	statement := before[strings.LastIndexAny(before, ";{}")+1:]
	if m := aliasOf.FindStringSubmatch(statement); m != nil && depth > 0 {
		if alias := m[1] + m[2]; alias != name {
			u := touched(body, alias, depth-1)
			t.reads, t.writes, t.passes = t.reads || u.reads, t.writes || u.writes, t.passes || u.passes
		}
		return
	}
	if assigned.MatchString(after) {
		return // the pointer moves
	}
	t.passes = true
}

// skipBrackets returns what follows one or more indices.
func skipBrackets(text string) string {
	depth := 0
	for i, r := range text {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0 && !strings.ContainsRune(" \t\n", r):
			return text[i:]
		}
	}
	return ""
}
