package pages_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
)

// BenchmarkPages asks for every page of a ledger of 100,000 runs, most of them of one
// kernel. The worst of them must be well below a tenth of a second.
func BenchmarkPages(b *testing.B) {
	const changes, each = 10_000, 10
	w := newWorld(b)
	e, v := recorded(b, "stage6_fp8")
	w.blob("e", e)
	text := w.blobs[w.blob("v", v)]
	result := change.NewResult(v)
	result.Evidence = "e"
	var last *change.State
	began := time.Now()
	for i := range changes {
		id := change.ID{Kind: change.Pull, Repo: int64(1 + i%3), Number: i + 1}
		if i%20 == 0 {
			id = change.ID{Kind: change.Push, Repo: int64(1 + i%3), SHA: fmt.Sprintf("%040x", i+1)}
		}
		kernel := "sdpa"
		if i%4 == 3 {
			kernel = fmt.Sprint("kernel", i%40)
		}
		s := w.open(id, fmt.Sprint("org/repo", id.Repo), fmt.Sprint("Change ", i), kernel)
		for n := range each {
			if n > 0 {
				w.ask(s, "/rebench", change.Effect{Rebench: []change.Again{{Folder: "kernels/" + kernel, Bundle: "b"}}})
			}
			result.Verdict = fmt.Sprint("v", i, "-", n)
			w.blobs[result.Verdict] = text // a name each, so that nothing is found twice
			w.write(s, change.Finished{Job: s.Runs[0].Job, Token: 1, Runner: "gpu1", Result: result})
		}
		if kernel == "sdpa" && id.Kind == change.Pull {
			last = s
		}
	}
	w.settle()
	b.Logf("%d runs in %v", changes*each, time.Since(began).Round(time.Second))
	job := last.Runs[0].Job
	repo := fmt.Sprint("org/repo", last.ID.Repo)
	for _, page := range []struct{ name, path string }{
		{"home", "/"}, {"run", "/runs/" + job}, {"change", "/changes/" + last.ID.String()}, {"kernel", "/kernels/" + repo + "/sdpa"},
		{"compare", "/compare?a=" + job + "&b=" + job}, {"policy", "/policy?change=" + last.ID.String()}, {"badge", "/badge/" + repo + "/sdpa.svg"},
		{"feed", "/feed.atom"}, {"api", "/api/v1"},
	} {
		b.Run(page.name, func(b *testing.B) {
			bytes := 0
			for b.Loop() {
				b.StopTimer() // a server that remembers nothing of the last time
				h, err := (&pages.Server{Source: w, Access: pages.Everybody{}}).Handler()
				w.no(err)
				b.StartTimer()
				answer := httptest.NewRecorder()
				h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, page.path, nil))
				if answer.Code != http.StatusOK {
					b.Fatalf("%s answers %d", page.path, answer.Code)
				}
				bytes = answer.Body.Len()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/page")
			b.ReportMetric(float64(bytes)/1024, "KiB")
		})
	}
}
