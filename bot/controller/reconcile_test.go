package controller

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// answers is GitHub as a function of the path that is asked for.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(rq *http.Request) (*http.Response, error) { return a(rq) }

func respond(rq *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: rq}
}

// A reconciliation that GitHub did not answer is none, and the log says why: also where the answer never came.
func TestReconciledSaysTheTruth(t *testing.T) {
	l, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	repo := func(rq *http.Request) (*http.Response, error) {
		return respond(rq, 200, `{"id": 7, "full_name": "o/a", "name": "a", "owner": {"login": "o"}}`), nil
	}
	never := func(rq *http.Request) (*http.Response, error) { <-rq.Context().Done(); return nil, rq.Context().Err() }
	for _, c := range []struct {
		name string
		a, b answers
		done bool
		log  string
	}{
		{"both answer", repo, repo, true, ""},
		{"one never answers", repo, never, false, "listing repositories failed"},
		{"none answers", never, never, false, "listing repositories failed"},
		{"one is refused", repo, func(rq *http.Request) (*http.Response, error) {
			return respond(rq, 404, `{"message": "Not Found"}`), nil
		}, true, "listing repositories failed"},
		{"all are refused", func(rq *http.Request) (*http.Response, error) {
			return respond(rq, 403, `{"message": "Forbidden"}`), nil
		},
			func(rq *http.Request) (*http.Response, error) {
				return respond(rq, 403, `{"message": "Forbidden"}`), nil
			}, false, "listing repositories failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a minute passes at once
				github := answers(func(rq *http.Request) (*http.Response, error) {
					if strings.HasSuffix(rq.URL.Path, "/o/a") {
						return c.a(rq)
					}
					return c.b(rq)
				})
				h, err := client.NewToken("x", client.Options{BaseURL: "http://github.invalid", Transport: github, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
				if err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				k := New(Config{GitHub: h, Ledger: l, Repositories: []string{"o/a", "o/b"}, Log: slog.New(slog.NewTextHandler(&log, nil))})
				k.resyncAll(t.Context())
				if done := !k.Counts().Reconciled.IsZero(); done != c.done {
					t.Errorf("reconciled is %v, want %v", done, c.done)
				}
				if got := log.String(); (got == "") != (c.log == "") || !strings.Contains(got, c.log) {
					t.Errorf("the log says %s", got)
				}
			})
		})
	}
}
