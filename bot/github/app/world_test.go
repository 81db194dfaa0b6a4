package app_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/app"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A screen can be read while it is written.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A delivery is a webhook as received.
type delivery struct {
	payload   []byte
	signature string
}

// A world is a GitHub, a receiver for the bot's webhooks, and options to create an App. Opening the
// browser passes its address to opened.
type world struct {
	*testing.T
	hub      *embedded.Server
	bot      *httptest.Server
	webhooks chan delivery
	out      *screen
	opened   chan string
	opt      app.Options
	seen     *strings.Builder // all pages so far
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, out: &screen{}, opened: make(chan string, 1), webhooks: make(chan delivery, 9), seen: &strings.Builder{}}
	w.bot = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/webhook" {
			t.Errorf("webhook to %s: %v", r.URL, err)
		}
		w.webhooks <- delivery{payload, r.Header.Get(github.SHA256SignatureHeader)}
	}))
	t.Cleanup(w.bot.Close)
	var err error
	w.hub, err = embedded.New(embedded.Options{Dir: t.TempDir()})
	w.no(err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := errors.Join(w.hub.Quiet(ctx), w.hub.Close()); err != nil {
			t.Error(err)
		}
	})
	drawn := 0
	w.opt = app.Options{
		URL: w.bot.URL, Name: "My Gate", Dir: filepath.Join(t.TempDir(), "etc", "kernelgate"), GitHub: w.hub.URL(), Host: "gatehost",
		Out: w.out, Random: func() string { drawn++; return fmt.Sprintf("DRAWN%d", drawn) }, TempDir: t.TempDir(),
		Open: func(address string) error { w.opened <- address; return nil },
	}
	return w
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start runs setup concurrently, and returns when the page is open.
func (w *world) start(ctx context.Context) (page string, result <-chan error) {
	w.Helper()
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, w.opt) }()
	select {
	case page = <-w.opened:
	case err := <-done:
		w.Fatalf("no page was opened: %v", err)
	}
	return page, done
}

// request is one step of a browser that does not follow redirects.
func (w *world) request(rq *http.Request) (*http.Response, string) {
	w.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Do(rq)
	w.no(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	w.no(err)
	fmt.Fprintln(w.seen, string(text))
	return answer, string(text)
}

func (w *world) get(address string) (*http.Response, string) {
	w.Helper()
	rq, err := http.NewRequest(http.MethodGet, address, nil)
	w.no(err)
	return w.request(rq)
}

var (
	stylePattern = regexp.MustCompile(`(?s)<style>.*</style>`)
	formPattern  = regexp.MustCompile(`<form method="post" action="([^"]+)">`)
	fieldPattern = regexp.MustCompile(`<input type="hidden" name="manifest" value="([^"]+)">`)
)

// press submits the form of the page's button, and returns the URL to which GitHub redirects.
func (w *world) press(page string) string {
	w.Helper()
	_, text := w.get(page)
	form, field := formPattern.FindStringSubmatch(text), fieldPattern.FindStringSubmatch(text)
	if form == nil || field == nil {
		w.Fatalf("the page has no form:\n%s", text)
	}
	body := url.Values{"manifest": {html.UnescapeString(field[1])}}.Encode()
	rq, err := http.NewRequest(http.MethodPost, html.UnescapeString(form[1]), strings.NewReader(body))
	w.no(err)
	rq.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, text := w.request(rq)
	if answer.StatusCode != http.StatusFound {
		w.Fatalf("GitHub answers %s: %s", answer.Status, text)
	}
	return answer.Header.Get("Location")
}

// files returns the names of the files in the folder.
func (w *world) files() []string {
	w.Helper()
	entries, err := os.ReadDir(w.opt.Dir)
	if !errors.Is(err, os.ErrNotExist) {
		w.no(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (w *world) read(name string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.opt.Dir, name))
	w.no(err)
	return string(text)
}

// golden compares the parts that are the same in every run.
func (w *world) golden(name, got, host string) {
	w.Helper()
	pairs := []string{w.hub.URL(), "https://github.test", strings.TrimPrefix(w.hub.URL(), "http://"), "github.test", w.bot.URL, "https://gate.example.com", w.opt.Dir, "/etc/kernelgate"}
	if host != "" {
		pairs = append(pairs, host, "127.0.0.1:PORT", host[strings.LastIndex(host, ":")+1:]+":", "PORT:")
	}
	got = stylePattern.ReplaceAllString(strings.NewReplacer(pairs...).Replace(got), "<style>…</style>")
	file := filepath.Join("testdata", name)
	if *update {
		w.no(os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	w.no(err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		w.Errorf("%s (run with -update to accept):\n%s", file, diff)
	}
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
