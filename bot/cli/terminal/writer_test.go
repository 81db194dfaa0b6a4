package terminal

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func printed(parts ...string) string {
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, p := range parts {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			panic("a write that fails")
		}
	}
	return b.String()
}

func TestWriter(t *testing.T) {
	for _, c := range []struct {
		name, want string
		parts      []string
	}{
		{"text", "a\tb é 漢 ⏸️\n", []string{"a\tb é 漢 ⏸️\n"}},
		{"a title", "B�]0;title� x", []string{"B\x1b]0;title\x07 x"}},
		{"own styles", "\x1b[1mbold\x1b[22m \x1b[32m✓\x1b[39m", []string{"\x1b[1mbold\x1b[22m \x1b[32m✓\x1b[39m"}},
		{"other styles", "�[8mhidden�[0m", []string{"\x1b[8mhidden\x1b[0m"}},
		{"a repainted line", "\r\x1b[2K… round 3", []string{"\r\x1b[2K… round 3"}},
		{"a line that text repaints", "DEFER��[2KPASS", []string{"DEFER\r\x1b[2KPASS"}},
		{"a carriage return", "DEFER�PASS ", []string{"DEFER\rPASS "}},
		{"C1, which some terminals take for ESC [", "�2J", []string{"\u009b2J"}},
		{"C1 in two parts", "x�2J", []string{"x\xc2", "\x9b2J"}},
		{"C1 as a byte", "�2J", []string{"\x9b2J"}},
		{"a sequence in two parts", "�[31m", []string{"\x1b", "[31m"}},
		{"a letter in two parts", "é", []string{"\xc3", "\xa9"}},
		{"direction", "a�b�c", []string{"a\u202eb\u2066c"}},
		{"backspace and delete", "a�b�", []string{"a\bb\x7f"}},
		{"a line separator", "a�b", []string{"a\u2028b"}},
	} {
		if got := printed(c.parts...); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Whatever is written, and in whatever parts, only own sequences and text come out.
func FuzzWriter(f *testing.F) {
	f.Add("a\x1b]0;t\x07", 3)
	f.Add("\xc2\x9b\x1b[1m\x1b[1", 1)
	f.Add("\r\x1b[2Kx\r\x1b[2K", 2)
	f.Add("\u202e漢\xff\xc3", 5)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		cut = max(0, min(cut, len(text)))
		got := printed(text[:cut], text[cut:])
		if !utf8.ValidString(got) {
			t.Fatalf("%q gives %q, which is no text", text, got)
		}
		rest := got
		for _, own := range sequences {
			rest = strings.ReplaceAll(rest, string(own), "")
		}
		if n := strings.Count(rest, repaint); n > 2 {
			t.Fatalf("%q repaints %d times in two writes", text, n)
		}
		rest = strings.ReplaceAll(rest, repaint, "")
		for _, r := range rest {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Fatalf("%q gives %q with %U", text, got, r)
			}
		}
		if plain := printed(got); plain != got && !strings.Contains(got, repaint) {
			t.Fatalf("%q is cleaned once more to %q", got, plain)
		}
	})
}
