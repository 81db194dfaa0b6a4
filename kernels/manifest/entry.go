package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An Entry is a kernel function by its name in the source: sdpa, ns::attention<64, true>,
// scale(float*, const float*, int). The grammar is narrow on purpose: a build writes an entry into
// a generated source, to instantiate a template. The written text is composed of what was parsed
// here: names, integers, types and the marks between them, and no word that could begin a statement
// or an expression.
type Entry struct {
	phrase          // the qualified name
	params []string // types of the parameter list
	listed bool     // there is a parameter list
}

// maxEntry is the bytes of an entry. Mangled names of real templates have several hundred.
const maxEntry = 4096

// ParseEntry reads the name of a kernel function. The error says what to write.
func ParseEntry(text string) (Entry, error) {
	if len(text) > maxEntry {
		return Entry{}, fmt.Errorf("has %d characters (write at most %d)", len(text), maxEntry)
	}
	p := &entryParser{tokens: entryTokens.FindAllString(text, -1)}
	if rest := strings.TrimSpace(entryTokens.ReplaceAllString(text, "")); rest != "" {
		return Entry{}, fmt.Errorf("%q has %q in it, which no name of a kernel has %s", text, rest, entryExamples)
	}
	p.next("::")
	e := Entry{phrase: p.qualified()}
	if p.next("(") {
		e.listed = true
		var keys []string
		for !p.next(")") && p.err == nil {
			if len(e.params) > 0 {
				p.want(",")
			}
			t := p.typeName()
			e.params = append(e.params, t.text)
			keys = append(keys, t.key)
		}
		if slices.Equal(keys, []string{"void"}) {
			e.params, keys = nil, nil
		}
		e.key += "(" + strings.Join(keys, ",") + ")"
	}
	if p.err == nil && p.at < len(p.tokens) {
		p.fail()
	}
	if p.err != nil {
		return Entry{}, fmt.Errorf("%q is no name of a kernel: %w %s", text, p.err, entryExamples)
	}
	return e, nil
}

// Name is the qualified name without template arguments and parameters.
func (e Entry) Name() string { return e.path }

// Base is the name alone, without the scope and template arguments.
func (e Entry) Base() string { return e.base }

// Plain reports whether it is only a name, which may belong to several functions.
func (e Entry) Plain() bool { return e.Untemplated() && !e.listed }

// Untemplated reports whether no part of the name has template arguments.
func (e Entry) Untemplated() bool { return e.text == e.path }

// Key returns the entry in the spelling of demanglers: no blanks, const behind what it applies to,
// integers in decimal without suffix. Two spellings of a function may still have different keys;
// only the compiler knows.
func (e Entry) Key() string { return e.key }

// Listed reports whether the entry names its parameters.
func (e Entry) Listed() bool { return e.listed }

// Address returns a C++ expression of the function's address, and Signature its type: empty if the
// name must be enough.
func (e Entry) Address() string { return "&::" + e.text }

func (e Entry) Signature() string {
	if !e.listed {
		return ""
	}
	return "void (*)(" + strings.Join(e.params, ", ") + ")"
}

// checkEntry reports a name that no kernel function can have.
func checkEntry(at reporter, text string) {
	if _, err := ParseEntry(text); err != nil {
		at.Errorf("%s", err)
	}
}

const entryExamples = "(write e.g. sdpa, attention<64, true>, ns::kernel or scale(float*, const float*, int))"

var (
	entryTokens = regexp.MustCompile(`[A-Za-z_$][A-Za-z0-9_$]*|-?[0-9][0-9A-Za-z]*|::|[<>,*&()]`)
	entryNumber = regexp.MustCompile(`^(-?)(0[xX][0-9A-Fa-f]{1,16}|0|[1-9][0-9]{0,19})([uU]?[lL]{0,2})$`)
	entryWord   = regexp.MustCompile(`^[A-Za-z_$]`)

	typeWords = []string{"bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void", "wchar_t"}
	// A pointer that nothing else points to is the same parameter.
	silentWords = []string{"__restrict__", "__restrict"}
)

// builtins are the spellings of C's types by the one that demanglers use. The key is sorted.
var builtins = map[string]string{
	"unsigned": "unsigned int", "int unsigned": "unsigned int", "signed": "int", "int signed": "int",
	"char unsigned": "unsigned char", "char signed": "signed char",
	"int short": "short", "short": "short", "short unsigned": "unsigned short", "int short unsigned": "unsigned short",
	"int long": "long", "long unsigned": "unsigned long", "int long unsigned": "unsigned long", "long signed": "long",
	"long long": "long long", "int long long": "long long", "long long unsigned": "unsigned long long", "int long long unsigned": "unsigned long long",
	"bool": "bool", "char": "char", "double": "double", "float": "float", "int": "int", "long": "long", "void": "void", "wchar_t": "wchar_t", "double long": "long double",
}

