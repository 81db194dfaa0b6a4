package report

import (
	"html"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/gates"
)

func TestEscape(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "speedup +16.1 % of 1391.62 µs", "speedup +16.1 % of 1391.62 µs"},
		{"identifier", "USE_CP_ASYNC", "USE_CP_ASYNC"},
		{"emphasis", "*a* _b_ __c__", `\*a\* \_b\_ \_\_c\_\_`},
		{"cell", "a|b", "a&#124;b"},
		{"html", "<b>&amp;</b>", "&lt;b&gt;&amp;amp;&lt;/b&gt;"},
		{"comment", "<!-- x -->", "&lt;!-- x --&gt;"},
		{"link", "[x](y)", `\[x](y)`},
		{"mention", "@octocat", "@&#8203;octocat"},
		{"issue", "see #12", "see #&#8203;12"},
		{"issue by prefix", "see GH-12", "see GH-&#8203;12"},
		{"url", "https://example.com", "https:&#8203;//example.com"},
		{"bare url", "www.example.com", "www&#8203;.example.com"},
		{"emoji", "kernel.cu:100:5", "kernel.cu:&#8203;100:5"},
		{"time", "at 9:30", "at 9:30"},
		{"math", "$x$", "&#36;x&#36;"},
		{"list", "- a", `\- a`},
		{"numbered list", "1. a", `1\. a`},
		{"decimal", "1.5", "1.5"},
		{"rule", "---", `\---`},
		{"backslash", `a\`, `a\\`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := escape(c.in); got != c.want {
				t.Errorf("escape(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestCodeSpans(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"stage 2 is `fast`", "stage 2 is `fast`"},
		{"`a``b`", "`a`<code>b</code>"},
		{"run `a|b`", "run <code>a&#124;b</code>"},
		{"`<x>`", "<code>&lt;x&gt;</code>"},
		{"one ` alone", "one \\` alone"},
		{"`` two", "\\`\\` two"},
		{"`@octocat`", "`@octocat`"},
	} {
		if got := markdownLine(prose(c.in)); got != c.want {
			t.Errorf("prose(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestListingCannotEnd(t *testing.T) {
	for _, s := range []string{"a\n```\n# out", "~~~", "</pre><b>", "-->", "a\tb"} {
		var b strings.Builder
		writeMarkdown(&b, listing{s})
		checkInert(t, b.String())
	}
}

var (
	fences    = regexp.MustCompile("(?s)```text\n.*?\n```\n")
	pres      = regexp.MustCompile(`(?s)<pre>\n.*?\n</pre>`)
	ownTags   = regexp.MustCompile(`</?(details|summary|code|b)>`)
	htmlCodes = regexp.MustCompile(`<code>[^<]*</code>`)
	summaries = regexp.MustCompile(`<summary>.*</summary>`)
	spans     = regexp.MustCompile("`[^`\n]+`")
)

// checkInert fails where text could act: as a tag, a hidden comment, a mention,
// a reference or a link, or by breaking out of a table.
func checkInert(t *testing.T, md string) {
	t.Helper()
	if strings.Contains(md, "-->") || strings.Contains(md, "<!--") {
		t.Fatalf("a hidden comment can be opened or closed:\n%s", md)
	}
	bare := pres.ReplaceAllString(fences.ReplaceAllString(md, ""), "")
	bare = htmlCodes.ReplaceAllString(bare, "code")
	// A summary stands in a block of HTML, where Markdown does nothing.
	bare = summaries.ReplaceAllStringFunc(bare, func(s string) string {
		return strings.NewReplacer("`", "", "$", "", "[", "", ".", "", "|", "").Replace(s)
	})
	checkTables(t, bare)
	bare = strings.NewReplacer(`\\`, "⧵", "\\`", "ˋ").Replace(bare)
	bare = spans.ReplaceAllString(bare, "code")
	bare = ownTags.ReplaceAllString(bare, "")
	inactive := func(text string, patterns map[string]*regexp.Regexp) {
		for what, pattern := range patterns {
			if at := pattern.FindStringIndex(text); at != nil {
				t.Fatalf("a %s is active: …%q…", what, text[max(0, at[0]-40):min(len(text), at[1]+40)])
			}
		}
	}
	inactive(bare, markup)
	// GitHub looks for these in what the reader sees.
	inactive(html.UnescapeString(escaped.ReplaceAllString(bare, "$1")), seen)
}

