package pages

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/gates/number"
)

// A preview is what a chat or another site shows for a link.
type preview struct {
	Title       string
	Description string
	Image       string // its absolute URL
}

// previewOf returns the preview of pages that people link to. Other pages have only a title.
func (s *Server) previewOf(model any) *preview {
	switch p := model.(type) {
	case *RunPage:
		v := &preview{Title: p.Kernel + ": " + string(p.Phase), Description: p.Repo + ": " + strings.TrimSpace(p.Title+" "+p.Line)}
		if p.Outcome != "" {
			v.Title = p.headline()
		}
		if p.Verdict != nil && s.URL != "" {
			v.Image = strings.TrimSuffix(s.URL, "/") + "/runs/" + p.Job + "/preview.png"
		}
		return v
	case *KernelPage:
		v := &preview{Title: p.Kernel + " · " + p.Repo, Description: "How fast the kernel is, commit by commit."}
		if len(p.Shapes) > 0 {
			h := p.Shapes[0]
			v.Description = h.Shape + " on " + deviceName(h.Device) + ": " + number.Time(h.Points[len(h.Points)-1].P50)
		}
		return v
	case *ChangePage:
		return &preview{Title: p.Title, Description: p.Repo + ": what was measured for this change"}
	case *HomePage:
		return &preview{Title: "kernelgate", Description: "The GPU kernels that are measured here, their verdicts, the queue and the runners."}
	}
	return nil
}

// headline returns the verdict in one line without marks.
func (p *RunPage) headline() string {
	if len(p.Heading) == 0 {
		return string(p.Outcome) + " · " + p.Kernel
	}
	text := string(p.Outcome) + " · "
	for _, piece := range p.Heading {
		text += piece.Text
	}
	return text
}

// alonePolicy allows inline styles in a picture that is embedded in a different page.
const alonePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// alone serves a picture of a run for use outside of its page. It does not exist if draw returns nothing.
func (s *Server) alone(kind string, draw func(r *http.Request, p *RunPage) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		row, err := s.runOf(r.Context(), s.visit(r), r.PathValue("job"))
		var text []byte
		if err == nil {
			p := *s.drawn(r.Context(), row)
			p.Row = rowOf(row, row.Repo)
			if text, err = draw(r, &p); err == nil && text == nil {
				err = ErrNotFound
			}
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Security-Policy", alonePolicy)
		w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
		_, _ = w.Write(text) // the client may have hung up
	}
}

// intervals draws the chart of a run's intervals, for use in a document.
func intervals(_ *http.Request, p *RunPage) ([]byte, error) {
	if p.Intervals == nil {
		return nil, nil
	}
	return []byte(chart.Alone(chart.Forest("Speedup of each shape against its goal", p.Intervals))), nil
}

// intervalsPNG draws the same for a comment, which mail programs show, too. A dark one is for readers with a dark screen.
func intervalsPNG(r *http.Request, p *RunPage) ([]byte, error) {
	if p.Intervals == nil {
		return nil, nil
	}
	return chart.Preview{Rows: p.Intervals, Dark: r.URL.Query().Get("look") == "dark"}.PNG()
}

// previewPNG draws the verdict for chats and other sites that show a picture for a link.
func previewPNG(_ *http.Request, p *RunPage) ([]byte, error) {
	if p.Verdict == nil {
		return nil, nil
	}
	sign := outcomeOf(p.Outcome, p.Reason)
	title := strings.TrimPrefix(p.headline(), string(p.Outcome)+" · ")
	foot := []string{p.Repo}
	if p.Pull() > 0 {
		foot[0] += fmt.Sprintf(" #%d", p.Pull())
	}
	if p.Device != "" {
		foot = append(foot, deviceName(p.Device))
	}
	return chart.Preview{Word: sign.Word, Class: sign.Class, Title: title, Rows: p.Intervals, Foot: strings.Join(foot, " · ")}.PNG()
}
