package pages_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/scheduler"
)

// BenchmarkPages requests every page from a ledger of 100,000 runs, most of them of one kernel, on
// a server with cold caches. The slowest page must take less than a tenth of a second.
func BenchmarkPages(b *testing.B) {
	const changes, each = 10_000, 10
	w := newWorld(b)
	e, v := recorded(b, "stage6_fp8")
	w.blob("e", e)
	text := w.blobs[w.blob("v", v)]
	result := change.NewResult(v)
	result.Evidence = "e"
	var last *change.State
	places := map[string]scheduler.Position{}
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
				w.ask(s, "/rebench", change.Effect{Rebench: []change.Rerun{{Folder: "kernels/" + kernel, Bundle: "b"}}})
			}
			result.Verdict = fmt.Sprint("v", i, "-", n)
			// Each has a distinct name, so that no cache entry is reused.
			w.blobs[result.Verdict] = text
			w.write(s, change.Finished{Job: s.Runs[0].Job, Token: 1, Runner: "gpu1", Result: result})
		}
		if kernel == "sdpa" && id.Kind == change.Pull {
			last = s
		}
	}
	for i := range 500 { // these runs wait in the queue
		s := w.open(change.ID{Kind: change.Pull, Repo: int64(1 + i%3), Number: changes + i + 1}, fmt.Sprint("org/repo", 1+i%3), "Waits", "sdpa")
		places[s.Runs[0].Job] = scheduler.Position{Ahead: i, Wait: time.Duration(i) * time.Minute}
	}
	w.places = places
	w.settle()
	b.Logf("%d runs in %v", changes*each, time.Since(began).Round(time.Second))
	job := last.Runs[0].Job
	repo := fmt.Sprint("org/repo", last.ID.Repo)
	for _, page := range []struct{ name, path string }{
		{"home", "/"}, {"run", "/runs/" + job}, {"change", "/changes/" + last.ID.String()}, {"kernel", "/kernels/" + repo + "/kernels/sdpa"},
		{"compare", "/compare?a=" + job + "&b=" + job}, {"commits", "/compare?a=" + last.Facts.Head + "&b=" + last.Facts.Head}, {"policy", "/policy?change=" + last.ID.String()}, {"badge", "/badge/" + repo + "/kernels/sdpa.svg"},
		{"search", "/search?q=Change+99"}, {"repository", "/kernels/" + repo}, {"feed", "/feed.atom"}, {"api", "/api/v1"},
	} {
		b.Run(page.name, func(b *testing.B) {
			bytes, busy := 0, time.Duration(0)
			for b.Loop() {
				b.StopTimer() // a new server with empty caches
				h, err := (&pages.Server{Source: w, Access: pages.Everybody{}}).Handler()
				w.no(err)
				before := spent(b)
				b.StartTimer()
				answer := httptest.NewRecorder()
				method, path := http.MethodGet, page.path
				if to, ok := strings.CutPrefix(path, "POST "); ok {
					method, path = http.MethodPost, to
				}
				h.ServeHTTP(answer, httptest.NewRequest(method, path, nil))
				if answer.Code != http.StatusOK {
					b.Fatalf("%s answers %d", page.path, answer.Code)
				}
				busy += spent(b) - before
				bytes = answer.Body.Len()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/page")
			b.ReportMetric(float64(busy.Microseconds())/1000/float64(b.N), "cpu-ms/page") // meaningful even on a shared machine
			b.ReportMetric(float64(bytes)/1024, "KiB")
		})
	}
}

// spent returns the CPU time that this process has used.
func spent(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
