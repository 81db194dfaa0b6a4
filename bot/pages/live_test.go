package pages_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// stream reads server-sent events. next returns the name and data of each.
func (w *world) stream(url string, header ...string) (next func() (name, data string)) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute) // a text that never comes ends the test
	w.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	w.no(err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	w.no(err)
	w.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		w.Fatalf("%s %v", answer.Status, answer.Header)
	}
	lines := bufio.NewScanner(answer.Body)
	return func() (name, data string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), "\r") {
				w.Errorf("%q is more than one line to a browser", lines.Text())
			}
			switch line := lines.Text(); {
			case line == "" && name != "":
				return name, data
			case strings.HasPrefix(line, "event: "):
				name = line[7:]
			case strings.HasPrefix(line, "data: "):
				data += line[6:] + "\n"
			}
		}
		return "", ""
	}
}

// TestLive checks that an unfinished run streams to all its watchers and ends with its verdict.
func TestLive(t *testing.T) {
	w := newWorld(t)
	s := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 8}, "org/kernels", "Under way", "sdpa")
	job := s.Runs[0].Job
	w.write(s, change.Started{Job: job, Token: 1, Runner: "gpu1"})
	w.settle()
	w.busy(job, &runners.Event{Gate: gates.GatePerformance, Text: "mission", Done: 3, Total: 20, Unit: "rounds"})
	site := w.site(pages.Everybody{}).URL
	watchers := []func() (string, string){w.stream(site + "/runs/" + job + "/live"), w.stream(site + "/runs/" + job + "/live")}
	until := func(want, text string) {
		t.Helper()
		for i, next := range watchers {
			for {
				name, data := next()
				if name == "" {
					t.Fatalf("watcher %d: the stream ends before %s %q", i, want, text)
				}
				if name == want && strings.Contains(data, text) {
					break
				}
			}
		}
	}
	w.says(job, runners.Event{Gate: gates.GateBuild, Text: "compiling"}, runners.Event{Gate: gates.GatePerformance, Text: "mission"})
	until("progress", "3 of 20 rounds")
	until("log", "12:00:00  build: compiling\n12:00:01  performance: mission\n")
	w.busy(job, &runners.Event{Gate: gates.GatePerformance, Text: "mission", Done: 4, Total: 20, Unit: "<b>rounds</b>"})
	until("progress", "4 of 20 &lt;b&gt;rounds")
	last := runners.Event{Gate: gates.GateProfile, Text: "of <b>long</b>\x1b[31m\nevent: end", Detail: "x\r\revent: end\rdata: y"}
	w.busy(job, &last)
	w.says(job, last)
	until("more", "12:00:02  profile: of <b>long</b>") // plain text, for textContent
	late := w.stream(site + "/runs/" + job + "/live")
	if name, data := late(); name != "progress" {
		t.Errorf("who comes now hears %s %q first", name, data)
	}
	if name, data := late(); name != "log" || !strings.HasPrefix(data, "12:00:00  build: compiling\n12:00:01  performance: mission\n12:00:02  profile: of") {
		t.Errorf("who comes now reads %s %q", name, data)
	}
	// A different runner starts over.
	w.mu.Lock()
	w.said[job] = []runners.LogEntry{{At: epoch.Add(time.Minute), Event: runners.Event{Gate: gates.GateBuild, Text: "once more"}}}
	w.mu.Unlock()
	until("log", "12:01:00  build: once more\n")
	e, v := recorded(t, "spills")
	result := change.NewResult(v)
	result.Evidence, result.Verdict = w.blob("e", e), w.blob("v", v)
	w.write(s, change.Finished{Job: job, Token: 1, Runner: "gpu1", Result: result})
	w.settle()
	until("end", "")
	for i, next := range watchers {
		if name, _ := next(); name != "" {
			t.Errorf("watcher %d hears %s after the end", i, name)
		}
	}
	// A client that connects later gets the end at once.
	if name, _ := w.stream(site + "/runs/" + job + "/live")(); name != "end" {
		t.Errorf("a late watcher hears %q", name)
	}
}

// TestHomeIsLive checks that the home page shows current runs while somebody watches, and then
// their results.
func TestHomeIsLive(t *testing.T) {
	w := newWorld(t)
	s := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 8}, "org/kernels", "Under way", "sdpa")
	job := s.Runs[0].Job
	w.settle()
	w.places = map[string]scheduler.Position{job: {Ahead: 2, Wait: time.Minute}}
	next := w.stream(w.site(pages.Everybody{}).URL + "/live")
	until := func(want string, texts ...string) {
		t.Helper()
		for {
			name, data := next()
			if name == "" {
				t.Fatalf("the stream ends before %s %q", want, texts)
			}
			all := name == want
			for _, text := range texts {
				all = all && strings.Contains(data, text)
			}
			if all {
				return
			}
		}
	}
	until("now", "Number 3 in the queue", "starts in about 60 s")
	w.write(s, change.Started{Job: job, Token: 1, Runner: "gpu1"})
	w.settle()
	for round := range 3 {
		now := measuring(round)
		w.says(job, now)
		w.busy(job, &now)
	}
	until("now", "Runs on gpu1", "2 of 20 rounds", `class="chart funnel"`)
	e, v := recorded(t, "spills")
	result := change.NewResult(v)
	result.Evidence, result.Verdict = w.blob("e", e), w.blob("v", v)
	w.write(s, change.Finished{Job: job, Token: 1, Runner: "gpu1", Result: result})
	w.settle()
	until("recent", "DEFER", "Under way")
}
