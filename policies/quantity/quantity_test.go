package quantity_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A value is any quantity or bound.
type value interface {
	strict.Unmarshaler
	strict.Schemer
	fmt.Stringer
}

// read returns the result of a text under the key v, and what its author reads. A quoted text keeps
// its spaces.
func read(v value, text string) string {
	return readYAML(v, fmt.Sprintf("v: %q", text))
}

func readYAML(v value, yaml string) string {
	if err := strict.Decode("f.yaml", []byte(yaml), &field{v}); err != nil {
		return err.Error()
	}
	return ""
}

// A field is the file around one value.
type field struct{ v value }

func (f *field) UnmarshalStrict(n *strict.Node) { n.Child("v").Decode(f.v) }

func TestGoodQuantities(t *testing.T) {
	tests := []struct {
		text string
		got  value
		want float64
		show string
	}{
		{"0", new(quantity.Count), 0, "0"},
		{"128", new(quantity.Count), 128, "128"},
		{"+8", new(quantity.Count), 8, "8"},
		{"007", new(quantity.Count), 7, "7"},
		{"9007199254740991", new(quantity.Count), 1<<53 - 1, "9007199254740991"},

		{"512", new(quantity.Bytes), 512, "512B"},
		{"0B", new(quantity.Bytes), 0, "0B"},
		{"48KiB", new(quantity.Bytes), 48 << 10, "48KiB"},
		{"48 KiB", new(quantity.Bytes), 48 << 10, "48KiB"},
		{"0.5KiB", new(quantity.Bytes), 512, "512B"},
		{"1.5MiB", new(quantity.Bytes), 3 << 19, "1.5MiB"},
		{"2GiB", new(quantity.Bytes), 2 << 30, "2GiB"},
		{"48KB", new(quantity.Bytes), 48_000, "48000B"},
		{"30.2KB", new(quantity.Bytes), 30_200, "30200B"},
		{"1MB", new(quantity.Bytes), 1e6, "1000000B"},
		{"1GB", new(quantity.Bytes), 1e9, "1000000000B"},
		{"1.0B", new(quantity.Bytes), 1, "1B"},

		{"10%", new(quantity.Percent), 0.1, "10%"},
		{"+7%", new(quantity.Percent), 0.07, "7%"},
		{"-2%", new(quantity.Percent), -0.02, "-2%"},
		{"99.9 %", new(quantity.Percent), 0.999, "99.9%"},
		{".5%", new(quantity.Percent), 0.005, "0.5%"},
		{"0%", new(quantity.Percent), 0, "0%"},
		{"-0%", new(quantity.Percent), 0, "0%"},
		{"1200%", new(quantity.Percent), 12, "1200%"},
		{"0.000000000001%", new(quantity.Percent), 1e-14, "0.000000000001%"},
		{"33.333333333333336%", new(quantity.Percent), 0.33333333333333337, "33.333333333333337%"},

		{"30s", new(quantity.Duration), 30e9, "30s"},
		{"5m", new(quantity.Duration), 300e9, "5m"},
		{"10m0s", new(quantity.Duration), 600e9, "10m"},
		{"90m", new(quantity.Duration), 5400e9, "1h30m"},
		{"2h", new(quantity.Duration), 7200e9, "2h"},
		{"1h0m5s", new(quantity.Duration), 3605e9, "1h0m5s"},
		{"1.5h", new(quantity.Duration), 5400e9, "1h30m"},
		{"250ms", new(quantity.Duration), 250e6, "250ms"},
		{".12ms", new(quantity.Duration), 120e3, "0.12ms"},

		{"5us", new(quantity.Micros), 5, "5us"},
		{"12.5us", new(quantity.Micros), 12.5, "12.5us"},
		{"5µs", new(quantity.Micros), 5, "5us"},
		{"5 μs", new(quantity.Micros), 5, "5us"},
		{"1.2ms", new(quantity.Micros), 1200, "1200us"},
		{"700ns", new(quantity.Micros), 0.7, "0.7us"},
		{"2s", new(quantity.Micros), 2e6, "2000000us"},
		{"0us", new(quantity.Micros), 0, "0us"},

		{"0.06", new(quantity.Number), 0.06, "0.06"},
		{"-3", new(quantity.Number), -3, "-3"},
		{"1e-10", new(quantity.Number), 1e-10, "1e-10"},
		{"2.5E+20", new(quantity.Number), 2.5e20, "2.5e+20"},
		{"50%", new(quantity.Number), 50, "50"},
		{"50 %", new(quantity.Number), 50, "50"},
		{"0", new(quantity.Number), 0, "0"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%T %s", tt.got, tt.text)[len("*quantity."):], func(t *testing.T) {
			if complaint := read(tt.got, tt.text); complaint != "" {
				t.Fatal(complaint)
			}
			if got := figure(tt.got); got != tt.want {
				t.Errorf("%q is %v, want %v", tt.text, got, tt.want)
			}
			if got := tt.got.String(); got != tt.show {
				t.Errorf("%q shows as %q, want %q", tt.text, got, tt.show)
			}
		})
	}
}

