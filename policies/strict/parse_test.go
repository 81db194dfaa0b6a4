package strict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/strict"
)

const allFields = "name, open, rows, small, area, beds, tools, fence, depth, motto, colour, tags, nested, owner"

func TestSyntaxMistakes(t *testing.T) {
	// The comment on top moves the start of the outermost mapping, which the YAML parser would
	// name, away from the mistake.
	tests := []struct{ name, text, want string }{
		{"a list that is not closed", "# top\nname: x\nbeds: [a, b\nrows: 3\n", `3:7: is not valid YAML: did not find expected ',' or ']' ("[" opens here: close it, and put a comma between its items)`},
		{"a mapping that is not closed", "# top\nname: x\nfence: {height: 1\n", `3:8: is not valid YAML: did not find expected ',' or '}' ("{" opens here: close it, and put a comma between its items)`},
		{"a quote that is not closed", "# top\nname: \"x\nrows: 3\n", "2:7: is not valid YAML: found unexpected end of stream (a quote opens here: close it)"},
		{"a list over several lines before the mistake", "# top\nname: x\nbeds: [\n  a,\n  b]\nrows: 3: 4\n", "6:8: is not valid YAML: mapping values are not allowed in this context (a second colon: put the value in quotes, or write each field on a separate line)"},
		{"two colons", "# top\nname: x\nrows: 3: 4\n", "3:8: is not valid YAML: mapping values are not allowed in this context (a second colon: put the value in quotes, or write each field on a separate line)"},
		{"a tab", "# top\nname: x\nfence:\n\theight: 1\n", "4:1: is not valid YAML: found character that cannot start any token (this is a tab: indent with spaces)"},
		{"no colon", "# top\nname: x\nrows\nopen: true\n", "3:1: is not valid YAML: could not find expected ':' (write name: value)"},
		{"an item that is not indented like the others", "# top\nname: x\nbeds:\n  - plant: a\n   count: 1\n", "5:4: is not valid YAML: did not find expected '-' indicator (indent this line like the item that it belongs to)"},
		{"text behind a quoted text", "# top\nname: x\nmotto: 'a' b\nrows: 1\n", "3:12: is not valid YAML: did not find expected key (a quoted text ends before this: put all of the value in the quotes)"},
		{"a character with a meaning of its own", "# top\nname: @x\n", `2:7: is not valid YAML: found character that cannot start any token ("@" begins no value: put the value in quotes)`},
		{"an alias of nothing", "# top\nname: x\nfence: *high\n", `3:8: is not valid YAML: unknown anchor 'high' referenced ("*" begins something else than a text: put the value in quotes)`},
		{"an unknown escape", "# top\nname: \"\\q\"\n", `2:8: is not valid YAML: found unknown escape character (write \\ for a backslash, or use single quotes)`},
		{"a control character", "# top\nname: x\nmotto: \x01\n", "3:8: is not valid YAML: control characters are not allowed (delete this character)"},
		{"not UTF-8", "# top\nname: x\nmotto: \xff\n", "3:8: is not valid YAML: invalid leading UTF-8 octet (save the file as UTF-8)"},
		{"on the first line", "}\n", "1:1: is not valid YAML: did not find expected node content (a bracket or a comma stands where a value belongs: delete it, or write the value)"},
		{"Windows line ends", "name: x\r\nrows: 3: 4\r\n", "2:8: is not valid YAML: mapping values are not allowed in this context (a second colon: put the value in quotes, or write each field on a separate line)"},
		{"in a second document", "name: x\n---\nrows: 3: 4\n", "3:8: is not valid YAML: mapping values are not allowed in this context (a second colon: put the value in quotes, or write each field on a separate line)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var g garden
			if diff := cmp.Diff([]string{"g.yaml:" + tt.want}, mistakes(strict.Decode("g.yaml", []byte(tt.text), &g))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("in a file too long to search", func(t *testing.T) {
		var g garden
		text := "name: x\n" + strings.Repeat("# a comment\n", 20_000) + "rows: 3: 4\n"
		want := []string{"g.yaml: is not valid YAML: line 20002: mapping values are not allowed in this context"}
		if diff := cmp.Diff(want, mistakes(strict.Decode("g.yaml", []byte(text), &g))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDocuments(t *testing.T) {
	empty := "is empty (write a mapping with " + allFields + ")"
	second := "a second YAML document starts here (write one document a file)"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"g.yaml: " + empty}},
		{"a comment", "# later\n", []string{"g.yaml: " + empty}},
		{"a document without content", "---\n", []string{"g.yaml:2:1: " + empty}},
		{"null", "~", []string{"g.yaml:1:1: " + empty}},
		{"one document between marks", "---\nname: x\n...\n", nil},
		{"a byte-order mark", "\ufeffname: x\n", nil},
		{"UTF-16", "\xff\xfen\x00a\x00m\x00e\x00:\x00 \x00x\x00\n\x00", []string{"g.yaml:1:1: is not UTF-8 text (save the file as UTF-8)"}},
		{"UTF-16, the other order", "\xfe\xff\x00n\x00a\x00m\x00e\x00:\x00 \x00x\x00\n", []string{"g.yaml:1:1: is not UTF-8 text (save the file as UTF-8)"}},
		{"two documents", "name: x\n---\nname: y\n", []string{"g.yaml:2:1: " + second}},
		{"a second one without content", "name: x\n---\n", []string{"g.yaml:2:1: " + second}},
		{"as long as may be", "name: x\n" + strings.Repeat(" ", strict.MaxBytes-8), nil},
		{"too long", "name: x\n" + strings.Repeat(" ", strict.MaxBytes-7), []string{"g.yaml: is 1048577 bytes long (at most 1048576 are read)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var g garden
			if diff := cmp.Diff(tt.want, mistakes(strict.Decode("g.yaml", []byte(tt.text), &g))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsReadNowhere(t *testing.T) {
	noWord := "has a key that is no word (write name: value)"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"merge key", "name: x\nbeds:\n  - &b {plant: a}\n  - {<<: *b, count: 2}", []string{
			"g.yaml:4:5: beds[1].plant: is required",
			"g.yaml:4:6: beds[1].<<: merge keys are not read (repeat the fields here)"}},
		{"merge key in a mapping", "name: x\ntools: {<<: {a: 1}, b: 2}", []string{
			"g.yaml:2:9: tools.<<: merge keys are not read (repeat the fields here)"}},
		{"merge key in quotes is a word", "name: x\nfence: {'<<': 1}", []string{
			"g.yaml:2:9: fence.<<: unknown field (known here: height, width)"}},
		{"tags", "name: !short x\nrows: !!int 4\nbeds: !things [{plant: !!str 5}]", []string{
			"g.yaml:1:7: name: has the tag !short, and tags are not read (delete it)",
			"g.yaml:2:7: rows: has the tag !!int, and tags are not read (delete it)",
			"g.yaml:3:7: beds: has the tag !things, and tags are not read (delete it)",
			"g.yaml:3:24: beds[0].plant: has the tag !!str, and tags are not read (delete it)"}},
		{"a tag on a key", "name: x\n!!str rows: 1", []string{
			"g.yaml:2:1: rows: has the tag !!str, and tags are not read (delete it)"}},
		{"keys that are no words", "name: x\n? [a]\n: 1\nfence: {~: 1, '': 2, {a: b}: 3}\ntools:\n  ? &k a\n  : 1\n  *k : 2", []string{
			"g.yaml:2:3: " + noWord,
			"g.yaml:4:9: fence: " + noWord,
			"g.yaml:4:15: fence: " + noWord,
			"g.yaml:4:22: fence: " + noWord,
			"g.yaml:8:3: tools: " + noWord}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var g garden
			if diff := cmp.Diff(tt.want, mistakes(strict.Decode("g.yaml", []byte(tt.text), &g))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAliases(t *testing.T) {
	var g garden
	err := strict.Decode("g.yaml", []byte("name: &n x\nowner: *n\nbeds: [&b {plant: *n}, *b]"), &g)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bed{{Plant: "x"}, {Plant: "x"}}, g.Beds); diff != "" || g.Owner != "x" {
		t.Errorf("owner %q, beds %s", g.Owner, diff)
	}
	// The mistake is reported at the alias, and mistakes below it where they were written.
	got := mistakes(strict.Decode("g.yaml", []byte("name: &n x\nrows: *n\nfence: &f {height: *n}\nbeds: [*f]"), &g))
	want := []string{
		`g.yaml:2:7: rows: "x" is not a whole number (write e.g. 128)`,
		`g.yaml:3:12: beds[0].height: unknown field (known here: count, plant)`,
		`g.yaml:3:20: fence.height: "x" is not a whole number (write e.g. 128)`,
		`g.yaml:4:8: beds[0].plant: is required`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A tree is a type of any depth.
type tree struct {
	Name     string `yaml:"name"`
	Child    *tree  `yaml:"child"`
	Children []tree `yaml:"children"`
}

func TestBombs(t *testing.T) {
	deep := "is nested more than 64 levels deep (write it flatter)"
	full := "holds more than 100000 values, aliases unfolded (shorten the file)"
	var lists strings.Builder
	lists.WriteString("nested:\n  a: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]\n")
	for i := 1; i < 8; i++ {
		fmt.Fprintf(&lists, "x%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	tests := []struct {
		name, text string
		into       any
		want       string // the first mistake
	}{
		{"a mapping in itself", "&t {child: *t}", new(tree), "t.yaml:1:12: child" + strings.Repeat(".child", 63) + ": " + deep},
		{"a list in itself", "children: &t [{children: *t}, {children: *t}]", new(tree), "t.yaml:1:15: children" + strings.Repeat("[0].children", 31) + "[0]: " + deep},
		{"a list of itself, for numbers", "name: x\nnested: {a: &a [*a, *a]}", new(garden), `t.yaml:2:17: nested.a[0]: is a list (write a number)`},
		{"lists of lists of lists", "name: x\n" + lists.String() + "tags: *a7", new(garden), `t.yaml:4:1: x1: unknown field`},
		{"wide aliases", "name: x\nnested:\n  a: &a [" + strings.Repeat("1,", 999) + "1]\n" + wide(150), new(garden), "t.yaml:102:8: nested.k98: " + full},
		{"a long list", "name: x\ntags: [" + strings.Repeat("a,", 100_000) + "a]", new(garden), "t.yaml:2:7: tags: " + full},
		{"brackets", "name: x\ntags: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), new(garden), "t.yaml:2:8: tags[0]: is a list (write a text)"},
		{"brackets in a field that is not known", "name: x\nraw: " + strings.Repeat("[", 70) + strings.Repeat("]", 70), new(garden), "t.yaml:2:1: raw: unknown field"},
		{"too many brackets for YAML", "name: x\ntags: " + strings.Repeat("[", 20_000), new(garden), "t.yaml:2:1: is not valid YAML: exceeded max depth of 10000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mistakes(strict.Decode("t.yaml", []byte(tt.text), tt.into))
			if len(got) == 0 || !strings.HasPrefix(got[0], tt.want) {
				t.Errorf("got %d mistakes, want first %q, got %.1000q", len(got), tt.want, strings.Join(got, "\n"))
			}
			if len(got) > 101 {
				t.Errorf("%d mistakes are told", len(got))
			}
		})
	}
	t.Run("depth is told in unknown fields too", func(t *testing.T) {
		got := mistakes(strict.Decode("t.yaml", []byte("name: x\nraw: "+strings.Repeat("[", 70)+strings.Repeat("]", 70)), new(garden)))
		if len(got) != 2 || !strings.HasSuffix(got[1], deep) {
			t.Errorf("got %q", got)
		}
	})
}

// wide returns n keys that all name the same list.
func wide(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  k%02d: *a\n", i)
	}
	return b.String()
}
