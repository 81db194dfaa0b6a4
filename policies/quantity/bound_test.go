package quantity_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/policies/quantity"
)

type (
	counts   = quantity.Bound[quantity.Count]
	sizes    = quantity.Bound[quantity.Bytes]
	percents = quantity.Bound[quantity.Percent]
	micros   = quantity.Bound[quantity.Micros]
	numbers  = quantity.Bound[quantity.Number]
)

func TestGoodBounds(t *testing.T) {
	for _, tt := range []struct {
		text string
		got  value
		show string
	}{
		{">= 2", new(counts), ">= 2"},
		{"<=128", new(counts), "<= 128"},
		{"<= +8", new(counts), "<= 8"},
		{"<   3", new(counts), "< 3"},
		{"<= 48KiB", new(sizes), "<= 48KiB"},
		{"<= 0", new(sizes), "<= 0B"},
		{">= +10%", new(percents), ">= +10%"},
		{">= 10%", new(percents), ">= +10%"},
		{"> 5%", new(percents), "> +5%"},
		{">= -2%", new(percents), ">= -2%"},
		{">= 0%", new(percents), ">= 0%"},
		{"<= 1%", new(percents), "<= 1%"},
		{"<= 5us", new(micros), "<= 5us"},
		{"< 1.5ms", new(micros), "< 1500us"},
		{"<= 0.06", new(numbers), "<= 0.06"},
		{"< 50%", new(numbers), "< 50"},
		{"<= 1e-12", new(numbers), "<= 1e-12"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			if complaint := read(tt.got, tt.text); complaint != "" {
				t.Fatal(complaint)
			}
			if got := tt.got.String(); got != tt.show {
				t.Errorf("shows as %q, want %q", got, tt.show)
			}
		})
	}
}

func TestBadBounds(t *testing.T) {
	for _, tt := range []struct {
		v          value
		text, want string
	}{
		{new(counts), "128", `"128" has no comparison (write e.g. "<= 128" or ">= 128")`},
		{new(counts), "", `"" has no comparison (write e.g. "<= 128" or ">= 128")`},
		{new(counts), "=> 5", `"=> 5" has no comparison (write e.g. "<= 128" or ">= 128")`},
		{new(counts), "= 5", `"= 5" has no comparison (write e.g. "<= 128" or ">= 128")`},
		{new(counts), " <= 5", `" <= 5" has no comparison (write e.g. "<= 128" or ">= 128")`},
		{new(counts), "≤ 5", `"≤ 5" has no comparison (write e.g. "<= 128" or ">= 128")`},
		{new(counts), "<= 12x", `"<= 12x": "12x" is not a number (write e.g. "<= 128")`},
		{new(counts), "<=", `"<=": "" is not a number (write e.g. "<= 128")`},
		{new(counts), ">= -1", `">= -1": "-1" is not a whole number from 0 to 2^53 - 1 (write e.g. ">= 128")`},
		{new(counts), "> = 5", `"> = 5": "= 5" is not a number (write e.g. "> 128")`},
		{new(counts), "<= 5 ", `"<= 5 ": "5 " is not a number (write e.g. "<= 128")`},
		{new(sizes), "<= 48 KIB", `"<= 48 KIB": "48 KIB" is not a size (write e.g. "<= 48KiB")`},
		{new(sizes), "48KiB", `"48KiB" has no comparison (write e.g. "<= 48KiB" or ">= 48KiB")`},
		{new(percents), ">= 10", `">= 10": "10" is not a percentage (write ">= 10%")`},
		{new(percents), "+10%", `"+10%" has no comparison (write e.g. "<= 10%" or ">= 10%")`},
		{new(micros), "<= 5", `"<= 5": "5" is not a latency (write e.g. "<= 5us")`},
		{new(numbers), "<= tiny", `"<= tiny": "tiny" is not a number (write e.g. "<= 0.06")`},
		{new(numbers), "<= 1e400", `"<= 1e400": "1e400" is not a number (write e.g. "<= 0.06")`},
	} {
		t.Run(tt.text, func(t *testing.T) {
			want := "f.yaml:1:4: v: " + tt.want
			if got := read(tt.v, tt.text); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	for yaml, want := range map[string]string{
		"v: [1]": `f.yaml:1:4: v: is not a condition (write e.g. "<= 10%")`,
		"v: ~":   `f.yaml:1:4: v: is not a condition (write e.g. "<= 10%")`,
	} {
		if got := readYAML(new(percents), yaml); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestHolds(t *testing.T) {
	for _, tt := range []struct {
		op                  quantity.Op
		below, equal, above bool
		lower               bool
	}{
		{quantity.AtLeast, false, true, true, true},
		{quantity.AtMost, true, true, false, false},
		{quantity.Above, false, false, true, true},
		{quantity.Below, true, false, false, false},
		{"", false, false, false, false},
	} {
		t.Run(string(tt.op), func(t *testing.T) {
			b := percents{Op: tt.op, Value: 0.1}
			if got := [3]bool{b.Holds(0.05), b.Holds(0.1), b.Holds(0.2)}; got != [3]bool{tt.below, tt.equal, tt.above} {
				t.Errorf("%v below, at and above the limit", got)
			}
			if b.Lower() != tt.lower {
				t.Errorf("Lower is %v", b.Lower())
			}
		})
	}
}

// accepts reports whether an editor that knows the schema would accept the text.
func accepts(schema map[string]any, text string) bool {
	if options, ok := schema["anyOf"].([]any); ok {
		for _, option := range options {
			if accepts(option.(map[string]any), text) {
				return true
			}
		}
		return false
	}
	pattern, ok := schema["pattern"].(string)
	return ok && regexp.MustCompile(pattern).MatchString(text)
}

// FuzzQuantities checks that a value is shown as a text that reads as the same value, and that an
// editor accepts every text that is read.
func FuzzQuantities(f *testing.F) {
	for _, op := range []string{"", ">= ", "<", "<=", "> "} {
		for _, text := range []string{"128", "48KiB", "30.2KB", "+10%", "-2%", "30s", "1h30m", "1.2ms", "5µs", "0.06", "1e-10", "7 %", "0.1", "33.3%", "4503599627370497.5B", "12x"} {
			f.Add(op + text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("no text")
		}
		for _, fresh := range []func() value{
			func() value { return new(quantity.Count) }, func() value { return new(quantity.Bytes) },
			func() value { return new(quantity.Percent) }, func() value { return new(quantity.Duration) },
			func() value { return new(quantity.Micros) }, func() value { return new(quantity.Number) },
			func() value { return new(counts) }, func() value { return new(sizes) }, func() value { return new(percents) },
			func() value { return new(micros) }, func() value { return new(numbers) },
		} {
			v, again := fresh(), fresh()
			if complaint := read(v, text); complaint != "" {
				if strings.Contains(complaint, "%!") && !strings.Contains(text, "%!") {
					t.Fatalf("unreadable: %s", complaint)
				}
				continue
			}
			if !accepts(v.JSONSchema(), text) {
				t.Fatalf("%T reads %q, but its schema refuses it", v, text)
			}
			if complaint := read(again, v.String()); complaint != "" {
				t.Fatalf("%T: %q shows as %q: %s", v, text, v, complaint)
			}
			if !reflect.DeepEqual(v, again) {
				t.Fatalf("%T: %q shows as %q and reads back as %q", v, text, v, again)
			}
			if !accepts(v.JSONSchema(), v.String()) {
				t.Fatalf("%T shows as %q, which its schema refuses", v, v)
			}
		}
	})
}
