package checkout

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A .gitattributes file can make git give a file different bytes in a checkout than in the
// repository. Builds here use the repository's bytes.

// attributesFile is where a folder says how its files are checked out.
const attributesFile = ".gitattributes"

// An attribute is a git attribute that changes bytes.
type attribute string

// bytesChange lists the attributes that change bytes in a checkout on Linux, each with a function
// that reports whether it changes the given bytes.
var bytesChange = map[attribute]func(value string, content []byte) bool{
	"ident":                 func(_ string, content []byte) bool { return bytes.Contains(content, []byte("$Id")) },
	"eol":                   func(value string, content []byte) bool { return value == "crlf" && bytes.IndexByte(content, '\n') >= 0 },
	"filter":                func(string, []byte) bool { return true },
	"working-tree-encoding": func(value string, _ []byte) bool { return !strings.EqualFold(value, "utf-8") },
}

// Attributes are the rules of a revision about how files are checked out.
type Attributes struct {
	macros map[string][]setting
	rules  map[string][]attributeRule // by folder
}

type attributeRule struct {
	pattern  *regexp.Regexp
	settings []setting
}

type setting struct{ name, value string } // value is "" if the attribute is unset

// Attributes reads the rules for files. A merge takes each file of rules from one of two revisions;
// from says which. A work tree is a checkout itself.
func (r *Repo) Attributes(ctx context.Context, names []string, from func(file string) (rev string)) (*Attributes, error) {
	a := &Attributes{macros: map[string][]setting{"binary": {{"diff", ""}, {"merge", ""}, {"text", ""}}}, rules: map[string][]attributeRule{}}
	folders := map[string]bool{}
	for _, name := range names {
		for dir := path.Dir(name); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	var files []string
	at := map[string][]string{}
	for dir := range folders {
		file := path.Join(dir, attributesFile)
		files = append(files, file)
		if rev := from(file); rev != workTree {
			at[rev] = append(at[rev], file)
		}
	}
	slices.Sort(files)
	texts := map[string][]byte{}
	for rev, some := range at {
		found, err := r.ReadAll(ctx, rev, some)
		if err != nil {
			return nil, fmt.Errorf("reading the attributes of files: %w", err)
		}
		maps.Copy(texts, found)
	}
	a.parse(".", texts[attributesFile], true) // macros first
	for _, file := range files {
		if dir := path.Dir(file); dir != "." {
			a.parse(dir, texts[file], false)
		}
	}
	return a, nil
}

// parse reads one file. Only the file at the top defines macros.
func (a *Attributes) parse(dir string, text []byte, top bool) {
	for line := range strings.Lines(string(text)) {
		pattern, rest := cutPattern(strings.TrimSpace(line))
		if pattern == "" || strings.HasPrefix(pattern, "#") || strings.HasPrefix(pattern, "!") {
			continue
		}
		var settings []setting
		for _, word := range strings.Fields(rest) {
			settings = append(settings, a.setting(word)...)
		}
		if macro, ok := strings.CutPrefix(pattern, "[attr]"); ok {
			if top {
				a.macros[macro] = settings
			}
			continue
		}
		a.rules[dir] = append(a.rules[dir], attributeRule{globPattern(pattern), settings})
	}
}

// cutPattern splits the pattern off a line. A pattern with blanks is quoted.
func cutPattern(line string) (pattern, rest string) {
	if strings.HasPrefix(line, `"`) {
		for i := 1; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case '"':
				return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(line[1:i]), line[i+1:]
			}
		}
	}
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// setting returns what one word of a line sets, with macros expanded.
func (a *Attributes) setting(word string) []setting {
	switch {
	case strings.HasPrefix(word, "-"), strings.HasPrefix(word, "!"):
		return []setting{{word[1:], ""}}
	}
	name, value, given := strings.Cut(word, "=")
	if !given {
		value = "set"
	}
	return append([]setting{{name, value}}, a.macros[name]...)
}

// globPattern converts a git pattern into a regular expression over the path from its folder. A
// pattern that cannot be parsed matches everything, so that a file that might be converted counts
// as converted.
func globPattern(glob string) *regexp.Regexp {
	anchored := strings.Contains(strings.TrimSuffix(glob, "/"), "/")
	var b strings.Builder
	b.WriteString("^")
	if !anchored {
		b.WriteString("(?:.*/)?")
	}
	glob = strings.TrimPrefix(glob, "/")
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.HasPrefix(glob[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[':
			end := strings.IndexByte(glob[i+1:], ']')
			if end < 1 {
				return regexp.MustCompile("")
			}
			class := glob[i+1 : i+1+end]
			if strings.HasPrefix(class, "!") {
				class = "^" + class[1:]
			}
			b.WriteString("[" + class + "]")
			i += end + 1
		case c == '\\' && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(string(glob[i])))
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	b.WriteString("$")
	pattern, err := regexp.Compile(b.String())
	if err != nil {
		return regexp.MustCompile("")
	}
	return pattern
}

// Converts names the attribute by which a checkout has different bytes of a file than the
// repository, or returns "" if they are the same.
func (a *Attributes) Converts(name string, content []byte) string {
	values := map[attribute]string{}
	var dirs []string // from the top down
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == "." {
			break
		}
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		rel := name
		if dir != "." {
			rel = strings.TrimPrefix(name, dir+"/")
		}
		for _, rule := range a.rules[dir] {
			if !rule.pattern.MatchString(rel) {
				continue
			}
			for _, s := range rule.settings {
				values[attribute(s.name)] = s.value
			}
		}
	}
	for _, name := range []attribute{"ident", "eol", "filter", "working-tree-encoding"} {
		if value := values[name]; value != "" && bytesChange[name](value, content) {
			return string(name)
		}
	}
	return ""
}
