package tune

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Diff is the change of a manifest that makes a candidate its default variant, as a unified diff. If
// the change cannot be made without touching anything else, it is described in words. Files that the
// candidate brings follow.
func Diff(file string, text []byte, c Candidate, sources map[string]string, pathOf func(string) string) string {
	var out strings.Builder
	edited, err := Edit(file, text, c)
	if err == nil && c.Configuration != "" {
		edited, err = editAutotune(file, edited, c.Configuration)
	}
	c = c.untuned()
	if err != nil {
		fmt.Fprintf(&out, "Make %s the default in %s by hand: default_variant: %s", Name(c.Variant, c.Toggles), file, c.Variant)
		if len(c.Toggles) > 0 {
			fmt.Fprintf(&out, ", and toggles: %s in that variant", flow(c.Toggles))
		}
		if c.Configuration != "" {
			fmt.Fprintf(&out, ", and autotune: %s", c.Configuration)
		}
		fmt.Fprintf(&out, " (%v)\n", err)
	} else if !bytes.Equal(edited, text) {
		out.Write(unified(file, text, edited))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		text := unified(pathOf(name), []byte(sources[name]), []byte(c.Files[name]))
		if _, known := sources[name]; !known {
			text = bytes.Replace(text, []byte("--- a/"+pathOf(name)), []byte("--- /dev/null"), 1)
		}
		out.Write(text)
	}
	return out.String()
}

// unified is a diff that git apply takes.
func unified(file string, before, after []byte) []byte {
	text := diff.Diff("a/"+file, before, "b/"+file, after)
	// The library puts its own command line first.
	if _, rest, found := bytes.Cut(text, []byte("\n")); found && bytes.HasPrefix(text, []byte("diff ")) {
		return rest
	}
	return text
}

// Edit returns the manifest with the candidate as its default variant. All other lines stay as they
// are.
func Edit(file string, text []byte, c Candidate) ([]byte, error) {
	m, err := manifest.Parse(file, text)
	if err != nil {
		return nil, err
	}
	c = c.untuned()
	want := m.ToggleValues(Name(c.Variant, c.Toggles))
	e := &editor{lines: strings.SplitAfter(string(text), "\n")}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil || len(root.Content) == 0 {
		return nil, fmt.Errorf("reading %s as YAML: %w", file, err)
	}
	e.root = root.Content[0]
	variants := child(e.root, "variants")
	switch {
	case maps.Equal(want, m.ToggleValues(c.Variant)):
	case variants == nil:
		err = e.defaults(m, want)
	default:
		err = e.toggles(m, child(variants, c.Variant), want)
	}
	if err == nil && m.DefaultVariant != c.Variant {
		err = e.defaultVariant(c.Variant)
	}
	if err != nil {
		return nil, err
	}
	out := []byte(e.text())
	after, err := manifest.Parse(file, out)
	if err != nil {
		return nil, fmt.Errorf("the edited manifest has a mistake: %w", err)
	}
	if after.DefaultVariant != c.Variant || !maps.Equal(after.ToggleValues(c.Variant), want) {
		return nil, fmt.Errorf("%s is written in a form that cannot be edited", file)
	}
	return out, nil
}

// An editor changes lines of a manifest. Edits are made from the bottom up, so that the places of the
// others stay.
type editor struct {
	lines []string
	root  *yaml.Node
	edits []edit
}

type edit struct {
	line, from, to int // the characters of the line from 0 that are replaced; to < 0 inserts a line before
	text           string
}

func (e *editor) text() string {
	slices.SortFunc(e.edits, func(a, b edit) int {
		if a.line != b.line {
			return b.line - a.line
		}
		return b.from - a.from
	})
	for _, d := range e.edits {
		if d.to < 0 {
			e.lines = slices.Insert(e.lines, d.line, d.text)
			continue
		}
		e.lines[d.line] = e.lines[d.line][:d.from] + d.text + e.lines[d.line][d.to:]
	}
	return strings.Join(e.lines, "")
}

// child is the value of a key of a mapping; nil if it is not there.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// scalar replaces a plain value.
func (e *editor) scalar(n *yaml.Node, value string) error {
	line := e.lines[n.Line-1]
	if n.Kind != yaml.ScalarNode || n.Style != 0 || !strings.HasPrefix(line[n.Column-1:], n.Value) {
		return fmt.Errorf("line %d is written in a form that cannot be edited", n.Line)
	}
	e.edits = append(e.edits, edit{line: n.Line - 1, from: n.Column - 1, to: n.Column - 1 + len(n.Value), text: value})
	return nil
}

