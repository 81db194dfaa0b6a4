package manifest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// coverageWanted is the share of limits that secret should cover in every dim. Beyond the secret
// ranges the kernel only runs on sizes that its author chose.
const coverageWanted = 2.0 / 3

// listedValues bounds the values of a dim that are counted; longer ranges are compared by their
// span on a logarithmic scale, as sizes are.
const listedValues = 16

// A Warning describes something that a manifest may have, but probably by mistake.
type Warning struct {
	Field []string // where it stands
	Text  string
}

// Warnings finds dims whose limits allow much more than the secret ranges.
func (m *Manifest) Warnings() []Warning {
	if m.Mode == ModeCommand || len(m.Limits) == 0 {
		return nil // a harness has its own cases, and without limits nothing is promised
	}
	if len(m.Secret) == 0 {
		var ranges []string
		for _, name := range slices.Sorted(maps.Keys(m.Limits)) {
			ranges = append(ranges, name+": "+m.Limits[name].String())
		}
		return []Warning{{[]string{"limits"}, fmt.Sprintf("there is no secret, so the kernel is only ever run on its named shapes (write e.g. secret: {%s}, or less where that takes too long)", strings.Join(ranges, ", "))}}
	}
	var all []Warning
	for _, name := range slices.Sorted(maps.Keys(m.Limits)) {
		limit := m.Limits[name]
		secret, drawn := m.Secret[name]
		if !drawn {
			value, _ := m.Shapes[0].Dims.Get(name)
			secret = Range{text: fmt.Sprint(value), spans: []span{{value, value, 1}}}
		}
		share := coverage(secret, limit)
		if share >= coverageWanted-1e-9 {
			continue
		}
		field, what := []string{"secret", name}, "covers"
		if !drawn {
			field, what = []string{"secret"}, fmt.Sprintf("has no %s, which is always %s: that covers", name, secret)
		}
		all = append(all, Warning{field, fmt.Sprintf("%s %.0f%% of limits.%s %s, and %.0f%% is required: beyond it nothing checks whether the kernel is right or fast (%s)", what, math.Floor(100*share), name, limit, 100*coverageWanted, widen(name, limit))})
	}
	return all
}

// widen says how to cover enough.
func widen(name string, limit Range) string {
	if limit.few(listedValues) != nil {
		return fmt.Sprintf("write secret: {%s: %s}, or narrow the limits", name, limit)
	}
	least := max(limit.least(), 1)
	// Rounded up to two digits, as a person would write it.
	most := float64(least) * math.Pow(float64(limit.most())/float64(least), coverageWanted)
	unit := math.Pow(10, max(0, math.Floor(math.Log10(most))-1))
	return fmt.Sprintf("write secret: {%s: %d..%.0f} or more, or narrow the limits", name, limit.least(), min(math.Ceil(most/unit-1e-9)*unit, float64(limit.most())))
}

// coverage returns the share of a dim's limits that its secret range covers.
func coverage(secret, limit Range) float64 {
	if values := limit.few(listedValues); values != nil {
		covered := 0
		for _, v := range values {
			if secret.Contains(v) {
				covered++
			}
		}
		return float64(covered) / float64(len(values))
	}
	scale := func(r Range) float64 { return math.Log(float64(max(r.most(), 1)) / float64(max(r.least(), 1))) }
	whole := scale(limit)
	if whole == 0 {
		return 1
	}
	return scale(secret) / whole
}
