// Package quantity reads the values that people write in policies and
// manifests: 128, 48KiB, 30s, 12.5us, 1%, ">= +10%". A value without its unit,
// or with another one, is a mistake with a message, never a guess.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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
	// A Number is a plain figure; a % sign behind it is allowed and changes
	// nothing, for profilers that count in percent.
	Number float64
)

// unit is how one type of quantity is read and written.
type unit struct {
	noun, example string
	parse         func(string) (float64, bool)
	format        func(float64) string
	pattern       string // for editors
}

var byteUnits = []struct {
	suffix string
	factor float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

var microUnits = []struct {
	suffix string
	factor float64
}{{"ns", 1e-3}, {"us", 1}, {"µs", 1}, {"μs", 1}, {"ms", 1e3}, {"s", 1e6}}

func unitOf(v any) unit {
	switch v.(type) {
	case Count:
		return unit{"a number", "128", parseWhole, func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }, `\+?[0-9]+`}
	case Bytes:
		return unit{"a size", "48KiB", parseBytes, formatBytes, `\+?[0-9.]+ ?([KMG]i?B|B)?`}
	case Percent:
		return unit{"a percentage", "10%", parsePercent, func(f float64) string { return FormatNumber(f*100) + "%" }, `[+-]?[0-9.]+ ?%`}
	case Duration:
		return unit{"a time", "30s", parseDuration, func(f float64) string { return time.Duration(f).String() }, `[0-9.]+(ms|s|m|h)([0-9.]+(ms|s|m|h))*`}
	case Micros:
		return unit{"a latency", "5us", parseMicros, func(f float64) string { return FormatNumber(f) + "us" }, `[0-9.]+ ?(ns|us|µs|ms|s)`}
	case Number:
		return unit{"a number", "0.06", parseNumber, FormatNumber, `[+-]?[0-9.]+([eE][+-]?[0-9]+)?%?`}
	}
	panic(fmt.Sprintf("quantity: no unit for %T", v))
}

// FormatNumber writes a figure with the digits it needs and no more.
func FormatNumber(f float64) string {
	return strconv.FormatFloat(math.Round(f*1e9)/1e9, 'f', -1, 64)
}

func plain(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	// ParseFloat also reads hexadecimal, underscores, inf and nan.
	ok := err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) && !strings.ContainsAny(s, "xX_")
	return f, ok
}

func parseWhole(s string) (float64, bool) {
	f, ok := plain(s)
	return f, ok && f >= 0 && f <= 1<<53 && f == math.Trunc(f) && !strings.ContainsAny(s, ".eE")
}

func parseNumber(s string) (float64, bool) {
	return plain(strings.TrimSpace(strings.TrimSuffix(s, "%")))
}

func parsePercent(s string) (float64, bool) {
	digits, ok := strings.CutSuffix(s, "%")
	f, isNumber := plain(strings.TrimSpace(digits))
	return f / 100, ok && isNumber
}

func parseBytes(s string) (float64, bool) {
	for _, u := range byteUnits {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			f, isNumber := plain(strings.TrimSpace(digits))
			f *= u.factor
			return f, isNumber && f >= 0 && f <= 1<<53 && f == math.Trunc(f)
		}
	}
	return 0, false
}

func formatBytes(f float64) string {
	for _, u := range []struct {
		suffix string
		factor float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if f >= u.factor && math.Mod(f*10, u.factor) == 0 {
			return FormatNumber(f/u.factor) + u.suffix
		}
	}
	return FormatNumber(f) + "B"
}

func parseDuration(s string) (float64, bool) {
	d, err := time.ParseDuration(s)
	return float64(d), err == nil && d > 0
}

func parseMicros(s string) (float64, bool) {
	for _, u := range microUnits {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			f, isNumber := plain(strings.TrimSpace(digits))
			return f * u.factor, isNumber && f >= 0
		}
	}
	return 0, false
}

// read is the one way from a node to a value of type T.
func read[T ~int64 | ~float64](n *strict.Node, into *T) {
	u := unitOf(*into)
	text, ok := n.Text()
	if !ok || n.Null() {
		n.Errorf("is not %s (write e.g. %s)", u.noun, u.example)
		return
	}
	f, ok := u.parse(strings.TrimSpace(text))
	if !ok {
		n.Errorf("%q is not %s (write e.g. %s)", text, u.noun, u.example)
		return
	}
	*into = T(f)
}

func schema[T ~int64 | ~float64]() map[string]any {
	var zero T
	u := unitOf(zero)
	return map[string]any{
		"anyOf": []any{
			map[string]any{"type": "string", "pattern": "^" + u.pattern + "$"},
			map[string]any{"type": "number"},
		},
	}
}

func (v *Count) UnmarshalStrict(n *strict.Node)    { read(n, v) }
func (v *Bytes) UnmarshalStrict(n *strict.Node)    { read(n, v) }
func (v *Percent) UnmarshalStrict(n *strict.Node)  { read(n, v) }
func (v *Duration) UnmarshalStrict(n *strict.Node) { read(n, v) }
func (v *Micros) UnmarshalStrict(n *strict.Node)   { read(n, v) }
func (v *Number) UnmarshalStrict(n *strict.Node)   { read(n, v) }

func (v Count) String() string    { return unitOf(v).format(float64(v)) }
func (v Bytes) String() string    { return unitOf(v).format(float64(v)) }
func (v Percent) String() string  { return unitOf(v).format(float64(v)) }
func (v Duration) String() string { return unitOf(v).format(float64(v)) }
func (v Micros) String() string   { return unitOf(v).format(float64(v)) }
func (v Number) String() string   { return unitOf(v).format(float64(v)) }

func (v *Count) JSONSchema() map[string]any    { return schema[Count]() }
func (v *Bytes) JSONSchema() map[string]any    { return schema[Bytes]() }
func (v *Percent) JSONSchema() map[string]any  { return schema[Percent]() }
func (v *Duration) JSONSchema() map[string]any { return schema[Duration]() }
func (v *Micros) JSONSchema() map[string]any   { return schema[Micros]() }
func (v *Number) JSONSchema() map[string]any   { return schema[Number]() }
