package pages

import (
	"strings"

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
			v.Title = string(p.Outcome) + " · " + p.Kernel
		}
		if len(p.Heading) > 0 {
			v.Title = string(p.Outcome) + " · "
			for _, piece := range p.Heading {
				v.Title += piece.Text
			}
		}
		if p.Forest != "" && s.URL != "" {
			v.Image = strings.TrimSuffix(s.URL, "/") + "/runs/" + p.Job + "/intervals.svg"
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
