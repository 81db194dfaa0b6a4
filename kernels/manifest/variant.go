package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Variant is one way to build the kernel.
type Variant struct {
	Name        string           `yaml:"-"`
	Source      string           `yaml:"source" eg:"stage1.c" default:"(required, except for command)" doc:"File to compile."`
	Description string           `yaml:"description" eg:"double-buffered" doc:"One line for people."`
	Lesson      string           `yaml:"lesson" eg:"the copies were never the bottleneck" doc:"Why a variant did not help, for the history of the kernel."`
	Toggles     map[string]int   `yaml:"toggles" eg:"{USE_CP_ASYNC: 1}" default:"(each toggle's default)" doc:"Values that differ from the toggles' defaults."`
	Flags       []string         `yaml:"flags" eg:"[-O2]" doc:"Compiler flags, added after those of the kernel."`
	Arch        []Arch           `yaml:"arch" eg:"[sm_90a]" default:"(the kernel's)" doc:"cuda: architectures to compile for. Replaces those of the kernel."`
	Launch      *Launch          `yaml:"launch" eg:"{grid: [S], block: [256]}" default:"(the kernel's)" doc:"cuda: grid, block and dynamic shared memory, or steps. Replaces the whole launch of the kernel."`
	Limits      map[string]Range `yaml:"limits" eg:"{D: 64}" default:"(the kernel's)" doc:"Values of each dim that this variant supports, within the limits of the kernel. The variant does not run with other shapes."`
}

// Variants are read from a mapping: stage1: {source: stage1.cu}.
type Variants []Variant

func (v *Variants) UnmarshalStrict(n *strict.Node) {
	*v = nil
	eachNamed(n, "stage1: {source: stage1.cu}", func(p strict.Pair) {
		if !ident.IsName(p.Key) {
			p.Errorf("%q is not a name (write letters, digits, '.', '_' and '-')", p.Key)
		}
		if p.Key == Choice {
			p.Errorf("%q is what a choice by problem size is called (choose another name)", p.Key)
		}
		variant := Variant{Name: p.Key}
		p.Value.Decode(&variant)
		*v = append(*v, variant)
	})
}

func (v *Variants) JSONSchema() map[string]any { return mappingOf(Variant{}) }

// A Layer says when a search tries a toggle: the structure first, then the micro-parameters of the
// best structures.
type Layer string

const (
	structure Layer = "structure"
	micro     Layer = "micro"
)

var layers = []Layer{structure, micro}

func (l *Layer) UnmarshalStrict(n *strict.Node) { strict.Word(n, l, layers) }
func (l *Layer) JSONSchema() map[string]any     { return strict.WordSchema(layers) }

// A Toggle is a macro with the values that it may have.
type Toggle struct {
	Name        string `yaml:"-"`
	Values      []int  `yaml:"values" required:"true" eg:"[0, 1]" bounds:"1 to 64 entries" doc:"Values that the macro may have."`
	Default     int    `yaml:"default" required:"true" eg:"0" doc:"Value if a variant does not set it."`
	Layer       Layer  `yaml:"layer" required:"true" eg:"structure" doc:"When a search tries it: the structure first, then the micro-parameters."`
	Description string `yaml:"description" eg:"double-buffered K/V" doc:"One line for people."`
}

// Toggles are read from a mapping: USE_CP_ASYNC: {values: [0, 1], default: 0,
// layer: structure}.
type Toggles []Toggle

const maxToggleValues = 64

func (t *Toggles) UnmarshalStrict(n *strict.Node) {
	*t = nil
	eachNamed(n, "USE_CP_ASYNC: {values: [0, 1], default: 0, layer: structure}", func(p strict.Pair) {
		checkOperand(p, p.Key)
		toggle := Toggle{Name: p.Key}
		p.Value.Decode(&toggle)
		*t = append(*t, toggle)
	})
}

func (t *Toggles) JSONSchema() map[string]any { return mappingOf(Toggle{}) }

func (t *Toggle) ValidateStrict(n *strict.Node) {
	if !n.Clean() {
		return
	}
	at := n.Child("values")
	if len(t.Values) == 0 || len(t.Values) > maxToggleValues {
		at.Errorf("has %d values (write 1 to %d, e.g. [0, 1])", len(t.Values), maxToggleValues)
		return
	}
	for i, v := range t.Values {
		if v < math.MinInt32 || v > math.MaxInt32 {
			at.Errorf("%d does not fit an int (write a smaller number)", v)
		}
		if slices.Contains(t.Values[:i], v) {
			at.Errorf("%d is named twice (delete one)", v)
		}
	}
	if !slices.Contains(t.Values, t.Default) {
		n.Child("default").Errorf("%d is none of the values %v (write one of them)", t.Default, t.Values)
	}
}

