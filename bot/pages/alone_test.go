package pages_test

import (
	"encoding/xml"
	"io"
	"net/http"
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
	if answer, _ := w.get(site + "/runs/" + jobs["running"] + "/intervals.svg"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("of a run without intervals: %s", answer.Status)
	}
}
