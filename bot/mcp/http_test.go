package mcp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/kernelgate/kernelgate/bot/mcp"
	"github.com/kernelgate/kernelgate/bot/submission"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

var twoTokens = mcp.Tokens{"ann": {Secret: "the token of ann"}, "bob": {Secret: "the token of bob"}}

// serve serves a repository over HTTP. Nothing is measured unless working.
func serve(t *testing.T, working bool) string {
	t.Helper()
	dir, _ := attention(t)
	s, err := submission.Open(t.Context(), check.Options{Dir: dir, Base: "main", Now: time.Now, Config: measure.Config{Runner: measure.Auto}}, nil)
	no(t, err)
	server := httptest.NewServer(mcp.NewHandler(s, func() mcp.Tokens { return twoTokens }, "test", nil))
	ctx, end := context.WithCancel(context.Background())
	worked := make(chan error, 1)
	go func() {
		if !working {
			worked <- nil
			return
		}
		worked <- s.Run(ctx)
	}()
	t.Cleanup(func() {
		server.Close()
		end()
		no(t, <-worked, s.Close())
	})
	return server.URL
}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// as connects the SDK's client over HTTP.
func as(t *testing.T, url, token string) *agent {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "script", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true}, nil)
	no(t, err)
	t.Cleanup(func() { session.Close() })
	return &agent{t: t, session: session}
}

// TestOwnersAreApart has two owners of tokens use one server. Neither finds the other's submissions,
// and without a token there is nothing.
func TestOwnersAreApart(t *testing.T) {
	url := serve(t, false)
	ann, bob := as(t, url, twoTokens["ann"].Secret), as(t, url, twoTokens["bob"].Secret)
	asked := map[string]any{"kernel": "sdpa_cpu", "files": map[string]string{"sdpa.c": "int x;\n"}, "intent": "claim"}
	first, second := ann.call("submit", asked, nil), bob.call("submit", asked, nil)
	handle := func(r *sdk.CallToolResult) string {
		t.Helper()
		s, ok := r.StructuredContent.(map[string]any)
		if !ok || r.IsError {
			t.Fatalf("%+v", r)
		}
		return s["handle"].(string)
	}
	if handle(first) == handle(second) {
		t.Error("two owners share a submission")
	}
	for _, tool := range []string{"status", "verdict", "why"} {
		if r := bob.call(tool, map[string]any{"handle": handle(first)}, nil); !r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "there is no submission") {
			t.Errorf("%s of another's submission: %+v", tool, r.Content[0])
		}
	}
	for _, what := range []string{"report", "log"} {
		if _, err := bob.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: submission.URI(handle(first), what)}); err == nil {
			t.Errorf("another's %s can be read", what)
		}
	}
	if r := ann.call("history", nil, nil); strings.Contains(r.Content[0].(*sdk.TextContent).Text, handle(second)) {
		t.Error("the history has another's submission")
	}
	for _, header := range []string{"", "Bearer ", "Bearer x", "the token of ann", "Basic the token of ann"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		no(t, err)
		r.Header.Set("Authorization", header)
		answer, err := http.DefaultClient.Do(r)
		no(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("with %q: %s", header, answer.Status)
		}
	}
}

// TestPythonClient runs the Python client against a real server.
func TestPythonClient(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	url := serve(t, true)
	source, err := filepath.Abs("python/src")
	no(t, err)
	cmd := exec.CommandContext(t.Context(), python, "-B", "testdata/client.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+source, "KERNELGATE_URL="+url, "KERNELGATE_TOKEN="+twoTokens["ann"].Secret)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "fine") {
		t.Fatalf("%v:\n%s", err, out)
	}
}

// A changing service has no answer at first.
type changing struct {
	mcp.Service
	asked int
}

func (c *changing) History(context.Context, string, string) (*submission.History, error) {
	if c.asked++; c.asked == 1 {
		return nil, fmt.Errorf("listing: %w", submission.ErrNotLeading)
	}
	return &submission.History{Tried: []submission.Tried{}}, nil
}

// While the leader changes, the Python client asks again: after 503, after a connection that breaks, and after an answer that
// says so, which is marked for programs.
func TestPythonClientAsksAgain(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	handler, requests, marked := mcp.NewHandler(&changing{}, func() mcp.Tokens { return twoTokens }, "test", slog.New(slog.DiscardHandler)), 0, 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch requests++; requests {
		case 1:
			http.Error(w, "this bot is on standby", http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler)
		default:
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, r)
			marked += strings.Count(answer.Body.String(), `"kernelgate/ask-again":true`)
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			_, _ = w.Write(answer.Body.Bytes())
		}
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer srv.Close()
	source, err := filepath.Abs("python/src")
	no(t, err)
	cmd := exec.CommandContext(t.Context(), python, "-B", "-c", "import kernelgate; print(kernelgate.Client().history())")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+source, "KERNELGATE_URL="+srv.URL, "KERNELGATE_TOKEN="+twoTokens["ann"].Secret)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "[]\n" {
		t.Errorf("%v:\n%s", err, out)
	}
	if requests != 4 || marked != 1 {
		t.Errorf("%d requests, %d of them marked", requests, marked)
	}
}

// A mistake in the file of tokens names its line.
func TestTokensFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	for text, want := range map[string]string{
		"# agents\n\nann 0123456789abcdef\nbob fedcba9876543210\n": "",
		"":                                  "has no tokens",
		"ann 0123456789abcdef\nbob short\n": "tokens:2: the token of bob has 5 characters",
		"ann\n":                             "tokens:1: a line has a name and a token",
		"a/b 0123456789abcdef\n":            "tokens:1: \"a/b\" is not a name",
		"ann 0123456789abcdef\nann 0123456789abcdeg\n":    "tokens:2: the name ann is there twice",
		"ann 0123456789abcdef\n#\nbob 0123456789abcdef\n": "tokens:3: ann and bob have the same token",
	} {
		no(t, os.WriteFile(file, []byte(text), 0o600))
		tokens, err := mcp.ReadTokens(file, false)
		switch {
		case want == "" && (err != nil || len(tokens) != 2):
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
