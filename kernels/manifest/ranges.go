package manifest

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Range is the values that a dim may have: "64", "1..4096", "2..4096 step 2",
// and any of these with | between them.
type Range struct {
	text  string
	spans []span
}

// A span is first, first+step, … last.
type span struct{ first, last, step int }

func (s span) count() int { return (s.last-s.first)/s.step + 1 }

func (s span) contains(v int) bool {
	return v >= s.first && v <= s.last && (v-s.first)%s.step == 0
}

func (s span) within(other span) bool {
	return other.contains(s.first) && other.contains(s.last) && (s.count() == 1 || s.step%other.step == 0)
}

// and returns the values that both spans have: every lcm of the steps, from the first common one.
func (s span) and(o span) (span, bool) {
	s, o = s.plain(), o.plain()
	divisor, inverse := euclid(s.step, o.step)
	if (o.first-s.first)%divisor != 0 {
		return span{}, false
	}
	// s.first + k·s.step is o.first modulo o.step for one k below o.step/divisor.
	// No product is above 2^62: no step is above maxDim.
	cycle := o.step / divisor
	k := (o.first - s.first) / divisor % cycle * inverse % cycle
	both := span{first: s.first + (k+cycle)%cycle*s.step, last: min(s.last, o.last), step: s.step * cycle}
	if both.first < o.first {
		both.first += (o.first - both.first + both.step - 1) / both.step * both.step
	}
	if both.first > both.last {
		return span{}, false
	}
	both.last = both.first + (both.count()-1)*both.step
	return both, true
}

// plain removes the step from a span of one value, where it has no meaning.
func (s span) plain() span {
	if s.count() == 1 {
		s.step = 1
	}
	return s
}

// euclid returns the greatest common divisor of two steps, and the factor of the first that gives
// it, modulo the second.
func euclid(a, b int) (divisor, times int) {
	times, next := 1, 0
	for b != 0 {
		q := a / b
		a, b = b, a%b
		times, next = next, times-q*next
	}
	return a, times
}

// ragged reports whether some value is not a multiple of m.
func (s span) ragged(m int) bool {
	return s.first%m != 0 || s.count() > 1 && s.step%m != 0
}

// In a Range each alternative is one number, or two with .. between them.
var spanText = regexp.MustCompile(`^([0-9]{1,10})(?:\.\.([0-9]{1,10})(?: +step +([0-9]{1,10}))?)?$`)

const (
	rangeExample = "write e.g. 1..4096, 64|128 or 2..4096 step 2"
	maxSpans     = 64
)

func (r *Range) UnmarshalStrict(n *strict.Node) {
	text, ok := n.Text()
	if !ok || n.Null() {
		n.Errorf("is not a range (%s)", rangeExample)
		return
	}
	parts := strings.Split(text, "|")
	if len(parts) > maxSpans {
		n.Errorf("has %d alternatives (write at most %d)", len(parts), maxSpans)
		return
	}
	var spans []span
	for _, part := range parts {
		m := spanText.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			n.Errorf("%q is not a range (%s)", text, rangeExample)
			return
		}
		s := span{step: 1}
		s.first, _ = strconv.Atoi(m[1])
		s.last = s.first
		if m[2] != "" {
			s.last, _ = strconv.Atoi(m[2])
		}
		if m[3] != "" {
			s.step, _ = strconv.Atoi(m[3])
		}
		if s.last < s.first || s.last > maxDim || s.step < 1 {
			n.Errorf("%q is not a range of sizes: they run upwards from 0 to %d (%s)", text, maxDim, rangeExample)
			return
		}
		s.last = s.first + (s.count()-1)*s.step
		spans = append(spans, s)
	}
	*r = Range{text: strings.TrimSpace(text), spans: spans}
}

func (r *Range) JSONSchema() map[string]any {
	return map[string]any{"title": "range", "anyOf": []any{
		map[string]any{"type": "string", "pattern": `^ *[0-9]+(\.\.[0-9]+( +step +[0-9]+)?)?( *\| *[0-9]+(\.\.[0-9]+( +step +[0-9]+)?)?)* *$`},
		map[string]any{"type": "integer", "minimum": 0, "maximum": maxDim},
	}}
}

// String is the range as it was written.
func (r Range) String() string { return r.text }

// Contains reports whether a dim may have the value.
func (r Range) Contains(v int) bool {
	return slices.ContainsFunc(r.spans, func(s span) bool { return s.contains(v) })
}

// least and most return the smallest and the largest value; 0 for a Range that was never read.
func (r Range) least() int {
	if r.empty() {
		return 0
	}
	return slices.MinFunc(r.spans, func(a, b span) int { return a.first - b.first }).first
}

func (r Range) most() int {
	most := 0
	for _, s := range r.spans {
		most = max(most, s.last)
	}
	return most
}

// within reports whether each alternative is inside one alternative of other.
func (r Range) within(other Range) bool {
	return !slices.ContainsFunc(r.spans, func(s span) bool {
		return !slices.ContainsFunc(other.spans, s.within)
	})
}

// empty reports whether the range has no value: it was refused, or two have none in common.
func (r Range) empty() bool { return len(r.spans) == 0 }

// and returns the values that both ranges have. The result has no text.
func (r Range) and(other Range) Range {
	var both Range
	for _, s := range r.spans {
		for _, o := range other.spans {
			if shared, ok := s.and(o); ok {
				both.spans = append(both.spans, shared)
			}
		}
	}
	return both
}

// few returns all values in order, or nil if there are more than most.
func (r Range) few(most int) []int {
	var values []int
	for _, s := range r.spans {
		if s.count() > most {
			return nil
		}
		for v := s.first; v <= s.last; v += s.step {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	if values = slices.Compact(values); len(values) > most {
		return nil
	}
	return values
}

// draw returns a random value of the range, weighting alternatives by their size.
func (r Range) draw(rng *rand.Rand) int { return drawFrom(r.spans, rng) }

// drawRagged returns a value that fills no tile: odd if the range has odd values, else not a
// multiple of 16 if possible, else any.
func (r Range) drawRagged(rng *rand.Rand) int {
	for _, m := range []int{2, 16} {
		spans := slices.DeleteFunc(slices.Clone(r.spans), func(s span) bool { return !s.ragged(m) })
		if len(spans) == 0 {
			continue
		}
		// No two neighbours in a ragged span are both multiples of m, so this many attempts fail
		// once in 10^19 draws; then the first value is used.
		for range 64 {
			if v := drawFrom(spans, rng); v%m != 0 {
				return v
			}
		}
		if v := spans[0].first; v%m != 0 {
			return v
		}
		return spans[0].first + spans[0].step
	}
	return r.draw(rng)
}

// drawWhole returns a value that fills tiles: a multiple of 64 if the range has one, else of 16,
// else any.
func (r Range) drawWhole(rng *rand.Rand) int {
	for _, m := range []int{64, 16} {
		if whole := r.and(Range{spans: []span{{first: m, last: maxDim / m * m, step: m}}}); !whole.empty() {
			return whole.draw(rng)
		}
	}
	return r.draw(rng)
}

func drawFrom(spans []span, rng *rand.Rand) int {
	total := 0
	for _, s := range spans {
		total += s.count()
	}
	k := rng.IntN(total)
	for _, s := range spans {
		if k < s.count() {
			return s.first + k*s.step
		}
		k -= s.count()
	}
	panic("kernels: a range changed while it was drawn from")
}
