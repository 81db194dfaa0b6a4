package present

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages/browser"
)

// style is how GitHub sets a comment, as far as widths go: a table is a box that scrolls by itself.
const style = `body{margin:0;font:14px/1.5 sans-serif}.comment{box-sizing:border-box;max-width:920px;margin:16px auto;padding:16px;overflow-wrap:break-word}
table{display:block;margin:0 0 16px;width:max-content;max-width:100%;overflow:auto;border-collapse:collapse}td,th{border:1px solid #d1d9e0;padding:6px 13px}
pre{overflow:auto;background:#f6f8fa;padding:16px}code{font-family:monospace;background:#eff1f3;font-size:85%}h3{font-size:1.25em}h4{font-size:1em}`

// No comment makes its page scroll sideways, on a phone either, and the first rows of its table show the shape and both times
// there. With KERNELGATE_PICTURES a folder gets a picture of each.
func TestCommentsFitTheirPage(t *testing.T) {
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	pages := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := page.Convert([]byte(hidden.ReplaceAllString(string(text), "")), &b); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		pages["/"+name] = []byte(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>` + name + `</title><style>` + style + `</style><main class="comment">` + b.String() + `</main>`)
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write(pages[r.URL.Path])
	}))
	t.Cleanup(site.Close)
	tab := browser.Open(t).Tab(browser.Look{Width: 1280, Height: 800})
	for _, width := range []int{320, 768, 1280} {
		tab.Look(browser.Look{Width: width, Height: 800})
		for path := range pages {
			tab.Go(site.URL + path)
			if wide := browser.Eval[int](tab, "document.scrollingElement.scrollWidth"); wide > width {
				t.Errorf("%s is %d pixels wide on a page of %d", path, wide, width)
			}
			cut := browser.Eval[[]string](tab, `[...document.querySelectorAll("main > table")].filter(t => t.innerText.startsWith("shape")).flatMap(t => [...t.querySelectorAll("td:nth-child(-n+2)")])
				.filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.innerText)`)
			if len(cut) > 0 {
				t.Errorf("%s at %d pixels: out of sight are %q", path, width, cut)
			}
			if dir := os.Getenv("KERNELGATE_PICTURES"); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, path[1:]+"-"+strconv.Itoa(width)+".png"), tab.Picture("main"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
