// Package quantity reads and writes the values that people write in policies and manifests: 128,
// 48KiB, 30s, 12.5us, 1%, ">= +10%". A value without its unit, or with a wrong one, is a mistake
// with a message, never a guess. The package compares nothing with measurements except in
// [Bound.Holds], and judges nothing.
package quantity

import (
	"time"

	"github.com/kernelgate/kernelgate/policies/strict"
)

type (
	// A Count is a whole number that is not negative: registers, rounds, seeds.
	Count int64
	// Bytes is a size: 48KiB, 1MiB, 512.
	Bytes int64
	// A Percent is a share or a change, kept as a fraction: 10% is 0.10.
	Percent float64
	// A Duration is a time that work may take: 30s, 5m.
	Duration time.Duration
	// Micros is a latency in microseconds: 5us, 1.2ms.
	Micros float64
	// A Number is a plain figure. A % sign after it is allowed and changes nothing, for profilers
	// that count in percent.
	Number float64
)

// read reads a value of type T from a node. All types use it.
func read[T ~int64 | ~float64](n *strict.Node, into *T) {
	u := unitOf(*into)
	text, ok := n.Text()
	if !ok || n.Null() {
		n.Errorf("is not %s (write e.g. %s)", u.noun, u.example)
		return
	}
	f, ok := u.read(text)
	if !ok {
		n.Errorf("%q is not %s (write %s)", text, u.miss(text), u.remedy(text))
		return
	}
	*into = T(f)
}

func write[T ~int64 | ~float64](v T) string { return unitOf(v).format(float64(v)) }

// schema returns the JSON Schema of what read accepts. For editors, a YAML value without a unit is
// a number.
func schema[T ~int64 | ~float64]() map[string]any {
	var zero T
	u := unitOf(zero)
	text := map[string]any{"type": "string", "pattern": u.pattern.String()}
	if u.bare == nil {
		text["title"] = u.title()
		return text
	}
	return map[string]any{"title": u.title(), "anyOf": []any{text, u.bare}}
}

func (v *Count) UnmarshalStrict(n *strict.Node)    { read(n, v) }
func (v *Bytes) UnmarshalStrict(n *strict.Node)    { read(n, v) }
func (v *Percent) UnmarshalStrict(n *strict.Node)  { read(n, v) }
func (v *Duration) UnmarshalStrict(n *strict.Node) { read(n, v) }
func (v *Micros) UnmarshalStrict(n *strict.Node)   { read(n, v) }
func (v *Number) UnmarshalStrict(n *strict.Node)   { read(n, v) }

func (v Count) String() string    { return write(v) }
func (v Bytes) String() string    { return write(v) }
func (v Percent) String() string  { return write(v) }
func (v Duration) String() string { return write(v) }
func (v Micros) String() string   { return write(v) }
func (v Number) String() string   { return write(v) }

func (v *Count) JSONSchema() map[string]any    { return schema[Count]() }
func (v *Bytes) JSONSchema() map[string]any    { return schema[Bytes]() }
func (v *Percent) JSONSchema() map[string]any  { return schema[Percent]() }
func (v *Duration) JSONSchema() map[string]any { return schema[Duration]() }
func (v *Micros) JSONSchema() map[string]any   { return schema[Micros]() }
func (v *Number) JSONSchema() map[string]any   { return schema[Number]() }
