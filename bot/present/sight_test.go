package present

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

var (
	summary = regexp.MustCompile(`<summary>.*</summary>`)
	hidden  = regexp.MustCompile(`(?m)^<!-- .* -->\n?`)
)

// sight is what of a comment is seen before anything is unfolded.
func sight(t testing.TB, md string) string {
	t.Helper()
	var b strings.Builder
	depth := 0
	for line := range strings.Lines(hidden.ReplaceAllString(md, "")) {
		opened, closed := strings.Count(line, "<details>"), strings.Count(line, "</details>")
		if depth == 0 && opened > 0 {
			b.WriteString(summary.FindString(line) + "\n")
		} else if depth == 0 && closed == 0 {
			b.WriteString(line)
		}
		if depth += opened - closed; depth < 0 {
			t.Fatalf("a fold is closed that was not opened:\n%s", md)
		}
	}
	if depth != 0 {
		t.Fatalf("a fold is not closed:\n%s", md)
	}
	return b.String()
}

// checkSight wants a comment that is read in half a minute: short, without pictures made of
// letters, and with one fold for everything that is not in sight.
func checkSight(t testing.TB, md string) {
	t.Helper()
	seen, limit := sight(t, md), 3000
	if strings.Contains(seen, "### ✅ PASS") {
		limit = 2000
	}
	if strings.Contains(seen, "\n#### ") { // several kernels
		limit = 5500
	}
	if len(seen) >= limit {
		t.Errorf("%d bytes are in sight, and at most %d should be:\n%s", len(seen), limit, seen)
	}
	if strings.ContainsAny(md, "┆├●▓░") {
		t.Errorf("a bar is drawn with letters:\n%s", md)
	}
	if n := strings.Count(seen, "<summary>Details: "); n > 1 || n == 1 && strings.Index(seen, "<summary>Details: ") < strings.LastIndex(seen, "\n| ") {
		t.Errorf("the details are not one fold below all tables:\n%s", seen)
	}
}

// checkTable wants the comparison table of a measured kernel within the first lines.
func checkTable(t testing.TB, md string) {
	t.Helper()
	const lines = 25
	at := slices.IndexFunc(strings.Split(md, "\n"), func(l string) bool {
		return strings.HasPrefix(l, "| shape | ") || strings.HasPrefix(l, "| kernel | device | ")
	})
	if timed := regexp.MustCompile(`(?m)^#+ [^\n]*(PASS|DEFER) · [^\n]*µs`).MatchString(md); timed && (at < 0 || at >= lines) {
		t.Errorf("the table of times is not within the first %d lines:\n%s", lines, md)
	}
}

// commentText is a comment of ours in a golden story, up to the next heading of the story.
var commentText = regexp.MustCompile(`(?ms)^<!-- kernelgate:pr-\d+-\d+ -->\n.*?(?:^##? |\z)`)

// Every comment of every story that is told anywhere is short.
func TestCommentsAreShort(t *testing.T) {
	passed, deferred := 0, 0
	for _, pattern := range []string{"testdata/*.md", "../controller/testdata/story/*.md", "../actions/testdata/*.md"} {
		files, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(files))
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, md := range commentText.FindAllString(string(text), -1) {
				t.Run(filepath.Base(file), func(t *testing.T) { checkSight(t, strings.TrimRight(md, "# ")); checkTable(t, md) })
				passed += strings.Count(md, "### ✅ PASS")
				deferred += strings.Count(md, " DEFER")
			}
		}
	}
	if passed < 6 || deferred < 20 {
		t.Errorf("%d comments of a PASS and %d of a DEFER are too few to tell", passed, deferred)
	}
}

// So is one with more shapes, kernels, steps and notes than anybody reads.
func TestLongCommentsAreShort(t *testing.T) {
	many := func(of *gates.Verdict) *gates.Verdict {
		v := *of
		v.Comparisons = nil
		for i := range 40 {
			c := of.Comparisons[i%len(of.Comparisons)]
			c.Shape = fmt.Sprintf("a_shape_with_a_rather_long_name_%d", i)
			v.Comparisons = append(v.Comparisons, c)
		}
		v.ToPass = append(slices.Clone(v.ToPass), slices.Repeat([]string{strings.Repeat("do more ", 25)}, 30)...)
		v.Notes = slices.Repeat([]string{strings.Repeat("mind this ", 8)}, 30)
		return &v
	}
	pass, slow := many(judge(t, "stage1", nil)), many(judge(t, "stage3a", nil))
	pass.Notes = nil
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("kernel%d", i))
	}
	for name, s := range map[string]*story{
		"pass":    tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", pass),
		"defer":   tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", slow),
		"kernels": tell(t).seen(nil).planned(nil, names...),
		"errors": tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", judge(t, "stage1", func(e *gates.Evidence) {
			unbuilt(e)
			for range 100 {
				e.Candidate.Diagnostics = append(e.Candidate.Diagnostics, gates.Diagnostic{File: "k.cu", Line: 3, Severity: "error", Message: strings.Repeat("no such type ", 90)})
			}
		})),
	} {
		if name == "kernels" {
			for i, n := range names {
				s.finished(n, []*gates.Verdict{pass, slow}[i%2])
			}
		}
		t.Run(name, func(t *testing.T) { checkSight(t, Comment(s.view)) })
	}
}

