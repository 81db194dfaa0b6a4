package browser

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

// Unfold opens all details elements, so that the whole page is inspected.
func (t *Tab) Unfold() {
	t.Helper()
	Eval[chromedp.Void](t, "document.querySelectorAll('details').forEach(d => { d.open = true; })")
}

// Sideways returns the elements that extend over the page's right edge and make the whole page
// scroll sideways. An element inside a scrolling box does not count.
func (t *Tab) Sideways() []string {
	t.Helper()
	return Eval[[]string](t, `(() => {
		const page = document.scrollingElement, width = page.clientWidth, boxed = e => {
			for (let p = e.parentElement; p && p !== page; p = p.parentElement)
				if (p !== document.body && getComputedStyle(p).overflowX !== "visible") return true;
			return false;
		};
		if (page.scrollWidth <= width) return [];
		const wide = [...document.body.querySelectorAll("*")].filter(e => !(e.ownerSVGElement) && e.getBoundingClientRect().right > width + 0.5 && !boxed(e));
		return wide.map(e => e.outerHTML.slice(0, 120)).concat(["the page is " + page.scrollWidth + " wide and shows " + width]).slice(-4);
	})()`)
}

// Cut returns the tables of which a part is out of sight to the right.
func (t *Tab) Cut() []string {
	t.Helper()
	return Eval[[]string](t, `[...document.querySelectorAll("table")].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > document.scrollingElement.clientWidth)
		.map(e => (e.closest("[aria-label]")?.getAttribute("aria-label") ?? e.outerHTML.slice(0, 80)) + " reaches to " + Math.round(e.getBoundingClientRect().right))`)
}

// Axe returns the violations that axe-core rates serious or critical.
func (t *Tab) Axe() []string {
	t.Helper()
	Eval[chromedp.Void](t, "if (!window.axe) { "+t.axe+" }")
	return Eval[[]string](t, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations
		.filter(v => v.impact === "serious" || v.impact === "critical")
		.map(v => v.impact + " " + v.id + ": " + v.help + "; " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join(" | ")))`)
}

// Keyboard walks through the page with the Tab key, from top to end. It returns the controls that
// cannot be reached and those that do not show the focus.
func (t *Tab) Keyboard() []string {
	t.Helper()
	controls := Eval[int](t, `(() => {
		window.reached = []; window.unseen = [];
		document.addEventListener("focusin", e => {
			const style = getComputedStyle(e.target), box = e.target.getBoundingClientRect();
			reached.push(e.target);
			if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) unseen.push("no outline: " + e.target.outerHTML.slice(0, 120));
			if (box.bottom < 0 || box.top > innerHeight || box.right < 0 || box.left > innerWidth) unseen.push("out of sight: " + e.target.outerHTML.slice(0, 120));
		});
		window.controls = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")]
			.filter(e => e.tabIndex >= 0 && e.checkVisibility());
		document.activeElement?.blur?.();
		return controls.length;
	})()`)
	// Scrolling boxes take the focus, too: there may be more stops than controls.
	for range 3 {
		for range controls + 1 {
			t.Press(KeyTab)
		}
		if Eval[bool](t, "controls.every(e => reached.includes(e))") {
			break
		}
	}
	return Eval[[]string](t, `controls.filter(e => !reached.includes(e)).map(e => "not reached: " + e.outerHTML.slice(0, 120)).concat(unseen).slice(0, 10)`)
}

// Everything inspects a page in all ways that readers use: on the smallest phone and on a desktop,
// in light and dark mode, by keyboard only, without scripts, folded and unfolded. It fails the test
// on every defect and returns the page's text.
func (b *Browser) Everything(url string) string {
	b.Helper()
	if b.with == nil {
		b.with, b.without = b.Tab(Look{}), b.Tab(Look{NoScript: true})
	}
	phone := Look{Width: 320, Height: 640}
	t := b.with
	t.Look(phone)
	t.Go(url)
	t.nothing(url+" at 320 pixels", t.Sideways())
	says := t.Text("body")
	t.Unfold()
	t.nothing(url+" at 320 pixels, unfolded", t.Sideways())
	t.nothing(url+" in light", t.Axe())
	t.nothing(url+" by keyboard", t.Keyboard())
	for _, width := range []int{375, 768} {
		t.Look(Look{Width: width, Height: 640})
		t.nothing(fmt.Sprintf("%s at %d pixels: cut off", url, width), t.Cut())
	}
	t.Look(Look{Dark: true})
	t.nothing(url+" in dark", t.Axe())
	t.nothing(url+" at 1200 pixels", t.Sideways())
	t.nothing(url, t.Complaints())
	phone.NoScript = true
	b.without.Look(phone)
	b.without.Go(url)
	if got := b.without.Text("body"); plain(got) != plain(says) {
		b.Errorf("%s says without scripts\n%s\nand with them\n%s", url, got, says)
	}
	b.without.nothing(url+" without scripts", b.without.Complaints())
	return says
}

// plain returns a text without white space and without the notice for readers without scripts.
func plain(text string) string {
	return strings.Join(strings.Fields(strings.Replace(text, "Load the page again to see how far it is.", "", 1)), " ")
}

// nothing fails the test for each finding.
func (t *Tab) nothing(what string, found []string) {
	t.Helper()
	for _, f := range found {
		t.Errorf("%s: %s", what, f)
	}
}
