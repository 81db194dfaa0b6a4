package serve

import (
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// A comment shows a picture where GitHub can fetch it: without a login, by https.
func TestRunPage(t *testing.T) {
	l, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	const open, closed = "pr-1-7-0123456789ab-1", "pr-2-7-0123456789ab-1"
	for name, c := range map[string]struct {
		url, repo, job string
		want           present.Page
	}{
		"public":   {"https://gate.example/", "o/open", open, present.Page{URL: "https://gate.example/runs/" + open, History: "https://gate.example/kernels/o/open/kernels/scale", Picture: "https://gate.example/runs/" + open + "/intervals.png"}},
		"private":  {"https://gate.example", "o/open", closed, present.Page{URL: "https://gate.example/runs/" + closed, History: "https://gate.example/kernels/o/open/kernels/scale"}},
		"loopback": {"http://127.0.0.1:8080", "o/open", open, present.Page{URL: "http://127.0.0.1:8080/runs/" + open, History: "http://127.0.0.1:8080/kernels/o/open/kernels/scale"}},
		"nowhere":  {"", "o/open", open, present.Page{}},
	} {
		s := &Server{Ledger: l, access: &pages.Guard{Key: []byte("k"), Public: []string{"o/open@1"}, Token: "a token of more than sixteen characters"}}
		s.opt.Config.URL = c.url
		if got := s.runPage(c.repo, "kernels/scale", c.job); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