// defaults changes the toggles' own defaults, of a kernel without variants.
func (e *editor) defaults(m *manifest.Manifest, want map[string]int) error {
	for _, t := range m.Toggles {
		if want[t.Name] == t.Default {
			continue
		}
		n := child(child(child(e.root, "toggles"), t.Name), "default")
		if n == nil {
			return fmt.Errorf("toggles.%s has no default", t.Name)
		}
		if err := e.scalar(n, fmt.Sprint(want[t.Name])); err != nil {
			return err
		}
	}
	return nil
}

// toggles sets the toggles of a variant: those that it sets already, and those that differ from the
// defaults.
func (e *editor) toggles(m *manifest.Manifest, variant *yaml.Node, want map[string]int) error {
	if variant == nil || variant.Kind != yaml.MappingNode || len(variant.Content) == 0 {
		return fmt.Errorf("the variant is written in a form that cannot be edited")
	}
	set := Settings{}
	own := child(variant, "toggles")
	for _, t := range m.Toggles {
		if child(own, t.Name) != nil || want[t.Name] != t.Default {
			set[t.Name] = want[t.Name]
		}
	}
	switch {
	case own != nil && own.Style&yaml.FlowStyle != 0:
		from, to, err := e.flowRange(own)
		if err != nil {
			return err
		}
		e.edits = append(e.edits, edit{line: own.Line - 1, from: from, to: to, text: flow(set)})
	case own != nil:
		return e.block(own, set)
	case variant.Style&yaml.FlowStyle != 0:
		_, to, err := e.flowRange(variant)
		if err != nil {
			return err
		}
		e.edits = append(e.edits, edit{line: variant.Line - 1, from: to - 1, to: to - 1, text: ", toggles: " + flow(set)})
	default:
		first := variant.Content[0]
		e.edits = append(e.edits, edit{line: first.Line - 1, to: -1, text: strings.Repeat(" ", first.Column-1) + "toggles: " + flow(set) + "\n"})
	}
	return nil
}

// block changes toggles that stand one below the other.
func (e *editor) block(own *yaml.Node, set Settings) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if n := child(own, name); n != nil {
			if err := e.scalar(n, fmt.Sprint(set[name])); err != nil {
				return err
			}
			continue
		}
		first := own.Content[0]
		e.edits = append(e.edits, edit{line: first.Line - 1, to: -1, text: fmt.Sprintf("%s%s: %d\n", strings.Repeat(" ", first.Column-1), name, set[name])})
	}
	return nil
}

// flowRange is where a mapping in braces stands, on one line.
func (e *editor) flowRange(n *yaml.Node) (from, to int, err error) {
	line := e.lines[n.Line-1]
	from = n.Column - 1
	depth, quote := 0, byte(0)
	for i := from; i < len(line); i++ {
		switch ch := line[i]; {
		case quote != 0:
			if ch == quote {
				quote = 0
			}
		case ch == '"' || ch == '\'':
			quote = ch
		case ch == '{':
			depth++
		case ch == '}':
			if depth--; depth == 0 {
				return from, i + 1, nil
			}
		}
	}
	return 0, 0, fmt.Errorf("the braces of line %d do not end on it", n.Line)
}

// defaultVariant names the default.
func (e *editor) defaultVariant(name string) error {
	if n := child(e.root, "default_variant"); n != nil {
		return e.scalar(n, name)
	}
	last := len(e.lines) - 1
	if e.lines[last] != "" { // the file does not end with a new line
		e.edits = append(e.edits, edit{line: last, from: len(e.lines[last]), to: len(e.lines[last]), text: "\n"})
		last++
	}
	e.edits = append(e.edits, edit{line: last, to: -1, text: "default_variant: " + name + "\n"})
	return nil
}

// flow is toggles as a mapping in braces.
func flow(set Settings) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, set[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// replaceKey puts lines in the place of a key at the top of a manifest, or at its end if there is no
// such key.
func replaceKey(file string, text []byte, key string, with []string) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil || len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("reading %s as YAML: %w", file, err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	} else {
		lines[last] += "\n"
	}
	from, to := len(lines), len(lines)
	top := root.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if top[i].Value == key {
			from, to = top[i].Line-1, lastLine(top[i+1])
		}
	}
	return []byte(strings.Join(slices.Concat(lines[:from], with, lines[to:]), "")), nil
}

// lastLine returns the last line of a value. The value must not have a text of several lines.
func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, child := range n.Content {
		last = max(last, lastLine(child))
	}
	return last
}
