package embedded_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

func TestFailedDeliveryIsSentAgainWithTheSameID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	w.quiet()
	w.hooks.answer(http.StatusServiceUnavailable)
	w.opened()
	w.quiet()
	w.hooks.answer(http.StatusAccepted)
	before := w.hooks.all()

	key, err := testKey()
	w.no(err)
	app := w.client(w.jwt(key, 5*time.Minute))
	var failed []*github.HookDelivery
	opt := &github.ListCursorOptions{PerPage: 2}
	for {
		page, answer, err := app.Apps.ListHookDeliveries(w.ctx, opt)
		w.no(err)
		for _, d := range page {
			if d.GetStatusCode() >= 400 {
				failed = append(failed, d)
			}
		}
		if answer.Cursor == "" {
			break
		}
		opt.Cursor = answer.Cursor
	}
	if len(failed) != 3 || failed[0].GetEvent() != "pull_request" || failed[0].GetAction() != "opened" || failed[0].GetRepositoryID() != w.repo.ID() {
		t.Fatalf("failed deliveries: %v", failed)
	}
	// GitHub answers 202, which the client reports as a special error.
	if _, _, err := app.Apps.RedeliverHookDelivery(w.ctx, failed[0].GetID()); !isAccepted(err) {
		t.Fatal(err)
	}
	w.quiet()
	after := w.hooks.all()
	if len(after) != len(before)+1 {
		t.Fatalf("%d webhooks before, %d after", len(before), len(after))
	}
	again := after[len(after)-1]
	if again.guid != failed[0].GetGUID() || again.event != "pull_request" || again.payload.(*github.PullRequestEvent).GetNumber() != 1 {
		t.Errorf("redelivered %s as %s", failed[0].GetGUID(), again.guid)
	}
	newest := w.app.Hook().Deliveries()[0]
	if !newest.Redelivery || newest.StatusCode != http.StatusAccepted || newest.GUID != again.guid {
		t.Errorf("newest delivery: %+v", newest)
	}
	w.clock.Advance(73 * time.Hour)
	if w.app.Hook().Redeliver(newest.ID) == nil {
		t.Error("a delivery could be sent again after three days")
	}
}

func isAccepted(err error) bool {
	_, ok := err.(*github.AcceptedError)
	return err == nil || ok
}

func TestUnrulyDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	w.quiet()
	start := len(w.hooks.all())
	talk := func(n int) {
		for range n {
			_, err := pr.Comment("alice", "hello")
			w.no(err)
		}
	}
	ids := func() []int64 {
		var out []int64
		for _, e := range w.hooks.all()[start:] {
			out = append(out, e.payload.(*github.IssueCommentEvent).Comment.GetID())
		}
		start = len(w.hooks.all())
		return out
	}
	w.hub.SetDelivery(embedded.Unruly{Shuffle: true, Hold: true})
	talk(20)
	w.hub.SetDelivery(embedded.Unruly{Shuffle: true})
	w.quiet()
	if got := ids(); len(got) != 20 || slices.IsSorted(got) {
		t.Errorf("shuffled: %v", got)
	}
	w.hub.SetDelivery(embedded.Unruly{Duplicate: 1})
	talk(3)
	w.quiet()
	if got := ids(); len(got) != 6 || got[0] != got[1] {
		t.Errorf("duplicated: %v", got)
	}
	listed := len(w.app.Hook().Deliveries())
	w.hub.SetDelivery(embedded.Unruly{Vanish: 1})
	talk(2)
	w.hub.SetDelivery(embedded.Unruly{Fail: 1})
	talk(1)
	w.hub.SetDelivery(embedded.Unruly{})
	talk(4)
	w.quiet()
	if got := ids(); len(got) != 4 || !slices.IsSorted(got) {
		t.Errorf("orderly again: %v", got)
	}
	if got := len(w.app.Hook().Deliveries()) - listed; got != 5 {
		t.Errorf("%d deliveries listed, want the failed one and four", got)
	}
}

func TestReceiverThatHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(hang.Close)
	t.Cleanup(func() { close(release) })
	hub, err := embedded.New(embedded.Options{Dir: t.TempDir(), HookTimeout: 30 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	key, err := testKey()
	if err != nil {
		t.Fatal(err)
	}
	app, err := hub.CreateApp(embedded.AppOptions{Slug: "kernelgate", Key: key, HookURL: hang.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Quiet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := app.Hook().Deliveries()[0]; d.Event != "ping" || d.Status != "timed out" {
		t.Errorf("delivery to a receiver that hangs: %+v", d)
	}
}

func TestRepositoryHookForBotsWithoutAnApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	own := newReceiver(t)
	hook := w.repo.CreateHook(own.URL, hookSecret, "pull_request")
	w.opened()
	w.quiet()
	if got := own.names(); !slices.Equal(got, []string{"ping", "pull_request.opened"}) {
		t.Errorf("events: %v", got)
	}
	if e := own.all()[1].payload.(*github.PullRequestEvent); e.Installation != nil {
		t.Error("a repository's hook names an installation")
	}
	deliveries := hook.Deliveries()
	if len(deliveries) != 2 {
		t.Errorf("%d deliveries", len(deliveries))
	}
	w.no(hook.Redeliver(deliveries[0].ID))
	w.quiet()
	if got := own.all(); len(got) != 3 || got[2].guid != deliveries[0].GUID {
		t.Errorf("redelivered %v", got)
	}
}

func TestPayloadsSendNulls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	w.opened()
	w.quiet()
	var payload struct {
		PullRequest map[string]json.RawMessage `json:"pull_request"`
	}
	for _, d := range w.app.Hook().Deliveries() {
		if d.Event == "pull_request" {
			w.no(json.Unmarshal(d.Payload, &payload))
		}
	}
	for field, want := range map[string]string{"merged_at": "null", "body": "null", "labels": "[]", "state": `"open"`} {
		if got := string(payload.PullRequest[field]); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
}
