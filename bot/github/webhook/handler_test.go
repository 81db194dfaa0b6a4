package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

const id = "72d3162e-cc78-11e3-81ab-4c9367dc0958"

var (
	secret   = []byte("It's a Secret to Everybody")
	body     = []byte(`{"zen":"not { JSON"`) // the handler must not care
	received = time.Date(2026, 3, 3, 10, 0, 0, 0, time.UTC)
)

// A site is a handler behind a real server, and what it stored and logged.
type site struct {
	*httptest.Server
	mu     sync.Mutex
	stored []webhook.Delivery
	log    bytes.Buffer
}

func start(t testing.TB, change func(*webhook.Handler)) *site {
	t.Helper()
	s := &site{}
	h := &webhook.Handler{
		Secrets: [][]byte{secret},
		Now:     func() time.Time { return received },
		Log:     slog.New(slog.NewTextHandler(&s.log, nil)),
		Store: func(_ context.Context, d webhook.Delivery) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.stored = append(s.stored, d)
			return nil
		},
	}
	if change != nil {
		change(h)
	}
	s.Server = httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// post is a request as GitHub makes it.
func post(t testing.TB, url string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", "pull_request")
	r.Header.Set("X-GitHub-Delivery", id)
	r.Header.Set("X-Hub-Signature-256", webhook.Sign(secret, body))
	return r
}

