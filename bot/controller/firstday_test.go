package controller_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// The bot is installed in a repository with more open pull requests than GitHub allows it to write about, and time stands
// still, so that no limit is ever over. A new pull request gets its verdict all the same, and a command on an old one its
// reply. (TestVerdictDoesNotWaitForIdlePulls has a thousand of them, and a day.)
func TestFirstDay(t *testing.T) {
	var clock atomic.Int64
	today := time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
	clock.Store(today.Add(-7 * 24 * time.Hour).Unix())
	w := newWorld(t, worldOptions{patient: true, apart: true, retold: true, writes: 60, now: func() time.Time { return time.Unix(clock.Load(), 0).UTC() }})
	var old []*embedded.PR
	for i := range 20 {
		branch := fmt.Sprint("docs", i)
		_, err := w.repo.Push(branch, map[string]string{"README.md": branch}, branch)
		w.no(err)
		pr, err := w.repo.OpenPR(embedded.PROptions{Title: branch, Head: branch, Author: "walt"})
		w.no(err)
		old = append(old, pr)
	}
	w.no(w.hub.Quiet(w.ctx)) // nobody has heard of them
	shown := func() (n int) {
		for _, pr := range old {
			if c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate"); c.Status == "completed" {
				n++
			}
		}
		return n
	}
	clock.Store(today.Unix())
	w.start()
	defer func() { w.no(w.running.stop()) }()
	const room = 6 // two thirds of what ten minutes have
	w.until("the old pull requests that there is room for", func() bool { return shown() == room })
	pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{})
	w.until("the verdict", func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Status == "completed" && c.Conclusion == "success"
	})
	w.said(pr, "PASS")
	w.comment(old[19], "walt", "/explain")
	w.said(old[19], "there is nothing to measure")
	if n := shown(); n > room+1 { // the one with the command is not idle any more
		t.Errorf("%d old pull requests are shown, and there is room for %d", n, room)
	}
}
