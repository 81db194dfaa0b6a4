package pages_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
)

// Commits can be compared as runs can: the last run of each counts.
func TestCompareCommits(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	var p struct{ A, B struct{ Job string } }
	_, body := w.get(site + "/api/v1/compare?a=1111111&b=2222222222222222222222222222222222222222&kernel=sdpa")
	w.no(json.Unmarshal([]byte(body), &p))
	if p.A.Job != jobs["stage1"] || p.B.Job != jobs["stage2"] {
		t.Errorf("compared are %+v", p)
	}
	for _, query := range []string{"a=1111111&b=9999999", "a=111111&b=2222222", "a=1111111&b=%25"} {
		if answer, _ := w.get(site + "/compare?" + query); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", query, answer.Status)
		}
	}
}
