package manifest

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// An Autotune says which configuration of @triton.autotune is gated: the one with these values or,
// of all of them, the one that the runner finds fastest at a shape.
type Autotune struct {
	All bool
	// Values are parameters and options of the configuration. If all are tried, they are
	// placeholders until one is picked: expressions of the launch may use their names.
	Values Constants

	picks []Pick
}

// A Pick is the configuration that was found fastest at a shape.
type Pick struct {
	Dims   Dims               `json:"dims"`
	Values map[string]Literal `json:"values"`
}

const (
	allConfigurations = "all"
	autotuneExample   = "autotune: {BLOCK_M: 64, num_warps: 4} for the configuration with these values, or autotune: all"
)

func (a *Autotune) UnmarshalStrict(n *strict.Node) {
	*a = Autotune{}
	text, scalar := n.Text()
	switch {
	case scalar && text == allConfigurations:
		a.All = true
	case n.Mapping() && len(n.Pairs()) == 1 && n.Has(allConfigurations):
		a.All = true
		n.Child(allConfigurations).Decode(&a.Values)
	case n.Mapping() && len(n.Pairs()) > 0:
		n.Decode(&a.Values)
	default:
		n.Errorf("chooses no configuration (write %s)", autotuneExample)
	}
}

func (a *Autotune) JSONSchema() map[string]any {
	values := (*Constants)(nil).JSONSchema()
	return map[string]any{"title": "`all`, or mapping of names to constants", "anyOf": []any{
		map[string]any{"const": allConfigurations}, values,
		map[string]any{"type": "object", "properties": map[string]any{allConfigurations: values}, "required": []string{allConfigurations}, "additionalProperties": false},
	}}
}

func (a *Autotune) String() string {
	switch {
	case !a.All:
		return written(a.Values)
	case len(a.Values) == 0:
		return allConfigurations
	}
	return "{all: " + written(a.Values) + "}"
}

// at returns the values of the configuration at a size. If all are tried, these are the pick of the
// nearest shape; there are none before a pick.
func (a *Autotune) at(dims Dims, env Env) (map[string]Literal, error) {
	if len(a.picks) > 0 {
		return Nearest(a.picks, dims).Values, nil
	}
	return a.Values.values(env)
}

// Nearest returns the pick of the shape that is nearest to a size; the first of several.
func Nearest(picks []Pick, dims Dims) Pick {
	return slices.MinFunc(picks, func(p, q Pick) int { return cmp.Compare(p.Dims.distance(dims), q.Dims.distance(dims)) })
}

// distance returns how far apart two sizes are, dim by dim on a logarithmic scale.
func (d Dims) distance(other Dims) float64 {
	sum := 0.0
	for _, dim := range d {
		value, _ := other.Get(dim.Name)
		sum += math.Abs(math.Log2(float64(1+dim.Value)) - math.Log2(float64(1+value)))
	}
	return sum
}

// Picked returns the manifest with the configurations that were found fastest.
func (m *Manifest) Picked(picks []Pick) *Manifest {
	if len(picks) == 0 || m.Autotune == nil {
		return m
	}
	tuned, autotune := *m, *m.Autotune
	autotune.picks = picks
	tuned.Autotune = &autotune
	return &tuned
}

// TriesAll reports whether the runner picks the configuration.
func (m *Manifest) TriesAll() bool { return m.Autotune != nil && m.Autotune.All }

// launchOptions are what a configuration says in addition to the kernel's parameters.
var launchOptions = []string{"num_warps", "num_stages", "num_ctas", "maxnreg"}

// tuned adds the numbers of the configuration to an environment: how large a grid is depends on them.
func (m *Manifest) tuned(env Env, dims Dims) {
	if m.Autotune == nil {
		return
	}
	values, err := m.Autotune.at(dims, env)
	if err != nil {
		return // reported where the configuration itself is used
	}
	for name, v := range values {
		if v.Kind == LiteralNumber && v.Number == math.Trunc(v.Number) && math.Abs(v.Number) <= maxWhole {
			env[name] = int(v.Number)
		}
	}
}

// tunedNames returns the names of the configuration's values that expressions of the implementation
// may use.
func (m *Manifest) tunedNames() []string {
	if m.Autotune == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.Autotune.Values)), func(name string) bool { return slices.Contains(launchOptions, name) })
}

// checkAutotune checks that the configuration's names differ from all others, and that each value
// is set once.
func (c *checker) checkAutotune() {
	m, at := c.m, c.n.Child("autotune")
	if m.Autotune == nil {
		return
	}
	for _, field := range []string{"num_warps", "num_stages", "num_ctas"} {
		if given(c.n, field) {
			c.errorf(c.n.Child(field), "is what the configuration of @triton.autotune says (delete it, or write it under autotune to choose the configuration)")
		}
	}
	if m.Autotune.All && at.Has(allConfigurations) {
		at = at.Child(allConfigurations)
	}
	for _, p := range at.Pairs() {
		_, constant := m.Constants[p.Key]
		_, passable := m.passable(p.Key)
		switch {
		case constant:
			c.errorf(p, "%q stands under constants too (delete it there: the configuration gives it its value)", p.Key)
		case passable || slices.Contains(m.dims(), p.Key) || slices.ContainsFunc(m.Toggles, func(t Toggle) bool { return t.Name == p.Key }):
			c.errorf(p, "%q is also the name of a dim, an argument, scratch or a toggle (choose another name there)", p.Key)
		}
	}
}