func figure(v value) float64 {
	switch v := v.(type) {
	case *quantity.Count:
		return float64(*v)
	case *quantity.Bytes:
		return float64(*v)
	case *quantity.Percent:
		return float64(*v)
	case *quantity.Duration:
		return float64(*v)
	case *quantity.Micros:
		return float64(*v)
	case *quantity.Number:
		return float64(*v)
	}
	return math.NaN()
}

func TestBadQuantities(t *testing.T) {
	for _, tt := range []struct {
		v     value
		texts map[string]string // and the message for each
	}{
		{new(quantity.Count), map[string]string{
			"12x": "a number", "": "a number", "x": "a number", "1 2": "a number", "0x10": "a number", "1_000": "a number", "1e3": "a number",
			"inf": "a number", " 5": "a number", "5%": "a number", "<= 5": "a number", "٣": "a number",
			"-5": "a whole number from 0 to 2^53 - 1", "1.5": "a whole number from 0 to 2^53 - 1", "1.0": "a whole number from 0 to 2^53 - 1",
			"9007199254740992": "a whole number from 0 to 2^53 - 1", "9007199254740993": "a whole number from 0 to 2^53 - 1", "-0": "a whole number from 0 to 2^53 - 1",
		}},
		{new(quantity.Bytes), map[string]string{
			"48K": "a size", "48kB": "a size", "48kib": "a size", "-1B": "a size", "1.5B": "a size", "0.3KiB": "a size", "KiB": "a size",
			"1e3": "a size", "99999999GiB": "a size", "9007199254740993": "a size", "1.2.3KiB": "a size", "1KiBB": "a size",
		}},
		{new(quantity.Percent), map[string]string{
			"10": "a percentage", "0.1": "a percentage", "%": "a percentage", "10 percent": "a percentage", "1e2%": "a percentage",
			"++1%": "a percentage", "1%%": "a percentage", "NaN%": "a percentage", ".%": "a percentage",
		}},
		{new(quantity.Duration), map[string]string{
			"30": "a time", "0s": "a time", "-5s": "a time", "5 s": "a time", "5min": "a time", "1d": "a time", "5us": "a time",
			"9999999h": "a time", "2600h": "a time", "m": "a time",
		}},
		{new(quantity.Micros), map[string]string{
			"5": "a latency", "-5us": "a latency", "5u": "a latency", "5sec": "a latency", "us": "a latency", "5m": "a latency", "1e3us": "a latency",
		}},
		{new(quantity.Number), map[string]string{
			"": "a number", "x": "a number", "1e": "a number", "1e999": "a number", "inf": "a number", "nan": "a number", "0x1p4": "a number",
			"1,5": "a number", "% 5": "a number", "5%%": "a number", "--1": "a number",
		}},
	} {
		example := map[string]string{
			"*quantity.Count": "128", "*quantity.Bytes": "48KiB", "*quantity.Percent": "10%",
			"*quantity.Duration": "30s", "*quantity.Micros": "5us", "*quantity.Number": "0.06",
		}[fmt.Sprintf("%T", tt.v)]
		for text, noun := range tt.texts {
			t.Run(fmt.Sprintf("%T %s", tt.v, text)[len("*quantity."):], func(t *testing.T) {
				want := fmt.Sprintf("f.yaml:1:4: v: %q is not %s (write e.g. %s)", text, noun, example)
				// Only the sign is missing.
				if remedy := map[string]string{"10": "10%", "0.1": "10% or 0.1%"}[text]; remedy != "" && noun == "a percentage" {
					want = fmt.Sprintf("f.yaml:1:4: v: %q is not %s (write %s)", text, noun, remedy)
				}
				if got := read(tt.v, text); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if figure(tt.v) != 0 {
					t.Errorf("a refused value was set to %v", tt.v)
				}
			})
		}
		for _, yaml := range []string{"v: [1]", "v: {a: 1}", "v:", "v: ~"} {
			t.Run(fmt.Sprintf("%T %s", tt.v, yaml)[len("*quantity."):], func(t *testing.T) {
				noun := map[string]string{"128": "a number", "0.06": "a number", "48KiB": "a size", "10%": "a percentage", "30s": "a time", "5us": "a latency"}[example]
				want := fmt.Sprintf("v: is not %s (write e.g. %s)", noun, example)
				if got := readYAML(tt.v, yaml); len(got) < len(want) || got[len(got)-len(want):] != want {
					t.Errorf("got  %s\nwant …%s", got, want)
				}
			})
		}
	}
}

func TestStringsOfComputedValues(t *testing.T) {
	for _, tt := range []struct {
		v    fmt.Stringer
		want string
	}{
		{quantity.Bytes(-8), "-8B"},
		{quantity.Bytes(-2048), "-2KiB"},
		{quantity.Bytes(1<<10 + 1), "1025B"},
		{quantity.Bytes(1280 << 10), "1280KiB"},
		{quantity.Count(-3), "-3"},
		{quantity.Duration(90 * time.Second), "1m30s"},
		{quantity.Duration(0), "0s"},
		{quantity.Percent(math.Inf(1)), "+Inf%"},
		{quantity.Percent(math.NaN()), "NaN%"},
		{quantity.Percent(0.161), "16.1%"},
		{quantity.Number(1e15), "1e+15"},
	} {
		if got := tt.v.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
