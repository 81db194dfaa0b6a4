package output

import (
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	for _, c := range []struct {
		text   string
		spaces bool
		want   string
	}{
		{".text", false, ".text"},
		{"", false, `""`},
		{"", true, ""},
		{"a b", false, `"a b"`},
		{"a b", true, "a b"},
		{"a\nb", true, `"a\nb"`},
		{`a"b`, true, `"a\"b"`},
		{"\xff", false, `"\xff"`},
		{"é", false, "é"},
		{strings.Repeat("a", 10), false, strings.Repeat("a", 10)},
		{strings.Repeat("a", 11), false, strings.Repeat("a", 10) + "…"},
		{strings.Repeat("a", 9) + "é", false, strings.Repeat("a", 9) + "…"}, // no half of a character
	} {
		if got := Quote(c.text, 10, c.spaces); got != c.want {
			t.Errorf("%q is quoted as %s, want %s", c.text, got, c.want)
		}
	}
}
