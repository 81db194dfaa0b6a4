// Package browser loads pages in a headless Chromium and inspects them as a reader would: layout,
// accessibility, keyboard, console errors. fetch-browser.sh downloads the browser. It is for tests
// only; the product does not import it. Except for Everything, which fails the test, it reports
// what it finds and leaves the judgement to the test.
package browser

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

//go:embed fetch-browser.sh
var script string

// patience is the timeout for a browser that hangs. No page takes that long on any machine.
const patience = 5 * time.Minute

// A Browser is a browser process that belongs to a test.
type Browser struct {
	testing.TB
	ctx context.Context
	axe string

	with, without *Tab // tabs with and without scripts, for Everything
}

// Open starts a browser that ends with the test. If no browser was fetched, the test is skipped, or
// fails in CI.
func Open(t testing.TB) *Browser {
	t.Helper()
	home, err := find(t.Context())
	if err != nil {
		const missing = "no browser: run make setup, or bot/pages/browser/fetch-browser.sh"
		if os.Getenv("CI") != "" {
			t.Fatalf("%s (%v)", missing, err)
		}
		t.Skip(missing)
	}
	axe, err := os.ReadFile(filepath.Join(home, "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(filepath.Join(home, "chromium")),
		chromedp.Env("LD_LIBRARY_PATH="+filepath.Join(home, "lib"), "FONTCONFIG_FILE="+filepath.Join(home, "fonts.conf")),
		chromedp.NoSandbox, // it loads only pages of this test, and root may start it
		chromedp.Flag("headless", "shell"), chromedp.DisableGPU,
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("hide-scrollbars", false),
		chromedp.WSURLReadTimeout(patience),
	)
	ctx, end := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(end)
	ctx, end = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(end)
	b := &Browser{TB: t, ctx: ctx, axe: string(axe)}
	b.no(chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	return b
}

// find returns the folder that the script fetched.
func find(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-s", "--", "--check")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func (b *Browser) no(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
