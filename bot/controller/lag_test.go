package controller_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/internal/long"
)

// Stories of every kind end in the same way while GitHub's replicas are behind: commits that
// checks do not know, pull requests that are not there or as they were, refs that git does not
// show. Golden files are the same.
func TestLagged(t *testing.T) {
	long.Test(t)
	before := met.Load()
	t.Cleanup(func() { // after all stories
		if !watched && met.Load() == before {
			t.Error("no story met a lag")
		}
	})
	for name, story := range map[string]func(*testing.T){
		"PassAndDefer":           TestPassAndDefer,
		"SynchronizeSupersedes":  TestSynchronizeSupersedes,
		"CommandsAndPermissions": TestCommandsAndPermissions,
		"ForkWaitsForApproval":   TestForkWaitsForApproval,
		"MergeQueue":             TestMergeQueue,
		"BaseBranchGetsFaster":   TestBaseBranchGetsFaster,
		"BaseBranchGone":         TestBaseBranchGone,
		"AutomaticBaseChange":    TestAutomaticBaseChange,
		"Token":                  TestPersonalToken,
	} {
		t.Run(name, story)
	}
}

// refuse answers as GitHub's replicas do that do not know a commit or a check.
func refuse(rq *http.Request, status int, message string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: rq,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"message":%q,"status":"%d"}`, message, status))),
	}
}

// A single refusal while the required check is created does not lose the check.
func TestEarlyRefusal(t *testing.T) {
	for status, message := range map[int]string{http.StatusUnprocessableEntity: "No commit found for SHA: x", http.StatusNotFound: "Not Found"} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var created atomic.Int64
			w := newWorld(t, worldOptions{retold: status == http.StatusNotFound, refuse: func(rq *http.Request) *http.Response {
				if rq.Method == http.MethodPost && strings.HasSuffix(rq.URL.Path, "/check-runs") && created.Add(1) == 1 {
					return refuse(rq, status, message)
				}
				return nil
			}})
			pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{})
			w.concluded(pr.HeadSHA(), "success")
			w.no(pr.Merge("olga"))
			if n := w.running.bot.Counts().Unseen; n == 0 {
				t.Error("nobody counted the refusal")
			}
		})
	}
}

// A check that GitHub has not taken yet is created by the bot that runs after a restart.
func TestRefusedUntilRestart(t *testing.T) {
	var late atomic.Bool
	var refused atomic.Int64
	late.Store(true)
	w := newWorld(t, worldOptions{retold: true, refuse: func(rq *http.Request) *http.Response {
		if late.Load() && rq.Method == http.MethodPost && strings.HasSuffix(rq.URL.Path, "/check-runs") {
			refused.Add(1)
			return refuse(rq, http.StatusUnprocessableEntity, "No commit found for SHA: x")
		}
		return nil
	}})
	pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{})
	w.said(pr, "PASS") // the comment does not wait for the check
	seen := refused.Load()
	w.poll("more attempts", func() bool { return refused.Load() >= seen+3 })
	w.no(w.running.stop())
	late.Store(false)
	w.app.SetHook("", "") // nothing tells the next bot of it
	w.start()
	w.concluded(pr.HeadSHA(), "success")
}

// A check that GitHub does not know any more while its kernel is measured is created again.
func TestCheckLostWhileRunning(t *testing.T) {
	var lost atomic.Value
	lost.Store("none")
	w := newWorld(t, worldOptions{refuse: func(rq *http.Request) *http.Response {
		if rq.Method == http.MethodPatch && strings.HasSuffix(rq.URL.Path, lost.Load().(string)) {
			return refuse(rq, http.StatusNotFound, "Not Found")
		}
		return nil
	}})
	pr := w.propose("held", "// HOLD speed 1.5\n", embedded.PROptions{})
	running := func() (c embedded.Check) {
		w.until("a running check", func() bool {
			c, _ = w.repo.Check(pr.HeadSHA(), "kernelgate")
			return c.Status == "in_progress" && strings.Contains(c.Summary+c.Text+c.Title, "round")
		})
		return c
	}
	first := running()
	lost.Store(fmt.Sprintf("/check-runs/%d", first.ID))
	w.until("another check", func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.ID > first.ID
	})
	close(w.hold)
	if c := w.concluded(pr.HeadSHA(), "success"); c.ID <= first.ID {
		t.Errorf("the check is still %d", c.ID)
	}
}

// A pull request that was merged is not compared with itself while GitHub still calls it open.
func TestMergedAndStillOpen(t *testing.T) {
	var asked atomic.Int64
	w := newWorld(t, worldOptions{refuse: func(rq *http.Request) *http.Response {
		if rq.Method == http.MethodGet && strings.HasSuffix(rq.URL.Path, "/pulls/1") {
			asked.Add(1)
		}
		return nil
	}})
	var second atomic.Int64 // of the replicas
	w.hub.SetLag(embedded.Lag{Pulls: time.Second, Clock: func() time.Time { return time.Unix(1e9+second.Load(), 0) }})
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	second.Store(1)
	w.said(pr, "PASS")
	c := w.concluded(pr.HeadSHA(), "success")
	judged := w.running.bot.Counts().Judged
	before := w.repo.Head("main")
	w.app.SetHook("", "") // GitHub tells of the push and nothing else
	w.no(pr.Merge("olga"))
	seen := asked.Load()
	w.post("push", "00000000-0000-0000-0000-000000000001", map[string]any{
		"ref": "refs/heads/main", "before": before, "after": w.repo.Head("main"), "sender": map[string]any{"id": 1, "login": "olga"},
		"repository": map[string]any{"id": w.repo.ID(), "full_name": "olga/kernels", "default_branch": "main", "owner": map[string]any{"login": "olga"}},
	})
	w.poll("questions about the pull request", func() bool { return asked.Load() >= seen+2 })
	second.Store(2)
	w.settle()
	if now, _ := w.repo.Check(pr.HeadSHA(), "kernelgate"); now.ID != c.ID || now.Title != c.Title {
		t.Errorf("the check says %q, it was %q", now.Title, c.Title)
	}
	if n := w.running.bot.Counts().Judged - judged; n != 1 {
		t.Errorf("%d verdicts, want one for the push", n)
	}
}

// A command in a comment on a pull request that the bot never heard of is followed once
// GitHub shows the pull request.
func TestCommandBeforeItsPull(t *testing.T) {
	var late atomic.Bool
	w := newWorld(t, worldOptions{refuse: func(rq *http.Request) *http.Response {
		if late.Load() && rq.Method == http.MethodGet && strings.HasSuffix(rq.URL.Path, "/pulls/1") {
			return refuse(rq, http.StatusNotFound, "Not Found")
		}
		return nil
	}})
	w.settle()
	late.Store(true)
	w.hub.SetDelivery(embedded.Unruly{Vanish: 1})
	pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{})
	w.no(w.hub.Quiet(w.ctx))
	w.hub.SetDelivery(embedded.Unruly{})
	asked := w.comment(pr, "walt", "/explain")
	w.poll("the command", func() bool {
		c := w.running.bot.Counts()
		return c.Handled >= c.Accepted && c.Accepted > 0 && !w.running.bot.Idle()
	})
	late.Store(false)
	w.reacted(pr, asked, "rocket")
	w.concluded(pr.HeadSHA(), "success")
}
