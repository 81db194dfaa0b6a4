package pages

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates/number"
)

// badge draws the last verdict about a kernel on the default branch, in the size of a word.
// Verdicts on pull requests do not count, so a proposed change turns no README red. A folder of
// results has no branches; its badge shows the last result. The badge is embedded in other pages,
// so it contains its own colours.
func (s *Server) badge(w http.ResponseWriter, r *http.Request) {
	v := s.visit(r)
	folder, ok := strings.CutSuffix(r.PathValue("kernel"), ".svg")
	if !ok {
		s.fail(w, r, ErrNotFound)
		return
	}
	id, _, err := s.repoByName(r.Context(), v, r.PathValue("owner")+"/"+r.PathValue("repo"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	runs, err := s.Source.Latest(r.Context(), id, folder, 20)
	if err == nil && len(runs) == 0 {
		err = ErrNotFound
	}
	var main []ledger.RunRow
	if err == nil {
		main, err = s.Source.OnMain(r.Context(), id, folder, homeRuns)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	word, colour := "no verdict", "#57606a"
	for _, run := range append(main, runs...) {
		branches := run.Change.Kind != ""
		if run.Outcome == "" || run.Extra || branches && len(main) == 0 {
			continue
		}
		sign := outcomeOf(run.Outcome, run.Reason)
		word = sign.Word
		colour = map[string]string{"pass": "#1a7f37", "fail": "#b42318", "open": "#8a5a00", "error": "#57606a"}[sign.Class]
		if shape := mainShape([]ledger.RunRow{run}); shape != "" {
			word += " " + number.Time(run.P50[shape])
			if row := (KernelRow{}); len(main) > 0 {
				row.Spread, row.Runs = spread(timesOf(main, run.Device, shape))
				word = strings.TrimSpace(word + " " + row.Around())
			}
		}
		break
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	_, _ = w.Write([]byte(badgeSVG(runs[0].Kernel, word, colour))) // the client may have hung up
}

// timesOf returns a shape's times on a device, oldest first.
func timesOf(runs []ledger.RunRow, device, shape string) []float64 {
	var times []float64
	for _, r := range slices.Backward(runs) {
		if v, ok := r.P50[shape]; ok && r.Device == device {
			times = append(times, v)
		}
	}
	return times
}

func badgeSVG(name, word, colour string) string {
	if utf8.RuneCountInString(name) > 40 {
		name = string([]rune(name)[:39]) + "…"
	}
	left, right := 12+7*utf8.RuneCountInString(name), 12+7*utf8.RuneCountInString(word)
	text := func(s string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
		return b.String()
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-label="%s: %s"><title>%s: %s</title>`+
		`<rect width="%d" height="20" fill="#3d444d"/><rect x="%d" width="%d" height="20" fill="%s"/>`+
		`<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle"><text x="%d" y="14">%s</text><text x="%d" y="14">%s</text></g></svg>`+"\n",
		left+right, text(name), word, text(name), word, left, left, right, colour, left/2, text(name), left+right/2, word)
}

// atom is an Atom feed of the last verdicts.
type atom struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Author  string   `xml:"author>name"`
	Self    link     `xml:"link"`
	Entries []entry  `xml:"entry"`
}

type entry struct {
	ID      string `xml:"id"`
	Title   string `xml:"title"`
	Updated string `xml:"updated"`
	Link    link   `xml:"link"`
	Summary string `xml:"summary"`
}

type link struct {
	Rel  string `xml:"rel,attr,omitempty"`
	Href string `xml:"href,attr"`
}

func (s *Server) feed(w http.ResponseWriter, r *http.Request) {
	p, _, err := s.measured(r.Context(), s.visit(r))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	at := strings.TrimSuffix(s.URL, "/")
	f := atom{Self: link{"self", at + "/feed.atom"}, ID: "urn:kernelgate:verdicts", Title: "kernelgate: verdicts", Author: "kernelgate", Updated: time.Unix(0, 0).UTC().Format(time.RFC3339)}
	for i, run := range p.Recent {
		ended := run.At().UTC().Format(time.RFC3339)
		if i == 0 {
			f.Updated = ended
		}
		f.Entries = append(f.Entries, entry{
			ID: "urn:kernelgate:run:" + run.Job, Title: fmt.Sprintf("%s %s of %s: %s", run.Outcome, run.Kernel, run.Repo, run.Title), Updated: ended,
			Link: link{"", at + "/runs/" + run.Job}, Summary: run.Line,
		})
	}
	text, err := xml.MarshalIndent(f, "", " ")
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/atom+xml")
	_, _ = w.Write(append([]byte(xml.Header), text...)) // the client may have hung up
}
