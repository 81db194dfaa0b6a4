package webhook_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

var events = []string{"pull_request", "issue_comment", "pull_request_review", "pull_request_review_comment", "merge_group", "check_run", "check_suite",
	"push", "repository", "installation", "installation_repositories", "installation_target", "ping", "star"}

// Whatever a body holds, Decode gives an event whose commit ids are commit ids,
// or an error, and never both.
func FuzzDecode(f *testing.F) {
	for name := range payloads {
		event, body := read(f, name)
		f.Add(event, body)
	}
	for _, event := range events {
		f.Add(event, []byte(`{"action":"created","installation":{"id":1},"repositories":[{}],"pull_request":[null,{"a":1e9}]}`))
		f.Add(event, []byte(`{"a":[{"b":[`))
	}
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		got, err := webhook.Decode(event, body)
		if (got == nil) != (err != nil) {
			t.Fatalf("got %#v, %v", got, err)
		}
		checkWeight(t, got, err)
		var commits []string
		switch e := got.(type) {
		case webhook.PullRequest:
			commits = []string{e.HeadSHA}
		case webhook.Review:
			commits = []string{e.HeadSHA}
		case webhook.MergeGroup:
			commits = []string{e.HeadSHA, e.BaseSHA}
		case webhook.CheckRun:
			commits = []string{e.HeadSHA}
		case webhook.CheckSuite:
			commits = []string{e.HeadSHA}
		case webhook.Push:
			commits = []string{e.Before, e.After}
		}
		for _, commit := range commits {
			if len(commit) != 40 && len(commit) != 64 || bytes.ContainsFunc([]byte(commit), func(r rune) bool { return r < '0' || r > 'f' }) {
				t.Fatalf("commit %q in %#v", commit, got)
			}
		}
	})
}

// Whatever is posted, it is stored as it came if and only if the answer is 202,
// and that takes the secret.
func FuzzHandler(f *testing.F) {
	stored := make(chan webhook.Delivery, 1)
	s := start(f, func(h *webhook.Handler) {
		h.Log = nil
		h.MaxBytes = 1 << 10
		h.Store = func(_ context.Context, d webhook.Delivery) error { stored <- d; return nil }
	})
	f.Add("application/json", "push", id, "", true, body)
	f.Add("application/json", "push", id, webhook.Sign(nil, body), false, body)
	f.Add("application/x-www-form-urlencoded", "ping", id, "", true, []byte("payload=%7B%7D"))
	f.Add("application/x-www-form-urlencoded", "push", "a b", "sha256=", false, []byte("payload=%7B%7D"))
	f.Add("application/x-www-form-urlencoded", "push ", id+"\t", "", true, []byte("payload=%7B%7D"))
	f.Add("text/plain", "", "", "sha1=00", false, bytes.Repeat([]byte("x"), 1025))
	f.Fuzz(func(t *testing.T, contentType, event, delivery, signature string, sign bool, body []byte) {
		r := post(t, s.URL, body)
		if sign {
			signature = webhook.Sign(secret, body)
		}
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("X-GitHub-Event", event)
		r.Header.Set("X-GitHub-Delivery", delivery)
		r.Header.Set("X-Hub-Signature-256", signature)
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Skip("net/http sends no such header")
		}
		resp.Body.Close()
		select {
		case d := <-stored:
			sent := func(header string) string { return strings.Trim(header, " \t") } // HTTP has no blanks around a value
			if resp.StatusCode != http.StatusAccepted || !sign || d.ID != sent(delivery) || d.Event != sent(event) {
				t.Fatalf("answered %d and stored %+v", resp.StatusCode, d)
			}
			if contentType == "application/json" && !bytes.Equal(d.Body, body) {
				t.Fatalf("stored %q for %q", d.Body, body)
			}
		default:
			if resp.StatusCode == http.StatusAccepted || resp.StatusCode >= 500 {
				t.Fatalf("answered %d and stored nothing", resp.StatusCode)
			}
		}
	})
}
