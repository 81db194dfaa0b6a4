package pages_test

import (
	"compress/gzip"
	"html"
	"io"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
)

// TestPagesAtWork searches, chooses and points, by keyboard and by mouse, on a desktop and on a
// phone.
func TestPagesAtWork(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	tab := browser.Open(t).Tab(browser.Look{})

	// A slash moves the focus to the search field from anywhere.
	tab.Go(site + "/runs/" + jobs["first"])
	tab.Press("/")
	if browser.Eval[string](tab, "document.activeElement.name") != "q" {
		t.Fatal("a slash does not lead to the search")
	}
	// A remote-controlled browser also types the slash.
	browser.Eval[bool](tab, "document.activeElement.select() ?? true")
	tab.Press("everywhere")
	tab.Follow(browser.KeyEnter)
	if says := tab.Text("main"); !strings.Contains(says, "#7 FP8 everywhere") {
		t.Errorf("the search finds %q", says)
	}

	// The pickers offer runs and accept free text.
	tab.Go(site + "/compare")
	offered := browser.Eval[[]string](tab, `[...document.querySelector("input[name=a]").list.options].map(o => o.value)`)
	if all := strings.Join(offered, " "); !strings.HasPrefix(all, "main #7 ") || !strings.Contains(all, jobs["first"]) || !strings.Contains(all, "111111111111") {
		t.Errorf("the picker offers %q", offered)
	}
	browser.Eval[bool](tab, `document.querySelector("input[name=a]").focus() ?? true`)
	tab.Press("main")
	tab.Press(browser.KeyEscape) // closes the list
	tab.Press(browser.KeyTab)
	tab.Press("zzz")
	tab.Follow(browser.KeyEnter)
	if says := tab.Text("#wrong-b"); !strings.Contains(says, "“zzz”") || browser.Eval[string](tab, `document.querySelector("input[name=a]").value`) != "main" {
		t.Errorf("the form says %q", says)
	}
	browser.Eval[bool](tab, `document.querySelector("input[name=b]").select() ?? true`)
	tab.Press(jobs["first"])
	tab.Follow(browser.KeyEnter)
	if says := tab.Text("table.times"); !strings.Contains(says, "mission") || !strings.Contains(says, "faster") {
		t.Errorf("the comparison says %q", says)
	}

	// A point has a card, for the mouse and for the keyboard.
	tab.Go(site + "/kernels/org/kernels/kernels/sdpa")
	if first := tab.Text("figure figcaption"); !strings.HasPrefix(first, "mission") {
		t.Errorf("the first picture is of %q, not of the shape that must gain", first)
	}
	tab.Point("g[data-card] .dot")
	want := "46.1\u00a0µs · PASS\nvariant stage1\ncommit 111111111111\nby ann\n2026-03-01 12:00 UTC"
	if says := tab.Text(".card"); says != want {
		t.Errorf("the card says %q", says)
	}
	tab.Point("h1")
	if browser.Eval[int](tab, `document.querySelectorAll(".card").length`) != 0 {
		t.Error("the card stays")
	}
	browser.Eval[bool](tab, `document.querySelector("[data-card] a").focus() ?? true`)
	if says := tab.Text(".card"); says != want {
		t.Errorf("by keyboard the card says %q", says)
	}
	tab.Press(browser.KeyEscape)
	if browser.Eval[int](tab, `document.querySelectorAll(".card").length`) != 0 {
		t.Error("the card stays in spite of Escape")
	}

	// A phone shows every number of the table without sideways scrolling, and no page is endless.
	tab.Look(browser.Look{Width: 390, Height: 844})
	tab.Go(site + "/runs/" + jobs["first"])
	hidden := browser.Eval[[]string](tab, `[...document.querySelectorAll("table.times tbody td")].filter(e => e.innerText && (e.getBoundingClientRect().right > innerWidth || !e.checkVisibility())).map(e => e.innerText)`)
	cells := browser.Eval[string](tab, `[...document.querySelectorAll("table.shapes tbody tr")].find(r => r.querySelector("th a").innerText === "mission").innerText`)
	if len(hidden) > 0 || !strings.Contains(cells, "7.03\u00a0µs") || !strings.Contains(cells, "+21.2\u00a0%") || !strings.Contains(cells, "[+20.2\u00a0%,\u00a0+22.2\u00a0%]") {
		t.Errorf("out of sight: %q; in sight: %q", hidden, cells)
	}
	tab.Go(site + "/kernels/org/kernels/kernels/sdpa")
	if high := browser.Eval[int](tab, "document.scrollingElement.scrollHeight"); high >= 3000 {
		t.Errorf("the kernel's page is %d pixels high", high)
	}
	for _, c := range tab.Complaints() {
		if !strings.Contains(c, "404") { // the run that does not exist
			t.Error(c)
		}
	}
}

// TestCompressed checks that answers are compressed for clients that accept it, except for pages
// that contain a session's proof together with text by strangers.
func TestCompressed(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	w.actor = &pressed{}
	site := w.site(guard(hub(t).URL)).URL
	rita := w.login(site, "rita")
	style := linkPattern.FindStringSubmatch(styleLink(w, site))[1]
	for _, c := range []struct {
		path, accept string
		want         bool
	}{
		{"/", "gzip, br", true}, {"/api/v1", "br, gzip;q=0.5", true}, {html.UnescapeString(style), "gzip", true}, {"/runs/" + jobs["first"] + "/evidence.json", "gzip", true},
		{"/", "gzip;q=0", false}, {"/", "br", false}, {"/runs/" + jobs["first"], "gzip", false}, {"/changes/pr-1-7", "gzip", false},
	} {
		answer, packed := w.get(site+c.path, "Accept-Encoding", c.accept, "Cookie", rita)
		_, whole := w.get(site+c.path, "Accept-Encoding", "identity", "Cookie", rita)
		if got := answer.Header.Get("Content-Encoding") == "gzip"; got != c.want || answer.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s for %q: compressed %v, vary %q", c.path, c.accept, got, answer.Header.Get("Vary"))
			continue
		}
		if c.want {
			r, err := gzip.NewReader(strings.NewReader(packed))
			w.no(err)
			text, err := io.ReadAll(r)
			w.no(err)
			if len(packed) >= len(whole) || c.path != "/" && string(text) != whole {
				t.Errorf("%s: %d bytes of %d", c.path, len(packed), len(whole))
			}
		}
	}
}

func styleLink(w *world, site string) string {
	_, body := w.get(site + "/compare")
	_, rest, _ := strings.Cut(body, `<link rel="stylesheet" `)
	return rest
}

// TestPreview checks that a link to a run shows its result in a chat, with a picture.
func TestPreview(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	_, body := w.get(site + "/runs/" + jobs["first"])
	body = html.UnescapeString(body)
	for _, want := range []string{`<meta property="og:title" content="PASS · sdpa_fp8`, `<meta property="og:image" content="https://gate.example/runs/` + jobs["first"] + `/preview.png">`, `<link rel="icon" type="image/svg+xml" href="/assets/favicon.svg?`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if answer, _ := w.get(site + "/assets/favicon.svg"); answer.Header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("the icon is %q", answer.Header.Get("Content-Type"))
	}
}
