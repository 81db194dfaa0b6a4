package tune

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// write puts the rules into the manifest and parses the result as every command does. Then it checks which
// variant serves each shape.
func (c *chooser) write(file string, text []byte, rules []ChoiceRule) (*Choice, error) {
	var edited []byte
	var err error
	if len(rules) == 1 {
		edited, err = setDefault(file, text, rules[0].Variant)
	} else {
		edited, err = EditChoose(file, text, rules)
	}
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(file, edited)
	if err != nil {
		return nil, fmt.Errorf("the manifest with the choice is not valid: %w", err)
	}
	choice := &Choice{Rules: rules, Text: edited}
	for _, s := range c.shapes {
		variant, err := m.Serving(m.DefaultVariant, c.device, s.Dims)
		if err != nil {
			return nil, err
		}
		best, time := c.times.best(s.Name)
		if !c.times.near(variant, s.Name) {
			return nil, fmt.Errorf("the choice gives %s to %s, which is not within %v of %s", s.Name, variant, Nearest, best)
		}
		choice.Served = append(choice.Served, Served{Shape: s.Name, Variant: variant, Best: best, Behind: 1 - time/c.times[s.Name][variant]})
	}
	return choice, nil
}

// setDefault makes one variant the default, and removes the choose list.
func setDefault(file string, text []byte, variant string) ([]byte, error) {
	m, err := manifest.Parse(file, text)
	if err != nil {
		return nil, err
	}
	if len(m.Choose) == 0 {
		return Edit(file, text, Candidate{Variant: variant})
	}
	return replaceKey(file, text, "choose", []string{"default_variant: " + variant + "\n"})
}

// EditChoose returns the manifest with these rules as its choose list, in place of the old list or of
// default_variant. All other lines stay as they are.
func EditChoose(file string, text []byte, rules []ChoiceRule) ([]byte, error) {
	lines := []string{"choose:\n"}
	for _, r := range rules {
		if r.When == "" {
			lines = append(lines, fmt.Sprintf("  - {variant: %s}\n", r.Variant))
			continue
		}
		lines = append(lines, fmt.Sprintf("  - {when: %q, variant: %s}\n", r.When, r.Variant))
	}
	m, err := manifest.Parse(file, text)
	if err != nil {
		return nil, err
	}
	if len(m.Choose) > 0 {
		return replaceKey(file, text, "choose", lines)
	}
	return replaceKey(file, text, "default_variant", lines)
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

// Diff returns the change of the manifest as a unified diff. It returns "" if the manifest already has this
// choice.
func (c *Choice) Diff(file string, text []byte) string {
	if bytes.Equal(text, c.Text) {
		return ""
	}
	return string(unified(file, text, c.Text))
}
