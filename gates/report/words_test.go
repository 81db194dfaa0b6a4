package report

import "testing"

func TestWords(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"text", Escape(" a|b\n@octocat --> "), "a&#124;b @&#8203;octocat --&gt;"},
		{"prose", EscapeProse("run `a|b` | now"), "run <code>a&#124;b</code> &#124; now"},
		{"code", EscapeCode(" /rebench\nvs=self "), "`/rebench vs=self`"},
		{"awkward code", EscapeCode("`-->"), "<code>\\`--&gt;</code>"},
		{"summary", EscapeSummary("<b>#1 gh-2 @x\n"), "&lt;b&gt;#&#8203;1 gh-&#8203;2 @&#8203;x"},
		{"plain", Plain("\ta\u202eb\x00\n"), "ab"},
		{"clip", Clip("one two three", 9), "one two…"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}
