package pages_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
)

// shown returns one page of each kind, with everything that it can contain.
func shown(jobs map[string]string) []string {
	return []string{
		"/", "/runs/" + jobs["first"], "/runs/" + jobs["broken"], "/runs/" + jobs["running"], "/runs/" + jobs["queued"], "/changes/pr-1-7",
		"/kernels/org/kernels/kernels/sdpa", "/compare", "/compare?a=" + jobs["stage1"] + "&b=" + jobs["stage2"], "/policy?change=pr-1-7",
		"/kernels/org/kernels", "/search?q=1",
	}
}

// TestPagesInBrowser inspects every page in a browser; see Everything.
func TestPagesInBrowser(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	b := browser.Open(t)
	for _, path := range shown(jobs) {
		if says := b.Everything(site + path); len(says) < 100 {
			t.Errorf("%s says only %q", path, says)
		}
	}
}

// TestLoginByKeyboard checks that a visitor can log in and reach the requested page without a
// mouse.
func TestLoginByKeyboard(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(guard(hub(t).URL)).URL
	b := browser.Open(t)
	b.Everything(site + "/login")
	tab := b.Tab(browser.Look{Width: 320, Height: 640})
	tab.Go(site + "/login?to=/runs/" + jobs["first"])
	focused := func() string {
		return browser.Eval[string](tab, "document.activeElement.name || document.activeElement.className")
	}
	tab.Press(browser.KeyTab)
	if focused() != "skip" {
		t.Fatalf("the first key leads to %q", focused())
	}
	tab.Press(browser.KeyEnter) // skips the header
	for range 3 {
		if tab.Press(browser.KeyTab); focused() == "token" {
			break
		}
	}
	if focused() != "token" {
		t.Fatalf("the keys lead to %q", focused())
	}
	tab.Press(pagesToken)
	tab.Follow(browser.KeyEnter)
	if says := tab.Text("h1"); !strings.Contains(says, "PASS") {
		t.Errorf("the page says %q", says)
	}
	for _, c := range tab.Complaints() {
		t.Error(c)
	}
}
