package tune

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// Nearest is the largest allowed slowdown of the variant that serves a shape, compared with the shape's best
// variant.
const Nearest = 0.02

// defaultChooseRounds is the number of rounds in which each variant is timed.
const defaultChooseRounds = 8

// A ChoiceRule is one entry of a manifest's choose list.
type ChoiceRule struct {
	When    string // a condition on the dims; "" takes every problem
	Variant string
}

// A Served is a measured shape, and the variant that a choice gives it.
type Served struct {
	Shape   string
	Variant string
	Best    string
	Behind  float64 // how much slower than the best, as a share
}

// A Choice is a short choose list that serves every measured shape within Nearest of its best variant.
type Choice struct {
	Rules  []ChoiceRule
	Served []Served
	Text   []byte // the manifest with the choice; with one rule, the variant is its default
}

// Times has the times of variants by shape. The unit is free, but all variants of a shape share it. A variant
// without a time on a shape does not serve the shape.
type Times map[string]map[string]float64

// Times returns the times of the variants in a log, relative to the time of the incumbent.
func (l *Log) Times(m *manifest.Manifest, r *Result) Times {
	sums, counts := map[[2]string]float64{}, map[[2]string]int{}
	for _, round := range slices.Sorted(maps.Keys(l.rounds)) { // in order: the sums are the same to the last bit
		for id, timed := range l.rounds[round] {
			for shape, ratio := range timed.Speedups {
				sums[[2]string{id, shape}] -= math.Log(ratio)
				counts[[2]string{id, shape}]++
			}
		}
	}
	times := Times{}
	set := func(shape, variant string, time float64) {
		if times[shape] == nil {
			times[shape] = map[string]float64{}
		}
		times[shape][variant] = time
	}
	for _, shape := range l.Header.Shapes {
		if s, ok := m.Shape(shape); ok {
			if variant, err := m.Serving(l.Header.Space.Start, archOf(l.Header.Device), s.Dims); err == nil && slices.Contains(m.VariantNames(), variant) {
				set(shape, variant, 1)
			}
		}
	}
	for _, t := range r.Tried[1:] {
		for _, shape := range l.Header.Shapes {
			if at := [2]string{t.ID, shape}; t.Status == Racing && counts[at] > 0 {
				set(shape, t.Variant, math.Exp(sums[at]/float64(counts[at])))
			}
		}
	}
	return times
}

// best returns the fastest variant of a shape.
func (t Times) best(shape string) (variant string, time float64) {
	time = math.Inf(1)
	for name, x := range t[shape] {
		if x < time || x == time && name < variant {
			variant, time = name, x
		}
	}
	return variant, time
}

func (t Times) near(variant, shape string) bool {
	x, ok := t[shape][variant]
	_, best := t.best(shape)
	return ok && x <= best*(1+Nearest)
}

// Choose looks for a short list of rules. Among lists of the same length, it prefers the fastest. The last
// entry of a list has no condition, and Choose tries every variant there. For the shapes that this variant
// does not serve well, it adds conditions: always the one that is right for most of the remaining shapes. A
// device is an architecture such as sm_90; "" is a device that runs every variant.
func Choose(file string, text []byte, device string, times Times) (*Choice, error) {
	m, err := manifest.Parse(file, text)
	if err != nil {
		return nil, err
	}
	c := &chooser{m: m, device: device, times: times}
	for _, s := range m.Shapes {
		if len(times[s.Name]) > 0 {
			c.shapes = append(c.shapes, s)
		}
	}
	if len(c.shapes) == 0 {
		return nil, errors.New("no shape was measured")
	}
	all := c.allConditions()
	for _, v := range m.VariantNames() {
		limits := c.limits(v)
		for _, one := range all {
			c.options = append(c.options, option{limits.and(one), v})
		}
	}
	var lists []ruleList
	for _, rest := range m.VariantNames() {
		if list, ok := c.cover(rest); ok {
			lists = append(lists, list)
		}
	}
	slices.SortStableFunc(lists, func(a, b ruleList) int {
		return cmp.Or(cmp.Compare(len(a.rules), len(b.rules)), cmp.Compare(a.cost, b.cost))
	})
	problem := errors.New("no list of rules serves every shape that well: limits on the dims cannot separate the shapes of the variants")
	for i, list := range lists {
		choice, err := c.write(file, text, list.rules)
		if err == nil {
			return choice, nil
		}
		if i == 0 {
			problem = err
		}
	}
	return nil, problem
}