// send closes the connection after the answer: some requests are refused with
// their bodies unread.
func (s *site) send(t testing.TB, r *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// The example that GitHub's documentation gives to check an implementation by.
func TestSign(t *testing.T) {
	const want = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	if got := webhook.Sign([]byte("It's a Secret to Everybody"), []byte("Hello, World!")); got != want {
		t.Errorf("got %s", got)
	}
}

func TestHandler(t *testing.T) {
	set := func(key, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(key, value) }
	}
	del := func(key string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Del(key) }
	}
	form := []byte(url.Values{"payload": {`{"a": "b&c=ü"}`}}.Encode())
	asForm := func(form []byte) func(*http.Request) {
		return func(r *http.Request) {
			*r = *post(t, r.URL.String(), form)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	tests := []struct {
		name    string
		request func(*http.Request)
		handler func(*webhook.Handler)
		status  int
		answer  string
		stored  string // the body
	}{
		{"accepted", nil, nil, 202, "accepted", string(body)},
		{"charset", set("Content-Type", "application/json; charset=utf-8"), nil, 202, "accepted", string(body)},
		{"form", asForm(form), nil, 202, "accepted", `{"a": "b&c=ü"}`},
		{"form without a payload", asForm([]byte("load=x")), nil, 400, "the form has no single payload", ""},
		{"form with two payloads", asForm([]byte("payload=x&payload=y")), nil, 400, "the form has no single payload", ""},
		{"form that is none", asForm([]byte("payload=%zz")), nil, 400, "the form has no single payload", ""},
		{"capital digits", set("X-Hub-Signature-256", "sha256="+strings.ToUpper(webhook.Sign(secret, body)[7:])), nil, 202, "accepted", string(body)},
		{"second secret", nil, func(h *webhook.Handler) { h.Secrets = [][]byte{[]byte("new"), secret} }, 202, "accepted", string(body)},
		{"first secret", nil, func(h *webhook.Handler) { h.Secrets = [][]byte{secret, []byte("old")} }, 202, "accepted", string(body)},
		{"just small enough", nil, func(h *webhook.Handler) { h.MaxBytes = int64(len(body)) }, 202, "accepted", string(body)},
		{"ping", set("X-GitHub-Event", "ping"), nil, 200, "pong", ""},
		{"ping without a secret", set("X-GitHub-Event", "ping"), func(h *webhook.Handler) { h.Secrets = nil }, 401, "unauthorized", ""},

		{"GET", func(r *http.Request) { r.Method = http.MethodGet }, nil, 405, "GitHub sends POST", ""},
		{"no content type", del("Content-Type"), nil, 415, "set the hook's content type to application/json", ""},
		{"text", set("Content-Type", "text/plain"), nil, 415, "set the hook's content type to application/json", ""},
		{"compressed", set("Content-Encoding", "gzip"), nil, 415, "set the hook's content type to application/json", ""},
		{"no event", del("X-GitHub-Event"), nil, 400, "X-GitHub-Event is missing or strange", ""},
		{"strange event", set("X-GitHub-Event", "pull request"), nil, 400, "X-GitHub-Event is missing or strange", ""},
		{"no delivery", del("X-GitHub-Delivery"), nil, 400, "X-GitHub-Delivery is missing or strange", ""},
		{"strange delivery", set("X-GitHub-Delivery", "../x"), nil, 400, "X-GitHub-Delivery is missing or strange", ""},
		{"long delivery", set("X-GitHub-Delivery", strings.Repeat("a", 65)), nil, 400, "X-GitHub-Delivery is missing or strange", ""},
		{"two deliveries", func(r *http.Request) { r.Header.Add("X-GitHub-Delivery", "b") }, nil, 400, "X-GitHub-Delivery is missing or strange", ""},
		{"no signature", del("X-Hub-Signature-256"), nil, 401, "unauthorized", ""},
		{"old signature", set("X-Hub-Signature-256", "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6"), nil, 401, "unauthorized", ""},
		{"cut signature", set("X-Hub-Signature-256", webhook.Sign(secret, body)[:70]), nil, 401, "unauthorized", ""},
		{"two signatures", func(r *http.Request) { r.Header.Add("X-Hub-Signature-256", webhook.Sign(secret, body)) }, nil, 401, "unauthorized", ""},
		{"another secret", set("X-Hub-Signature-256", webhook.Sign([]byte("guess"), body)), nil, 401, "unauthorized", ""},
		{"another body", set("X-Hub-Signature-256", webhook.Sign(secret, []byte("{}"))), nil, 401, "unauthorized", ""},
		{"empty secret", set("X-Hub-Signature-256", webhook.Sign(nil, body)), func(h *webhook.Handler) { h.Secrets = [][]byte{{}, secret} }, 401, "unauthorized", ""},
		{"no secrets", nil, func(h *webhook.Handler) { h.Secrets = nil }, 401, "unauthorized", ""},
		{"too large", nil, func(h *webhook.Handler) { h.MaxBytes = int64(len(body)) - 1 }, 413, "the body is too large", ""},
		{"too large, length not told", func(r *http.Request) { r.ContentLength = -1 }, func(h *webhook.Handler) { h.MaxBytes = int64(len(body)) - 1 }, 413, "the body is too large", ""},
		{"not stored", nil, func(h *webhook.Handler) {
			h.Store = func(context.Context, webhook.Delivery) error { return errors.New("disk full") }
		}, 503, "not stored; redeliver later", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, test.handler)
			r := post(t, s.URL, body)
			if test.request != nil {
				test.request(r)
			}
			resp, answer := s.send(t, r)
			s.Close()
			if resp.StatusCode != test.status || answer != test.answer+"\n" {
				t.Errorf("answered %d %q", resp.StatusCode, answer)
			}
			if (resp.StatusCode == 503) != (resp.Header.Get("Retry-After") == "30") || (resp.StatusCode == 405) != (resp.Header.Get("Allow") == "POST") {
				t.Errorf("answered with %v", resp.Header)
			}
			var want []webhook.Delivery
			if test.stored != "" {
				want = []webhook.Delivery{{ID: id, Event: "pull_request", Received: received, Body: []byte(test.stored)}}
			}
			if diff := cmp.Diff(want, s.stored); diff != "" {
				t.Errorf("stored -want +got:\n%s", diff)
			}
			log := s.log.String()
			if log == "" {
				t.Error("nothing was logged")
			}
			for _, private := range []string{string(secret), "zen", "../x", webhook.Sign(secret, body)[7:]} {
				if strings.Contains(log, private) {
					t.Errorf("the log holds %q: %s", private, log)
				}
			}
		})
	}
}

