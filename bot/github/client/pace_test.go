package client_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestWritesKeepTheirPace checks that GitHub never has to refuse a client that writes as fast as it
// can.
func TestWritesKeepTheirPace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 50 {
				if _, err := w.bot.CreateComment(w.ctx, repo, w.pr.Number(), fmt.Sprint(worker, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := w.bot.Stats()
	if n := len(w.pr.Comments()); n != 200 || s.Requests[client.Request{Class: client.Write, Ending: client.Refused}] != 0 {
		t.Errorf("%d comments, %v", n, s.Requests)
	}
	if s.Waits[client.Throttle] == 0 || s.Waits[client.Secondary] != 0 {
		t.Errorf("waits: %v", s.Waits)
	}
}

// TestSecondaryLimitIsHonoured turns the throttle off. GitHub then refuses, and the client waits
// for the time that GitHub names.
func TestSecondaryLimitIsHonoured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{ContentPerMinute: -1, ContentPerHour: -1}, embedded.Limits{ContentPerMinute: 10})
	for i := range 25 {
		_, err := w.bot.CreateComment(w.ctx, repo, w.pr.Number(), fmt.Sprint(i))
		w.no(err)
	}
	if s := w.bot.Stats(); s.Waits[client.Secondary] != 2 || len(w.pr.Comments()) != 25 {
		t.Errorf("%d comments, waits %v", len(w.pr.Comments()), s.Waits)
	}
}

func TestPrimaryLimitIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{CacheBytes: -1}, embedded.Limits{PerHour: 20})
	for range 50 {
		_, err := w.bot.Pull(w.ctx, repo, w.pr.Number())
		w.no(err)
	}
	s := w.bot.Stats()
	identity := fmt.Sprintf("installation %d", w.inst.ID())
	if s.Waits[client.Primary] != 2 || s.Requests[client.Request{Class: client.Read, Ending: client.Refused}] != 0 {
		t.Errorf("waits %v, requests %v", s.Waits, s.Requests)
	}
	if s.Remaining[identity] != 10 {
		t.Errorf("%d remain, want 10", s.Remaining[identity])
	}
}

// TestUnchangedAnswersAreFree checks that unchanged answers do not count against the limit.
func TestUnchangedAnswersAreFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{PerHour: 20})
	for range 50 {
		p, err := w.bot.Pull(w.ctx, repo, w.pr.Number())
		w.no(err)
		if p.Title != "Faster" {
			t.Fatalf("the title is %q", p.Title)
		}
	}
	w.no(w.pr.Edit("alice", "Faster still", "", ""))
	p, err := w.bot.Pull(w.ctx, repo, w.pr.Number())
	w.no(err)
	s := w.bot.Stats()
	if p.Title != "Faster still" || s.CacheHits != 49 || s.Waits[client.Primary] != 0 || s.CacheBytes == 0 {
		t.Errorf("%q, %d hits, waits %v", p.Title, s.CacheHits, s.Waits)
	}
}