type chooser struct {
	m       *manifest.Manifest
	device  string
	times   Times
	shapes  []manifest.Shape // that were measured
	options []option
}

// An option is a rule that a list may have.
type option struct {
	condition
	variant string
}

// A ruleList serves every shape.
type ruleList struct {
	rules []ChoiceRule
	cost  float64 // sum of the log times of the shapes
}

// cover returns a list whose last rule gives a variant to all remaining problems. It reports false if there
// is no such list.
func (c *chooser) cover(rest string) (list ruleList, ok bool) {
	const byRest, open = "", "?"
	serving := make([]string, len(c.shapes)) // the variant of a rule, or one of these
	for i, s := range c.shapes {
		if !c.m.Supports(rest, s.Dims) || !c.times.near(rest, s.Name) {
			serving[i] = open
		}
	}
	for slices.Contains(serving, open) {
		var chosen option
		most, cost := 0, math.Inf(1)
		for _, o := range c.options {
			served, logs, fits := 0, 0.0, o.text != ""
			for i, s := range c.shapes {
				if !o.takes[i] || serving[i] != open && serving[i] != byRest {
					continue
				}
				if fits = fits && c.times.near(o.variant, s.Name) && c.m.Supports(o.variant, s.Dims); !fits {
					break
				}
				if serving[i] == open {
					served++
					logs += math.Log(c.times[s.Name][o.variant])
				}
			}
			better := served > most || served == most && (logs < cost-1e-9 || logs < cost+1e-9 && len(o.text) < len(chosen.text))
			if fits && served > 0 && better {
				chosen, most, cost = o, served, logs
			}
		}
		if most == 0 {
			return list, false
		}
		list.rules = append(list.rules, ChoiceRule{When: chosen.text, Variant: chosen.variant})
		for i, takes := range chosen.takes {
			if takes && (serving[i] == open || serving[i] == byRest) {
				serving[i] = chosen.variant
			}
		}
	}
	for i, s := range c.shapes {
		list.cost += math.Log(c.times[s.Name][cmp.Or(serving[i], rest)])
	}
	list.rules = append(list.rules, ChoiceRule{Variant: rest})
	if other := c.elsewhere(list.rules); other != "" {
		list.rules = append(list.rules, ChoiceRule{Variant: other})
	}
	return list, true
}

// elsewhere returns a variant for GPUs for which no rule without a condition has code. It returns "" if there
// are no such GPUs.
func (c *chooser) elsewhere(rules []ChoiceRule) string {
	rest := rules[len(rules)-1].Variant
	var devices []string
	for _, a := range c.m.Arch {
		devices = append(devices, a.Device())
	}
	for _, r := range rules {
		for _, a := range c.m.ArchOf(r.Variant) {
			devices = append(devices, a.Device())
		}
	}
	everywhere := func(variant string) bool {
		return !slices.ContainsFunc(devices, func(device string) bool {
			return !slices.ContainsFunc(c.m.ArchOf(variant), func(a manifest.Arch) bool { return a.Device() == device })
		})
	}
	if !runners.ModeOf(c.m).Architectures || everywhere(rest) {
		return ""
	}
	options := c.m.VariantNames()
	if n := len(c.m.Choose); n > 0 { // the manifest's own last resort
		options = append([]string{c.m.Choose[n-1].Variant}, options...)
	} else if c.m.DefaultVariant != "" {
		options = append([]string{c.m.DefaultVariant}, options...)
	}
	for _, v := range options {
		if everywhere(v) {
			return v
		}
	}
	return ""
}