var page = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe(), html.WithHardWraps()))

var (
	tag  = regexp.MustCompile(`</?([A-Za-z!][A-Za-z0-9!-]*)`)
	href = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	ours = strings.Fields("details summary b code pre p br h3 h4 ul li strong table thead tbody tr th td a")
)

// checkRendered renders Markdown as a page and wants no tag there but ours, each closed:
// nothing that somebody wrote breaks out of its fold or its code.
func checkRendered(t testing.TB, md string) {
	t.Helper()
	var b bytes.Buffer
	if err := page.Convert([]byte(hidden.ReplaceAllString(md, "")), &b); err != nil {
		t.Fatal(err)
	}
	for _, m := range href.FindAllStringSubmatch(b.String(), -1) {
		if !strings.HasPrefix(m[1], "https://github.com/example/attention/") && !strings.HasPrefix(m[1], "https://gate.example/") {
			t.Fatalf("a link to %s comes from somebody else:\n%s", m[1], b.String())
		}
	}
	var open []string
	for _, m := range tag.FindAllStringSubmatch(b.String(), -1) {
		name := m[1]
		switch {
		case !slices.Contains(ours, name):
			t.Fatalf("<%s> comes from somebody else:\n%s", name, b.String())
		case name == "br":
		case !strings.HasPrefix(m[0], "</"):
			open = append(open, name)
		case len(open) == 0 || open[len(open)-1] != name:
			t.Fatalf("%s closes what is not open (%v):\n%s", m[0], open, b.String())
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Fatalf("%v stay open:\n%s", open, b.String())
	}
}

// FuzzRendered puts a text wherever an author, a compiler or a commander can put one.
func FuzzRendered(f *testing.F) {
	for _, w := range hostile {
		f.Add(w)
	}
	for _, w := range []string{"</details>", "</summary></details><script>", "`</code>`", "</pre>\n<img src=x>", "```\n</details>", "a\n\n<details>", "┆`●`", "\\", "<", "&lt;/details>", "| --- |\n| x |"} {
		f.Add(w)
	}
	slow, bad := judge(f, "stage3a", nil), judge(f, "stage1", unbuilt)
	f.Fuzz(func(t *testing.T, text string) {
		taint := func(of *gates.Verdict) *gates.Verdict {
			v := *of
			v.Rule, v.Policy, v.Device.Name, v.Notes, v.ToPass, v.Summary = text, text, text, []string{text}, []string{text, text}, text
			v.Comparisons = slices.Clone(v.Comparisons)
			for i := range v.Comparisons {
				v.Comparisons[i].Shape, v.Comparisons[i].Goal = text, text
			}
			v.Gates = slices.Clone(v.Gates)
			for i := range v.Gates {
				v.Gates[i].Text, v.Gates[i].Details = text, []gates.Detail{{Text: text}}
			}
			v.Builds = slices.Clone(v.Builds)
			for i := range v.Builds {
				v.Builds[i].Diagnostics = []gates.Diagnostic{{File: text, Severity: "error", Message: text}, {Severity: "warning", Message: text}}
			}
			return &v
		}
		name := "k" + text
		bend := func(p *change.Plan) { p.PolicyFile, p.Base = text, text }
		one := tell(t).seen(func(f *change.Facts) { f.Base = text }).planned(bend, name).finished(name, taint(bad))
		one.commanded("c", text, "/override "+text, true, change.Effect{Override: &change.Override{For: given(sha1), By: text, Reason: text}})
		two := tell(t).seen(nil).planned(nil, name, "other").finished(name, taint(slow)).finished("other", taint(bad))
		for _, s := range []*story{one.shown(false), two.shown(false)} {
			checkRendered(t, Comment(s.view))
			for _, c := range s.view.checks() {
				checkRendered(t, c.Summary)
			}
		}
	})
}

// What measuring again has changed is said, and that it has changed nothing too.
func TestAgain(t *testing.T) {
	pass, slow := judge(t, "stage1", nil), judge(t, "stage3a", nil)
	other := *slow
	other.Comparisons = slices.Clone(slow.Comparisons)
	for i := range other.Comparisons {
		other.Comparisons[i].Speedup.Value += 0.001
	}
	for _, c := range []struct {
		name string
		then *gates.Verdict
		says string
	}{
		{"nothing", slow, "Measured again: **nothing changed**."},
		{"other figures", &other, "Measured again: **the verdict is the same**. Before, it was 0.0"},
		{"another verdict", pass, "Measured again: it was DEFER (too-slow) before."},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", slow)
			if text := Comment(s.view); strings.Contains(text, "Measured again") {
				t.Errorf("measured once:\n%s", text)
			}
			s.commanded("comment-8", "ada", "/rebench", true, change.Effect{Rebench: []change.Rerun{{Folder: "kernels/sdpa_fp8", Bundle: "b2"}}})
			s.finished("sdpa_fp8", c.then)
			for what, text := range map[string]string{"the comment": Comment(s.view), "the kernel's check": Checks(s.view)[1].Summary} {
				if strings.Count(text, "Measured again") != 1 || !strings.Contains(text, c.says) {
					t.Errorf("%s does not say %q once:\n%.900s", what, c.says, text)
				}
			}
		})
	}
}
