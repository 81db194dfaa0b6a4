package serve

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/present"
)

// A comment shows a picture where GitHub can fetch it: without a login, by https.
func TestRunPage(t *testing.T) {
	for name, c := range map[string]struct {
		url, repo string
		want      present.Page
	}{
		"public":   {"https://gate.example/", "o/open", present.Page{URL: "https://gate.example/runs/j", History: "https://gate.example/kernels/o/open/kernels/scale", Picture: "https://gate.example/runs/j/intervals.svg"}},
		"private":  {"https://gate.example", "o/closed", present.Page{URL: "https://gate.example/runs/j", History: "https://gate.example/kernels/o/closed/kernels/scale"}},
		"loopback": {"http://127.0.0.1:8080", "o/open", present.Page{URL: "http://127.0.0.1:8080/runs/j", History: "http://127.0.0.1:8080/kernels/o/open/kernels/scale"}},
		"nowhere":  {"", "o/open", present.Page{}},
	} {
		s := &Server{access: &pages.Guard{Key: []byte("k"), Public: []string{"o/open"}, Token: "a token of more than sixteen characters"}}
		s.opt.Config.URL = c.url
		if got := s.runPage(c.repo, "kernels/scale", "j"); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
