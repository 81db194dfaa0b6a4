package fleet

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

func lines(from, to int) (said []runners.LogEntry) {
	for i := from; i < to; i++ {
		said = append(said, runners.LogEntry{At: time.Unix(int64(i), 0).UTC(), Event: runners.Event{Gate: "build", Text: fmt.Sprint("line ", i)}})
	}
	return said
}

func texts(said []runners.LogEntry) string {
	var all []string
	for _, s := range said {
		all = append(all, s.Text)
	}
	return strings.Join(all, ", ")
}

// Whatever is lost, sent twice or sent wrongly, the log is the runner's, from its beginning.
func TestLogGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.enqueue("l4", "job-1")
	w.lease("ann", "l4", "job-1", 1)
	beat := func(from int, said []runners.LogEntry, want int) {
		t.Helper()
		status, text := w.post("ann's", "jobs/job-1/beat", protocol.Heartbeat{Token: 1, From: from, Said: said})
		if status != 200 || strings.TrimSpace(text) != fmt.Sprintf(`{"said":%d}`, want) {
			t.Fatalf("from %d: %d %s, want %d", from, status, text, want)
		}
	}
	beat(0, lines(0, 2), 2)
	beat(0, lines(0, 2), 2) // its answer was lost
	beat(1, lines(1, 4), 4)
	beat(9, lines(9, 10), 4)
	beat(-1, lines(0, 1), 4)
	beat(4, lines(4, 5+protocol.MostSaid), 4) // more than a beat may carry
	if got := texts(w.server.Said("job-1")); got != "line 0, line 1, line 2, line 3" {
		t.Errorf("the log is %s", got)
	}
	if got := w.server.Said(""); got != nil {
		t.Errorf("nobody's log is %v", got)
	}
	w.stop()
	w.start()
	beat(4, nil, 0) // the bot forgot: from the beginning, please
	beat(0, lines(0, 4), 4)
	if got := texts(w.server.Said("job-1")); got != "line 0, line 1, line 2, line 3" {
		t.Errorf("after a restart the log is %s", got)
	}
	if status, _ := w.post("bob's", "jobs/job-1/beat", protocol.Heartbeat{Token: 1, From: 4, Said: lines(4, 5)}); status == 200 || len(w.server.Said("job-1")) != 4 {
		t.Error("another runner wrote into the log")
	}
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	long := []runners.LogEntry{{Event: runners.Event{Text: strings.Repeat("x", 10_000)}}}
	var said []runners.LogEntry
	for i := range runners.MostSaid + 10 {
		said = appendLog(said, i, long)
	}
	if len(said) != runners.MostSaid || len(said[0].Text) > 1000 {
		t.Errorf("%d lines of %d bytes are kept", len(said), len(said[0].Text))
	}
}

// What a runner says before the bot is started anew is known again after that.
func TestLogSurvivesTheBotsRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 30*time.Second)
	w.enqueue("l4", "job-1")
	goOn, begun := make(chan struct{}), make(chan struct{})
	w.run("ann", func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
		for _, s := range lines(0, 2*protocol.MostSaid+3) {
			p.Report(s.Event)
		}
		close(begun)
		<-goOn
		return quick(ctx, job, scratch, p)
	})
	next(t, begun, "the measurement")
	complete := func() {
		t.Helper()
		for len(w.server.Said("job-1")) < 2*protocol.MostSaid+3 {
			next(t, w.results.progress, "progress")
		}
		if got, want := texts(w.server.Said("job-1")), texts(lines(0, 2*protocol.MostSaid+3)); got != want {
			t.Errorf("the log is %s", got)
		}
	}
	complete()
	w.stop()
	w.start()
	complete()
	close(goOn)
	next(t, w.results.finished, "the result")
}
