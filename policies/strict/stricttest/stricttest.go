// Package stricttest holds a language against what its struct tags say of it:
// references and schemas are made from them, and must be true. It is for tests.
package stricttest

import (
	"fmt"
	"iter"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Language is a type that package strict reads files into.
type Language struct {
	Of any
	// Files are valid ones. Between them they have every mapping of the language.
	Files []string
	Parse func(text []byte) (any, error)
	// Entry is the element i of a list whose length has bounds, by its key.
	Entry map[string]func(i int) string
	// Halves is what the reference says of each half of the file; nil where it has none.
	Halves map[string]string
}

// Check sees to it that every key is explained, that its example can be written
// into a file as it stands, that its default is what a file without it means, and
// that its bounds are where the parser draws them.
func (l Language) Check(t *testing.T) {
	t.Helper()
	for _, k := range strict.Keys(l.Of) {
		t.Run(k.Path, func(t *testing.T) {
			if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") {
				t.Errorf("the doc is %q (write a sentence)", k.Doc)
			}
			if k.Example == "" {
				t.Error("there is no example (write the tag eg)")
			} else {
				l.accept(t, k, k.WrittenExample())
			}
			if k.Default != "" && !strings.HasPrefix(k.Default, "(") {
				l.checkDefault(t, k)
			}
			if k.Bounds != "" && !strings.HasPrefix(k.Bounds, "(") {
				l.checkBounds(t, k)
			}
		})
	}
}

// top is where the part of a reference begins that is made from the tags; what
// stands above is written by hand.
const top = "\n## The file"

// InStep sees to it that a page ends with the language's reference, or makes it so.
func (l Language) InStep(t *testing.T, page string, update bool) {
	t.Helper()
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(got), top)
	if !found {
		t.Fatalf("%s has no %q, under which the reference stands", page, strings.TrimSpace(top))
	}
	want := before + strict.Reference(l.Of, l.Halves)
	if update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(got) {
		t.Errorf("%s is out of step with the language (run the test with -update)", page)
	}
}

// accept wants a value to be read in one of the files.
func (l Language) accept(t *testing.T, k strict.Key, value string) {
	t.Helper()
	var refused []string
	for file := range l.with(t, k, value) {
		_, err := l.Parse(file)
		if err == nil {
			return
		}
		refused = append(refused, err.Error())
	}
	t.Errorf("%s: %s is read in no file:\n%s", k.Path, value, strings.Join(refused, "\n"))
}

// refuse wants it to be read in none.
func (l Language) refuse(t *testing.T, k strict.Key, value string) {
	t.Helper()
	for file := range l.with(t, k, value) {
		if _, err := l.Parse(file); err == nil {
			t.Errorf("%s: %s is beyond %s, and is read", k.Path, value, k.Bounds)
		}
	}
}

func (l Language) checkDefault(t *testing.T, k strict.Key) {
	with, without := slices.Collect(l.with(t, k, k.Default)), slices.Collect(l.with(t, k, ""))
	compared := 0
	for i := range with {
		said, err1 := l.Parse(with[i])
		left, err2 := l.Parse(without[i])
		if err1 != nil || err2 != nil {
			continue
		}
		compared++
		if !reflect.DeepEqual(said, left) {
			t.Errorf("%s: %s is not what holds where it is left out, in\n%s", k.Path, k.Default, without[i])
		}
	}
	if compared == 0 {
		t.Errorf("%s: no file can be read with %s and without it", k.Path, k.Default)
	}
}

var bounds = regexp.MustCompile(`^(-?[0-9.]+)(\S*) to (-?[0-9.]+)(\S*?)( entries)?$`)

// checkBounds tries both ends, and what is just beyond them.
func (l Language) checkBounds(t *testing.T, k strict.Key) {
	m := bounds.FindStringSubmatch(k.Bounds)
	if m == nil {
		t.Fatalf("%q are no bounds (write e.g. 4 to 100, 1 to 64 entries, or prose in parentheses)", k.Bounds)
	}
	value := func(digits, unit string, steps float64) string {
		v, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			t.Fatal(err)
		}
		step := 1.0
		if unit == "%" {
			step = 0.01
		}
		return strconv.FormatFloat(math.Round((v+steps*step)*1e6)/1e6, 'f', -1, 64) + unit
	}
	if m[5] != "" {
		entry := l.Entry[k.Path]
		if entry == nil {
			t.Fatalf("%s: how is a list of so many written? (add it to Entry)", k.Path)
		}
		number := value
		value = func(digits, unit string, steps float64) string {
			n, _ := strconv.Atoi(number(digits, unit, steps))
			var list []string
			for i := range n {
				list = append(list, entry(n-1-i))
			}
			return "[" + strings.Join(list, ", ") + "]"
		}
	}
	l.accept(t, k, value(m[1], m[2], 0))
	l.accept(t, k, value(m[3], m[4], 0))
	l.refuse(t, k, value(m[1], m[2], -1))
	l.refuse(t, k, value(m[3], m[4], +1))
}

// with is the files that have the mapping which the key belongs to, with another
// value for it, or without it where value is empty. Each is made when it is asked for.
func (l Language) with(t *testing.T, k strict.Key, value string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		t.Helper()
		made := false
		for _, file := range l.Files {
			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(file), &doc); err != nil {
				t.Fatal(err)
			}
			mapping, err := find(doc.Content[0], strings.TrimSuffix(strings.TrimSuffix(k.Path, k.Name), "."))
			if err != nil {
				continue
			}
			if err := set(mapping, k.Name, value); err != nil {
				t.Fatalf("%s: %q: %v", k.Path, value, err)
			}
			text, err := yaml.Marshal(&doc)
			if err != nil {
				t.Fatal(err)
			}
			if made = true; !yield(text) {
				return
			}
		}
		if !made {
			t.Fatalf("no file has what %s belongs to (add it to Files)", k.Path)
		}
	}
}

// find goes down a path such as rules[].when or variants.NAME, where any element
// and any name will do.
func find(at *yaml.Node, path string) (*yaml.Node, error) {
	if path == "" {
		return at, nil
	}
	for _, step := range strings.Split(path, ".") {
		name, inList := strings.CutSuffix(step, "[]")
		found := false
		for i := 0; at.Kind == yaml.MappingNode && i+1 < len(at.Content) && !found; i += 2 {
			if found = at.Content[i].Value == name || name == "NAME"; found {
				at = at.Content[i+1]
			}
		}
		if found && inList {
			if found = at.Kind == yaml.SequenceNode && len(at.Content) > 0; found {
				at = at.Content[0]
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no %s", step)
		}
	}
	if at.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s is no mapping", path)
	}
	return at, nil
}

func set(mapping *yaml.Node, name, value string) error {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			mapping.Content = append(mapping.Content[:i:i], mapping.Content[i+2:]...)
			break
		}
	}
	if value == "" {
		return nil
	}
	var pair yaml.Node
	if err := yaml.Unmarshal([]byte(name+": "+value), &pair); err != nil {
		return err
	}
	mapping.Content = append(mapping.Content, pair.Content[0].Content...)
	return nil
}