type entryParser struct {
	tokens []string
	at     int
	depth  int
	err    error
}

// A phrase is a part of an entry: as it is written for a compiler, and as keys have it. A name is also known without template
// arguments, ns::attention, and by its last part alone.
type phrase struct{ text, key, path, base string }

func (p *entryParser) peek() string {
	if p.err != nil || p.at >= len(p.tokens) {
		return ""
	}
	return p.tokens[p.at]
}

func (p *entryParser) next(token string) bool {
	if p.peek() != token {
		return false
	}
	p.at++
	return true
}

func (p *entryParser) want(token string) {
	if !p.next(token) {
		p.fail()
	}
}

// fail stops at a token; peek tells of none from now on, so that all loops end.
func (p *entryParser) fail() {
	switch {
	case p.err != nil:
	case p.at >= len(p.tokens):
		p.err = fmt.Errorf("it ends too early")
	default:
		p.err = fmt.Errorf("%q is out of place", p.tokens[p.at])
	}
}

// qualified reads names with :: between them.
func (p *entryParser) qualified() phrase {
	var q phrase
	for {
		name := p.peek()
		if slices.Contains(keywords, name) && p.err == nil {
			p.err = fmt.Errorf("%q is a keyword of C or C++", name)
		}
		if !entryWord.MatchString(name) || slices.Contains(silentWords, name) {
			p.fail()
		}
		if p.err != nil {
			return q
		}
		p.at++
		q.text, q.key, q.path, q.base = q.text+name, q.key+name, q.path+name, name
		if p.next("<") {
			text, key := p.templateArguments()
			q.text, q.key = q.text+text, q.key+key
		}
		if !p.next("::") {
			return q
		}
		q.text, q.key, q.path = q.text+"::", q.key+"::", q.path+"::"
	}
}

const maxEntryDepth = 64

func (p *entryParser) templateArguments() (text, key string) {
	if p.depth++; p.depth > maxEntryDepth {
		p.fail()
		return "", ""
	}
	defer func() { p.depth-- }()
	var texts, keys []string
	for !p.next(">") && p.err == nil {
		if len(texts) > 0 {
			p.want(",")
		}
		t := p.templateArgument()
		texts, keys = append(texts, t.text), append(keys, t.key)
	}
	return "<" + strings.Join(texts, ", ") + ">", "<" + strings.Join(keys, ",") + ">"
}

func (p *entryParser) templateArgument() phrase {
	token := p.peek()
	if token == "true" || token == "false" {
		p.at++
		return phrase{text: token, key: token}
	}
	m := entryNumber.FindStringSubmatch(token)
	if m == nil {
		return p.typeName()
	}
	n, err := strconv.ParseUint(m[2], 0, 64)
	if err != nil {
		p.fail()
		return phrase{}
	}
	p.at++
	return phrase{text: token, key: m[1] + strconv.FormatUint(n, 10)}
}

// typeName reads words of C or a name, const among them, and the marks of pointers and references.
func (p *entryParser) typeName() phrase {
	var words []string
	var named phrase
	suffix := ""
words:
	for p.err == nil {
		switch token := p.peek(); {
		case token == "const" || token == "volatile":
			if strings.Contains(suffix, token) {
				p.fail()
			}
			suffix += " " + token
			p.at++
		case slices.Contains(typeWords, token) && named.text == "":
			words = append(words, token)
			p.at++
		case (token == "::" || entryWord.MatchString(token)) && len(words) == 0 && named.text == "":
			p.next("::")
			named = p.qualified()
		default:
			break words
		}
	}
	if len(words) > 0 {
		sorted := slices.Sorted(slices.Values(words))
		name := builtins[strings.Join(sorted, " ")]
		if name == "" {
			p.fail()
		}
		named = phrase{text: name, key: name}
	}
	if named.text == "" {
		p.fail()
	}
	text, key := named.text+suffix, named.key+suffix
	for {
		switch token := p.peek(); {
		case token == "*" || token == "&":
			text, key = text+token, key+token
		case token == "const" || token == "volatile":
			text, key = text+" "+token, key+" "+token
		case slices.Contains(silentWords, token):
		default:
			return phrase{text: text, key: key}
		}
		p.at++
	}
}