var (
	markup = map[string]*regexp.Regexp{
		"tag":     regexp.MustCompile(`<`),
		"quote":   regexp.MustCompile(`>`),
		"link":    regexp.MustCompile(`(^|[^\\])\[`),
		"code":    regexp.MustCompile("`"),
		"formula": regexp.MustCompile(`\$`),
		"control": regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f\x{200b}\x{202e}]`),
	}
	escaped = regexp.MustCompile("\\\\([!-/:-@\\[-`{-~])")
	seen    = map[string]*regexp.Regexp{
		"mention":   regexp.MustCompile(`@[A-Za-z0-9]`),
		"reference": regexp.MustCompile(`#[0-9]|(?i)gh-[0-9]`),
		"address":   regexp.MustCompile(`://|(?i)www\.`),
		"emoji":     regexp.MustCompile(`:[A-Za-z0-9_+-]+:`),
	}
)

// checkTables wants as many cells in every row as in the head.
func checkTables(t *testing.T, md string) {
	t.Helper()
	columns := 0
	for s := range strings.SplitSeq(md, "\n") {
		if !strings.HasPrefix(s, "| ") {
			if strings.Contains(s, "|") {
				t.Fatalf("a bar outside a table: %q", s)
			}
			columns = 0
			continue
		}
		if n := strings.Count(s, "|"); columns == 0 {
			columns = n
		} else if n != columns {
			t.Fatalf("a row of %d bars in a table of %d: %q", n, columns, s)
		}
	}
}

// tainted is a full verdict whose every text is s.
func tainted(s string) *gates.Verdict {
	v := inconclusive()
	v.Profile = passing().Profile
	v.Builds[1].OK = false
	v.Builds[1].Diagnostics = []gates.Diagnostic{{Message: "m"}}
	v.Notes = []string{"n"}
	taint(reflect.ValueOf(v).Elem(), s)
	v.Outcome = gates.Defer
	return v
}

func taint(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				taint(f, s)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			taint(v.Elem(), s)
		}
	case reflect.Slice:
		for i := range v.Len() {
			taint(v.Index(i), s)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if v.Type().Elem().Kind() == reflect.String {
				v.SetMapIndex(key, reflect.ValueOf(s))
			}
		}
	case reflect.String:
		v.SetString(s)
	}
}

// skeleton is what a text's lines begin with, and how many cells they have.
func skeleton(md string) []string {
	var out []string
	md = fences.ReplaceAllString(pres.ReplaceAllString(md, "listing"), "listing\n")
	for s := range strings.SplitSeq(md, "\n") {
		kind := strings.Repeat("|", strings.Count(s, "|"))
		for _, prefix := range []string{"## ", "### ", "- ", "<details>", "</details>", "listing"} {
			if strings.HasPrefix(s, prefix) {
				kind = prefix
			}
		}
		if s == "" {
			kind = "empty"
		}
		out = append(out, kind)
	}
	return out
}

// No text in a verdict may act, or change the shape of the report.
func FuzzMarkdown(f *testing.F) {
	for _, s := range hostileTexts {
		f.Add(s)
	}
	plain := skeleton(Markdown(tainted("xx"), Options{}))
	f.Fuzz(func(t *testing.T, s string) {
		v := tainted(s)
		md := Markdown(v, Options{})
		checkInert(t, md)
		if !utf8.ValidString(md) {
			t.Fatalf("not UTF-8: %q", md)
		}
		for _, limit := range []int{10, 1000} {
			short := Markdown(v, Options{MaxBytes: limit})
			if len(short) > limit || !utf8.ValidString(short) {
				t.Fatalf("%d bytes for a limit of %d: %q", len(short), limit, short)
			}
		}

		// A text that begins and ends with letters is never nothing.
		worded := skeleton(Markdown(tainted("x"+s+"x"), Options{}))
		if !reflect.DeepEqual(worded, plain) {
			t.Fatalf("the shape changes with %q:\n%q\n%q", s, worded, plain)
		}
	})
}
