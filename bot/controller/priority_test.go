package controller

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/grammar"
)

// pullOf is an open pull request with a plan, which somebody touched a while ago.
func pullOf(number int, now time.Time, ago time.Duration, kernels ...change.Kernel) *change.State {
	s := change.New(change.ID{Kind: change.Pull, Repo: 1, Number: number})
	f := change.Facts{Repo: "olga/kernels", Open: true, Head: fmt.Sprintf("%040x", number), Base: "main", Updated: now.Add(-ago)}
	s.Apply(1, now, change.Seen{Facts: f})
	s.Apply(2, now, change.Planned{Plan: change.Plan{Key: f.PlanKey(), Head: f.Head, Check: "kernelgate", Kernels: kernels}})
	return s
}

func TestPriorities(t *testing.T) {
	now := time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
	k := &Controller{Config: Config{Now: func() time.Time { return now }}}
	scale := change.Kernel{KernelSpec: change.KernelSpec{Name: "scale", Folder: "kernels/scale", Sources: "s", Labels: []string{"l4"}}}
	const old, fresh = 30 * 24 * time.Hour, time.Minute
	with := func(s *change.State, events ...change.Event) *change.State {
		for i, e := range events {
			s.Apply(uint64(10+i), now, e)
		}
		return s
	}
	moved := func(ago time.Duration) *change.State {
		s := pullOf(1, now, ago)
		f := s.Facts
		f.Head = strings.Repeat("e", 40)
		return with(s, change.Seen{Facts: f})
	}
	fork := pullOf(1, now, old, scale)
	fork.Facts.Fork = true
	closed := pullOf(1, now, old)
	closed.Facts.Open = false
	group := pullOf(1, now, old)
	group.ID.Kind = change.Group
	posted := change.Published{Checks: map[string]change.Posted{change.CheckKey("kernelgate", fmt.Sprintf("%040x", 1)): {ID: 5, Done: true}}}
	asked := change.Asked{ID: "comment-7", Comment: 7, Request: grammar.Request{Command: grammar.Explain{}}}
	for name, c := range map[string]struct {
		state *change.State
		want  client.Priority
	}{
		"an old pull request without a kernel":       {pullOf(1, now, old), client.Backlog},
		"a new one":                                  {pullOf(1, now, fresh), client.Routine},
		"an old one with a job in the queue":         {pullOf(1, now, old, scale), client.Urgent},
		"an old one that is to be planned":           {moved(old), client.Backlog},
		"a new one that is to be planned":            {moved(fresh), client.Urgent},
		"an old one whose check is there":            {with(pullOf(1, now, old), posted), client.Urgent},
		"an old fork that waits for an approval":     {fork, client.Backlog},
		"an old one that was closed":                 {closed, client.Urgent},
		"a merge group":                              {group, client.Urgent},
		"an old one with a command":                  {with(pullOf(1, now, old), asked), client.Urgent},
		"an old one whose command wants a reply":     {with(pullOf(1, now, old), asked, change.Answered{ID: asked.ID, OK: true, Answer: change.Answer{Kind: change.AnswerHelp}}), client.Urgent},
		"one whose command was replied to just now":  {with(pullOf(1, now, old), asked, change.Answered{ID: asked.ID, OK: true}, change.Published{Replies: map[string]int64{asked.ID: 8}}), client.Routine},
		"one that was touched within the last hour":  {pullOf(1, now, restsAfter), client.Routine},
		"one that was touched more than an hour ago": {pullOf(1, now, restsAfter+time.Second), client.Backlog},
	} {
		if got := k.priorityOf(c.state); got != c.want {
			t.Errorf("%s: priority %d, want %d", name, got, c.want)
		}
	}
}

// A quickHub takes every write within a second, and notes when it came.
type quickHub struct {
	mu    sync.Mutex
	at    map[string]time.Time // by the commit of the check
	order []time.Time
}

