package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/publish"
)

// What GitHub does not show is written again within seconds at first, for minutes, and from
// then on as seldom as other refusals.
func TestPausesOfLag(t *testing.T) {
	refused := &client.Error{Op: "create a check run", Status: 422, Message: "No commit found for SHA: x"}
	for name, c := range map[string]struct {
		err         error
		soon, later string
	}{
		"lag":           {fmt.Errorf("%w: %w", publish.ErrNotVisible, refused), "[0s 1s 3s 7s 15s 31s 1m3s", " 12m7s"},
		"not found":     {&client.Error{Status: 404, Message: "Not Found"}, "[0s 1s 3s 7s 15s 31s 1m3s", " 12m7s"},
		"other refusal": {&client.Error{Status: 422, Message: "Validation Failed"}, "[0s 1m4s 3m12s", " 33m4s"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(context.Context, string, int) error { return c.err }, func(w *crew) {
				w.add("a/1")
				time.Sleep(time.Hour)
				if got := w.at("a/1"); !strings.HasPrefix(got, c.soon) || !strings.HasSuffix(strings.TrimSuffix(got, "]"), c.later) {
					t.Errorf("tried at %s, want %s … %s", got, c.soon, c.later)
				}
			})
		})
	}
}

// replicas is a controller that knows nothing, and its clock.
func replicas() (*Controller, *time.Time) {
	now := time.Unix(1e9, 0)
	return New(Config{Now: func() time.Time { return now }, GitHub: &client.GitHub{}}), &now
}

// An answer and a delivery of the same second that differ are compared again a few times; of
// two seconds, the later one counts.
func TestDoubtsAboutAnAnswer(t *testing.T) {
	k, now := replicas()
	id := change.ID{Kind: change.Pull, Repo: 1, Number: 7}
	told := change.Facts{Open: true, Head: "new", Base: "main", Labels: []string{"b", "a"}, Updated: *now}
	old, same, newer := told, told, told
	old.Head, same.Labels, same.Rules = "old", []string{"a", "b"}, "rules"
	newer.Head, newer.Updated = "newer", now.Add(time.Second)
	for name, answer := range map[string]change.Facts{"the same": same, "newer": newer} {
		k.recordConflict(id, told, answer)
		if _, doubtful := k.recheckConflict(id); doubtful {
			t.Errorf("%s: there is a doubt", name)
		}
	}
	var pauses []time.Duration
	for {
		k.recordConflict(id, told, old)
		due, doubtful := k.recheckConflict(id)
		if !doubtful {
			break
		}
		if k.isStale(id) {
			t.Fatal("it is refreshed before that is due")
		}
		pauses = append(pauses, due.Sub(*now))
		*now = due
		if _, doubtful := k.recheckConflict(id); !doubtful || !k.isStale(id) {
			t.Fatal("it is due and not refreshed")
		}
		delete(k.stale, id)
	}
	if got := fmt.Sprint(pauses); got != "[1s 2s 4s 8s 16s]" {
		t.Errorf("looked after %s", got)
	}
	k.recordConflict(id, told, old)
	k.recordConflict(id, told, same)
	if _, doubtful := k.recheckConflict(id); doubtful {
		t.Error("there is a doubt about an answer that agrees")
	}
}

// A branch that git shows as it was before a push is looked at again.
func TestBranchFromBeforeAPush(t *testing.T) {
	zeros := strings.Repeat("0", 40)
	for name, c := range map[string]struct {
		push webhook.Push
		old  string
		tips []string
	}{
		"moved":   {webhook.Push{Before: "a", After: "b"}, "a", []string{"b", "c", ""}},
		"made":    {webhook.Push{Before: zeros, After: "b"}, "", []string{"b", "c"}},
		"deleted": {webhook.Push{Before: "a", After: zeros}, "a", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, tip := range c.tips {
				k, now := replicas()
				at := resyncTarget{repo: 1, branch: "main"}
				k.markPushed(at, c.push)
				if due, old := k.staleTip(at, c.old); !old || due.Sub(*now) != time.Second {
					t.Errorf("%q is not looked at again, or after %v", c.old, due.Sub(*now))
				}
				if _, old := k.staleTip(at, tip); old {
					t.Errorf("%q is looked at again", tip)
				}
				if _, old := k.staleTip(at, c.old); old {
					t.Error("what was seen after the push is looked at again")
				}
			}
			k, _ := replicas()
			at, n := resyncTarget{repo: 1, branch: "main"}, 0
			for k.markPushed(at, c.push); n < 100; n++ {
				if _, old := k.staleTip(at, c.old); !old {
					break
				}
			}
			if n != maxChecks {
				t.Errorf("looked at again %d times, want %d", n, maxChecks)
			}
		})
	}
}
