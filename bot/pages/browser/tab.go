package browser

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A Look describes the settings under which a page is viewed.
type Look struct {
	Width, Height int // default to 1200 × 800
	Dark          bool
	NoScript      bool
	Scale         float64 // for screenshots: device pixels per page pixel, without scroll bars
}

// A Tab shows one page at a time.
type Tab struct {
	*Browser
	ctx context.Context

	mu    sync.Mutex
	heard *sync.Cond
	said  []string
	marks int
}

// Tab opens a tab.
func (b *Browser) Tab(look Look) *Tab {
	b.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	b.Cleanup(end)
	t := &Tab{Browser: b, ctx: ctx}
	t.heard = sync.NewCond(&t.mu)
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				break
			}
			t.hear(m)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.marks = 1 << 30 // the console is closed: stop waiting for it
		t.heard.Broadcast()
	}()
	t.Look(look)
	return t
}

const mark = "heard until here "

// hear records errors and warnings of the console.
func (t *Tab) hear(m chromedp.ConsoleMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := strings.CutPrefix(m.Text, mark); ok {
		t.marks, _ = strconv.Atoi(n)
		t.heard.Broadcast()
		return
	}
	if m.IsException() || m.Type == "error" || m.Type == "warning" || m.Type == "assert" {
		t.said = append(t.said, strings.TrimSpace(fmt.Sprintf("%s %s %s", m.Source, m.Text, m.URL)))
	}
}

// Look changes the settings. NoScript applies to pages that are loaded afterwards.
func (t *Tab) Look(look Look) {
	t.Helper()
	scheme := "light"
	if look.Dark {
		scheme = "dark"
	}
	width, height, scale := cmp.Or(int64(look.Width), 1200), cmp.Or(int64(look.Height), 800), cmp.Or(look.Scale, 1)
	t.no(chromedp.Do(t.ctx, chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale))))
	_, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	t.no(err)
	_, err = chromedp.Call(t.ctx, emulation.SetScrollbarsHidden, emulation.SetScrollbarsHiddenParams{Hidden: look.Scale > 0})
	t.no(err)
	_, err = chromedp.Call(t.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: look.NoScript})
	t.no(err)
}

// Go loads a page.
func (t *Tab) Go(url string) {
	t.Helper()
	t.no(chromedp.Do(t.ctx, chromedp.Navigate(url)))
}

// Eval returns the value of a JavaScript expression on the page.
func Eval[T any](t *Tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(t.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	t.no(err)
	return value
}

// Until waits until an expression is true, also on the page that the current one loads meanwhile.
func (t *Tab) Until(expression string) {
	t.Helper()
	var err error
	for begun := time.Now(); time.Since(begun) < patience; {
		_, err = chromedp.Run(t.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingMutation(), chromedp.WithPollingTimeout(patience)))
		if err == nil || !leftPage(err) {
			break
		}
	}
	if err != nil {
		t.Fatalf("waiting for %s: %v; the page says\n%s", expression, err, t.Text("body"))
	}
}

// leftPage reports whether an expression could not be evaluated because the page was replaced by another.
func leftPage(err error) bool {
	return slices.ContainsFunc([]string{"navigated", "Cannot find context", "context was destroyed"}, func(says string) bool { return strings.Contains(err.Error(), says) })
}

// Text returns the visible text of an element.
func (t *Tab) Text(selector string) string {
	t.Helper()
	return Eval[string](t, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// Complaints returns the console's errors since the last call, including violations of the
// Content-Security-Policy.
func (t *Tab) Complaints() []string {
	t.Helper()
	t.mu.Lock()
	wait := t.marks + 1
	t.mu.Unlock()
	Eval[chromedp.Void](t, fmt.Sprintf("console.debug(%q)", mark+strconv.Itoa(wait)))
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.marks < wait {
		t.heard.Wait()
	}
	said := t.said
	t.said = nil
	return said
}

// Press types keys: letters, or keys that package kb names.
func (t *Tab) Press(keys string) {
	t.Helper()
	t.no(chromedp.Do(t.ctx, chromedp.KeyEvent(keys)))
}

// Point moves the pointer over an element.
func (t *Tab) Point(selector string) {
	t.Helper()
	at := Eval[[]float64](t, fmt.Sprintf("(() => { const e = document.querySelector(%q); e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()", selector))
	t.no(chromedp.Do(t.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1])))
}

// Drag presses the pointer at one share of an element's width, and releases it at another.
func (t *Tab) Drag(selector string, from, to float64) {
	t.Helper()
	box := Eval[[]float64](t, fmt.Sprintf("(() => { const e = document.querySelector(%q); e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); return [b.left, b.width, b.top + b.height / 2]; })()", selector))
	for _, step := range []struct {
		what input.DispatchMouseEventType
		at   float64
	}{{input.DispatchMouseEventTypeMousePressed, from}, {input.DispatchMouseEventTypeMouseMoved, (from + to) / 2}, {input.DispatchMouseEventTypeMouseMoved, to}, {input.DispatchMouseEventTypeMouseReleased, to}} {
		t.no(chromedp.Do(t.ctx, chromedp.MouseEvent(step.what, box[0]+step.at*box[1], box[2], chromedp.ButtonLeft)))
	}
}

// Follow types keys that load a different page, and waits for it.
func (t *Tab) Follow(keys string) {
	t.Helper()
	_, err := chromedp.RunResponse(t.ctx, chromedp.KeyEvent(keys))
	t.no(err)
}

// Keys that tests press.
const (
	KeyTab    = kb.Tab
	KeyEnter  = kb.Enter
	KeyEscape = kb.Escape
)

// Picture returns a PNG of the tab, or of one element.
func (t *Tab) Picture(selector string) []byte {
	t.Helper()
	take := chromedp.CaptureScreenshot()
	if selector != "" {
		take = chromedp.Screenshot(chromedp.CSS(selector))
	}
	png, err := chromedp.Run(t.ctx, take)
	t.no(err)
	return png
}