// Variant finds a variant by its name. Toggles with different values may follow:
// "stage6_fp8,KEY_SPLITS=4,ROW_WARPS=1". The choice is also found by its name: it has no source,
// launch or limits.
func (m *Manifest) Variant(name string) (Variant, error) {
	declared, settings, varied := strings.Cut(name, ",")
	if declared == Choice && len(m.Choose) > 0 {
		if varied {
			return Variant{}, fmt.Errorf("variant %q: the choice has no toggles (write one of the variants that it chooses from: %s)", name, strings.Join(m.Parts(Choice, ""), ", "))
		}
		return Variant{Name: Choice, Description: m.choice()}, nil
	}
	i := slices.IndexFunc(m.Variants, func(v Variant) bool { return v.Name == declared })
	if i < 0 {
		return Variant{}, fmt.Errorf("%s has no variant %q (it has %s)", m.Name, declared, strings.Join(m.Named(), ", "))
	}
	v := m.Variants[i]
	if !varied {
		return v, nil
	}
	v.Toggles = maps.Clone(v.Toggles)
	if v.Toggles == nil {
		v.Toggles = map[string]int{}
	}
	var given []string
	for _, setting := range strings.Split(settings, ",") {
		toggle, value, err := m.setting(setting)
		if err == nil && slices.Contains(given, toggle) {
			err = fmt.Errorf("%s is set twice (delete one)", toggle)
		}
		if err != nil {
			return Variant{}, fmt.Errorf("variant %q: %w", name, err)
		}
		given = append(given, toggle)
		v.Toggles[toggle] = value
	}
	return v, nil
}

// setting reads NAME=VALUE.
func (m *Manifest) setting(text string) (toggle string, value int, err error) {
	toggle, number, _ := strings.Cut(text, "=")
	i := slices.IndexFunc(m.Toggles, func(t Toggle) bool { return t.Name == toggle })
	if i < 0 {
		return "", 0, fmt.Errorf("%s has no toggle %q (it has %s)", m.Name, toggle, cmp.Or(strings.Join(m.toggleNames(), ", "), "none"))
	}
	values := m.Toggles[i].Values
	if value, err = strconv.Atoi(number); err != nil || !slices.Contains(values, value) {
		return "", 0, fmt.Errorf("%s: %q is none of its values %v (write e.g. %s=%d)", toggle, number, values, toggle, values[0])
	}
	return toggle, value, nil
}

// VariantNames lists the variants in the manifest's order.
func (m *Manifest) VariantNames() []string {
	return mapped(m.Variants, func(v Variant) string { return v.Name })
}

// Named returns everything that can be named as a variant: the variants, and the choice.
func (m *Manifest) Named() []string {
	names := m.VariantNames()
	if len(m.Choose) > 0 {
		names = append(names, Choice)
	}
	return names
}

func (m *Manifest) toggleNames() []string {
	return mapped(m.Toggles, func(t Toggle) string { return t.Name })
}

// ToggleValues returns every toggle's value in a variant: the defaults, overridden by the
// variant's. The choice has those of its first variant: they are used only for the arguments, which
// are the same in all variants.
func (m *Manifest) ToggleValues(variant string) map[string]int {
	if variant == Choice && len(m.Choose) > 0 {
		variant = m.Choose[0].Variant
	}
	values := map[string]int{}
	for _, t := range m.Toggles {
		values[t.Name] = t.Default
	}
	v, _ := m.Variant(variant)
	maps.Copy(values, v.Toggles)
	return values
}

// Defines returns the toggles of a variant as compiler flags, sorted.
func (m *Manifest) Defines(variant string) []string { return definesOf(m.ToggleValues(variant)) }

// definesOf returns toggles as compiler flags, sorted.
func definesOf(toggles map[string]int) []string {
	flags := make([]string, 0, len(toggles))
	for name, value := range toggles {
		flags = append(flags, fmt.Sprintf("-D%s=%d", name, value))
	}
	slices.Sort(flags)
	return flags
}

// CompilerFlags returns the kernel's flags and then the variant's, without the toggles.
func (m *Manifest) CompilerFlags(variant string) []string {
	v, _ := m.Variant(variant)
	return slices.Concat(m.Flags, v.Flags)
}
