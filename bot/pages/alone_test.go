package pages_test

import (
	"encoding/xml"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
)

// TestIntervalsAlone checks that the chart of a run's intervals can be used in a comment: a
// self-contained picture with colours for light and dark mode that loads and executes nothing.
func TestIntervalsAlone(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	answer, svg := w.get(site + "/runs/" + jobs["first"] + "/intervals.svg")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "image/svg+xml" || answer.Header.Get("Cross-Origin-Resource-Policy") != "cross-origin" {
		t.Fatalf("%s %v", answer.Status, answer.Header)
	}
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script") {
		t.Errorf("the policy is %q", policy)
	}
	for _, want := range []string{"mission", "prefers-color-scheme: dark", `class="goal"`, "+21.2\u00a0%"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture has no %q", want)
		}
	}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		w.no(err)
		if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "script" || e.Name.Local == "a" || e.Name.Local == "image") {
			t.Errorf("the picture holds <%s>", e.Name.Local)
		}
	}
	for _, name := range []string{"intervals.png", "intervals.png?look=dark", "preview.png"} {
		answer, data := w.get(site + "/runs/" + jobs["first"] + "/" + name)
		if _, err := png.DecodeConfig(strings.NewReader(data)); err != nil || answer.Header.Get("Content-Type") != "image/png" {
			t.Errorf("%s: %s, %v, %v", name, answer.Status, answer.Header, err)
		}
		if dir := os.Getenv("KERNELGATE_PICTURES"); dir != "" {
			w.no(os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "?look=", "-")+".png"), []byte(data), 0o644))
		}
	}
	for _, name := range []string{"intervals.svg", "intervals.png", "preview.png"} {
		if answer, _ := w.get(site + "/runs/" + jobs["running"] + "/" + name); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s of a run without a verdict: %s", name, answer.Status)
		}
	}
}