func (h *quickHub) RoundTrip(rq *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(rq.Body)
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Second)
	_, sha, _ := strings.Cut(string(body), `"head_sha":"`)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at[sha[:40]] = time.Now()
	h.order = append(h.order, time.Now())
	return &http.Response{StatusCode: http.StatusCreated, Status: "201 Created", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: rq,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"id": 5}`))}, nil
}

// On the day of its installation a bot finds many pull requests that nobody waits for. A verdict appears as if they were not
// there, at any time of that day; and all of them are shown in the end, within GitHub's limits.
func TestVerdictDoesNotWaitForIdlePulls(t *testing.T) {
	const old = 30 * 24 * time.Hour
	for _, c := range []struct {
		idle int
		ago  time.Duration
	}{{200, old}, {1000, old}, {200, 0}} {
		t.Run(fmt.Sprintf("%d touched %v ago", c.idle, c.ago), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				hub := &quickHub{at: map[string]time.Time{}}
				github, err := client.NewToken("x", client.Options{Checks: true, Transport: hub})
				if err != nil {
					t.Fatal(err)
				}
				k := &Controller{Config: Config{GitHub: github, Now: time.Now, Log: slog.New(slog.DiscardHandler)}}
				const verdicts = 30 // one each two minutes
				kernel := change.Kernel{KernelSpec: change.KernelSpec{Name: "scale", Folder: "kernels/scale", Sources: "s", Labels: []string{"l4"}}}
				var states []*change.State
				for i := range c.idle {
					states = append(states, pullOf(i, begun, c.ago))
				}
				for i := range verdicts {
					states = append(states, pullOf(c.idle+i, begun, -time.Duration(i)*2*time.Minute, kernel))
				}
				// As in show: room is asked for, and then a check is written.
				w := &workQueue[int]{name: "show", timeout: publishTimeout, slots: publishSlots, backoff: time.Second, log: k.Log, now: time.Now, leads: func() bool { return true },
					lane: func(_ context.Context, n int) (lane, error) { return k.laneOfState(states[n]), nil },
					handle: func(ctx context.Context, n int) error {
						s := states[n]
						ctx = client.WithPriority(ctx, k.priorityOf(s))
						if err := k.hasWriteBudget(ctx, s); err != nil {
							return err
						}
						_, err := github.CreateCheck(ctx, s.Facts.Repo, client.Check{Name: "kernelgate", HeadSHA: s.Facts.Head, Status: "completed", Conclusion: "success", Title: "t", Summary: "s"})
						return err
					}}
				ctx, cancel := context.WithCancel(t.Context())
				w.start(ctx)
				defer func() {
					cancel()
					w.drain()
				}()
				for n := range c.idle {
					w.add(n)
				}
				for i := range verdicts {
					time.Sleep(time.Until(begun.Add(time.Duration(i)*2*time.Minute + 10*time.Second)))
					n := c.idle + i
					w.add(n)
					asked := time.Now()
					time.Sleep(5 * time.Second)
					synctest.Wait()
					hub.mu.Lock()
					shown, ok := hub.at[states[n].Facts.Head]
					hub.mu.Unlock()
					if took := shown.Sub(asked); !ok || took > 3*time.Second { // one write may be under way
						t.Fatalf("verdict %d is shown: %v, after %v", i, ok, took)
					}
				}
				for !w.idle() {
					if time.Since(begun) > 24*time.Hour {
						t.Fatalf("%d of %d pull requests are shown after a day", len(hub.at), len(states))
					}
					time.Sleep(time.Minute)
				}
				if len(hub.at) != len(states) || len(hub.order) != len(states) {
					t.Errorf("%d checks of %d pull requests by %d writes", len(hub.at), len(states), len(hub.order))
				}
				for i := range hub.order {
					if j := i + 500; j < len(hub.order) && hub.order[j].Sub(hub.order[i]) < time.Hour {
						t.Fatalf("more than 500 writes within an hour of %v", hub.order[i].Sub(begun))
					}
				}
				last := begun
				for _, s := range states[:c.idle] {
					if at := hub.at[s.Facts.Head]; at.After(last) {
						last = at
					}
				}
				t.Logf("the last idle pull request is shown after %v", last.Sub(begun).Round(time.Minute))
			})
		})
	}
}