// GitHub need not send again what nobody would read.
func TestStoreMayLeaveOut(t *testing.T) {
	s := start(t, func(h *webhook.Handler) {
		h.Store = func(context.Context, webhook.Delivery) error {
			return fmt.Errorf("another App's: %w", webhook.ErrNotUsed)
		}
	})
	defer s.Close()
	if resp, answer := s.send(t, post(t, s.URL, body)); resp.StatusCode != 202 || answer != "not used\n" {
		t.Errorf("answered %d %q", resp.StatusCode, answer)
	}
}

// GitHub hears that a delivery was accepted when it is stored and not before.
func TestAnswerWaitsForStore(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := start(t, func(h *webhook.Handler) {
		h.Store = func(context.Context, webhook.Delivery) error {
			close(entered)
			<-release
			return nil
		}
	})
	answered := make(chan int, 1)
	r := post(t, s.URL, body)
	go func() {
		resp, err := s.Client().Do(r)
		if err != nil {
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	<-entered
	select {
	case status := <-answered:
		t.Errorf("answered %d before Store returned", status)
	default:
	}
	close(release)
	if status := <-answered; status != 202 {
		t.Errorf("answered %d", status)
	}
}

// A caller that hangs up is no reason to go on storing.
func TestStoreHearsOfHangUp(t *testing.T) {
	entered, ended := make(chan struct{}), make(chan error, 1)
	s := start(t, func(h *webhook.Handler) {
		h.Store = func(ctx context.Context, _ webhook.Delivery) error {
			close(entered)
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}
	})
	ctx, hangUp := context.WithCancel(t.Context())
	go func() {
		<-entered
		hangUp()
	}()
	if _, err := s.Client().Do(post(t, s.URL, body).WithContext(ctx)); err == nil {
		t.Error("answered nevertheless")
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Store's context ended with %v", err)
	}
}

// GitHub's own payloads come through unchanged, if anybody reads them. Others are left out, and GitHub is told that all is
// well.
func TestHandlerTakesExamples(t *testing.T) {
	list := readExamples(t, sources(t)["api.github.com"])
	s := start(t, nil)
	sent := 0
	for _, event := range list {
		body := []byte(event.Examples[0])
		r := post(t, s.URL, body)
		r.Header.Set("X-GitHub-Event", event.Name)
		resp, answer := s.send(t, r)
		if event.Name == "ping" {
			if resp.StatusCode != 200 {
				t.Errorf("ping: %d %s", resp.StatusCode, answer)
			}
			continue
		}
		if !webhook.Used(event.Name) {
			if resp.StatusCode != 202 || len(s.stored) != sent {
				t.Errorf("%s, which nobody reads: %d %s", event.Name, resp.StatusCode, answer)
			}
			continue
		}
		sent++
		if resp.StatusCode != 202 || len(s.stored) != sent {
			t.Fatalf("%s: %d %s", event.Name, resp.StatusCode, answer)
		}
		if last := s.stored[sent-1]; last.Event != event.Name || !bytes.Equal(last.Body, body) {
			t.Errorf("%s came as %s with %d bytes of %d", event.Name, last.Event, len(last.Body), len(body))
		}
	}
	if sent < 10 {
		t.Errorf("only %d events were stored", sent)
	}
}

// The event's name is not signed. Only the names that GitHub sends and kernelgate uses are stored.
func TestHandlerStoresKnownEvents(t *testing.T) {
	for event, stored := range map[string]bool{"pull_request": true, "push": true, "kernelgate_in_flight": false, "star": false, "anything": false} {
		s := start(t, nil)
		r := post(t, s.URL, body)
		r.Header.Set("X-GitHub-Event", event)
		if resp, answer := s.send(t, r); resp.StatusCode != 202 || (len(s.stored) == 1) != stored {
			t.Errorf("%s: %d %s, %d stored", event, resp.StatusCode, answer, len(s.stored))
		}
	}
}
