package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// A hookList is GitHub's list of deliveries that failed, ten a page, each page as slow as it is told to be.
type hookList struct {
	failed []client.Delivery // oldest first
	slow   time.Duration
	pages  int
	asked  []int64
	refuse error // of what is asked for
}

func (l *hookList) fail(guid, event, action string) {
	l.failed = append(l.failed, client.Delivery{ID: int64(len(l.failed) + 1), GUID: guid, Event: event, Action: action, At: time.Now(), StatusCode: 502})
}

func (l *hookList) FailedDeliveries(ctx context.Context, cursor string) ([]client.Delivery, string, error) {
	select {
	case <-time.After(l.slow):
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	l.pages++
	end := len(l.failed)
	if cursor != "" {
		var err error
		if end, err = strconv.Atoi(cursor); err != nil {
			return nil, "", err
		}
	}
	first := max(end-10, 0)
	page := slices.Clone(l.failed[first:end])
	slices.Reverse(page)
	if first == 0 {
		return page, "", nil
	}
	return page, strconv.Itoa(first), nil
}

func (l *hookList) Redeliver(_ context.Context, id int64) error {
	if l.refuse == nil {
		l.asked = append(l.asked, id)
	}
	return l.refuse
}

// redeliveries runs a test in a time that passes when all wait.
func redeliveries(t *testing.T, test func(t *testing.T, l *hookList, r *redeliverer, log *bytes.Buffer, stored map[string]bool)) {
	synctest.Test(t, func(t *testing.T) {
		l, log, stored := &hookList{}, &bytes.Buffer{}, map[string]bool{}
		test(t, l, &redeliverer{hooks: l, now: time.Now, log: slog.New(slog.NewTextHandler(log, nil)), asked: newLRU[string, ask](cacheSize),
			stored: func(_ context.Context, _, guid string) (bool, error) { return stored[guid], nil }}, log, stored)
	})
}

// Each failure is asked for once, oldest first, and a later pass lists what is new and no more.
func TestRedeliveryStopsAtWhatWasSeen(t *testing.T) {
	redeliveries(t, func(t *testing.T, l *hookList, r *redeliverer, _ *bytes.Buffer, stored map[string]bool) {
		for i := range 45 {
			l.fail(fmt.Sprint("old", i), "push", "")
			time.Sleep(time.Hour)
		}
		stored["old3"] = true // by a try that GitHub does not list as failed
		l.fail("other", "check_run", "completed")
		if err := r.pass(t.Context()); err != nil || l.pages != 5 || len(l.asked) != 44 || !slices.IsSorted(l.asked) || slices.Contains(l.asked, 4) || slices.Contains(l.asked, 46) {
			t.Errorf("%d pages, asked for %v: %v", l.pages, l.asked, err)
		}
		time.Sleep(2 * time.Hour)
		l.fail("new", "push", "")
		l.pages, l.asked = 0, nil
		for range 3 {
			if err := r.pass(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if l.pages != 3 || fmt.Sprint(l.asked) != "[47]" {
			t.Errorf("three more passes listed %d pages and asked for %v", l.pages, l.asked)
		}
	})
}

// A list that is slower than a pass goes on in the next one, and what was found is asked for in the meantime. The log says so.
func TestSlowDeliveryListGoesOn(t *testing.T) {
	redeliveries(t, func(t *testing.T, l *hookList, r *redeliverer, log *bytes.Buffer, _ map[string]bool) {
		for i := range 95 {
			l.fail(fmt.Sprint(i), "push", "")
			time.Sleep(30 * time.Minute)
		}
		l.slow = 18 * time.Second // three pages a minute
		var got []int
		for i := range 6 {
			err := r.pass(t.Context())
			if (err != nil) != (i < 4) {
				t.Errorf("pass %d: %v", i, err)
			}
			if said := strings.Contains(log.String(), "listing failed deliveries did not end"); said != (err != nil) {
				t.Errorf("pass %d is logged: %v\n%s", i, said, log)
			}
			log.Reset()
			got = append(got, len(l.asked))
		}
		if want := "[30 50 70 90 95 95]"; fmt.Sprint(got) != want { // of three pages one is for what is new
			t.Errorf("asked for %v after each pass, want %s", got, want)
		}
	})
}

// What GitHub cannot deliver is asked for three times, and then the log says that it is given up; so it does where GitHub
// refuses. What could not be asked for is asked for in the next pass.
func TestGivenUpDeliveriesAreLogged(t *testing.T) {
	redeliveries(t, func(t *testing.T, l *hookList, r *redeliverer, log *bytes.Buffer, _ map[string]bool) {
		for range 6 { // each redelivery fails again
			l.fail("a", "push", "")
			if err := r.pass(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Minute)
		}
		if n := strings.Count(log.String(), "given up"); len(l.asked) != maxRedeliveries || n != 3 || !strings.Contains(log.String(), "delivery=a event=push") {
			t.Errorf("asked for %v, given up %d times:\n%s", l.asked, n, log)
		}
		log.Reset()
		l.fail("b", "push", "")
		l.refuse = &client.Error{Op: "ask", Status: 502}
		_ = r.pass(t.Context())
		if len(r.waiting) != 1 || !strings.Contains(log.String(), "left to be asked for") {
			t.Errorf("%d wait:\n%s", len(r.waiting), log)
		}
		log.Reset()
		l.refuse = &client.Error{Op: "ask", Status: 404}
		_ = r.pass(t.Context())
		if len(r.waiting) != 0 || !strings.Contains(log.String(), "given up") {
			t.Errorf("%d wait:\n%s", len(r.waiting), log)
		}
	})
}

// What nobody reads is not stored.
func TestUnusedDeliveries(t *testing.T) {
	k := &Controller{Config: Config{GitHub: &client.GitHub{}}}
	said := func(body string, bot bool) webhook.Remark {
		return webhook.Remark{Body: body, Author: webhook.User{Login: "walt", Bot: bot}}
	}
	for name, c := range map[string]struct {
		event  webhook.Event
		unused bool
	}{
		"another App's check run":   {webhook.CheckRun{AppID: 7}, true},
		"another App's check suite": {webhook.CheckSuite{AppID: 7}, true},
		"an action that is unused":  {webhook.Ignored{}, true},
		"a command":                 {webhook.IssueComment{Remark: said("/rebench", false)}, false},
		"a remark":                  {webhook.IssueComment{Remark: said("looks good", false)}, true},
		"a bot's command":           {webhook.IssueComment{Remark: said("/rebench", true)}, true},
		"a remark on a line":        {webhook.ReviewComment{Remark: said("why?", false)}, true},
		"a command on a line":       {webhook.ReviewComment{Remark: said("/rebench", false)}, false},
		"a review without words":    {webhook.Review{}, false},
		"a push":                    {webhook.Push{}, false},
	} {
		if got := k.unused(c.event); got != c.unused {
			t.Errorf("%s is unused: %v", name, got)
		}
	}
}

// Store answers for what it leaves out, and a delivery that cannot be read is kept for whoever says so.
func TestStoreLeavesOutWhatNobodyReads(t *testing.T) {
	j, err := journal.Open(t.Context(), journal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	k := New(Config{Journal: j, GitHub: &client.GitHub{}})
	repository := `"repository": {"id": 1, "full_name": "o/r", "default_branch": "main"}, "sender": {"login": "walt", "type": "User"}`
	check := `{"action": "%s", "check_run": {"id": 5, "head_sha": "` + strings.Repeat("a", 40) + `", "app": {"id": 7}, "pull_requests": []}, ` + repository + `}`
	comment := `{"action": "created", "issue": {"number": 3, "state": "open", "pull_request": {}}, "comment": {"id": 9, "body": "%s", "user": {"login": "walt", "type": "User"}}, ` + repository + `}`
	for id, c := range map[string]struct {
		event, body string
		stored      bool
	}{
		"completed":   {"check_run", fmt.Sprintf(check, "completed"), false},
		"rerequested": {"check_run", fmt.Sprintf(check, "rerequested"), false},
		"remark":      {"issue_comment", fmt.Sprintf(comment, "nice"), false},
		"command":     {"issue_comment", fmt.Sprintf(comment, "/rebench"), true},
		"unreadable":  {"issue_comment", "{", true},
	} {
		err := k.Store(t.Context(), webhook.Delivery{ID: id, Event: c.event, Received: time.Now(), Body: []byte(c.body)})
		if stored, failed := j.Accepted(t.Context(), c.event, id); failed != nil || stored != c.stored || errors.Is(err, webhook.ErrNotUsed) == c.stored {
			t.Errorf("%s is stored: %v, %v; Store said %v", id, stored, failed, err)
		}
	}
	if n := k.Counts().Accepted; n != 2 {
		t.Errorf("%d are to be handled", n)
	}
}
