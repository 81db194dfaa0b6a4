package client_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// testKey is generated once, because generating RSA keys is slow under the race detector.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

const repo = "alice/kernels"

// A clock stands still until a test advances it or code sleeps.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.slept = c.now.Add(d), c.slept+d
	return ctx.Err()
}

// A recorder counts the requests that are sent.
type recorder struct {
	mu   sync.Mutex
	seen map[string]int // by method and path, without numbers
	last string         // the Authorization header of the newest request
	next http.RoundTripper
}

func (r *recorder) RoundTrip(rq *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.seen[rq.Method+" "+strings.TrimPrefix(rq.URL.Path, "/api/v3")]++
	r.last = rq.Header.Get("Authorization")
	r.mu.Unlock()
	return r.next.RoundTrip(rq)
}

func (r *recorder) auth() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *recorder) count(part string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for call, times := range r.seen {
		if strings.Contains(call, part) {
			n += times
		}
	}
	return n
}

// A world is a GitHub with alice's repository, an App installed in it, one open pull request, and
// the App's client.
type world struct {
	*testing.T
	ctx   context.Context
	clock *clock
	wire  *recorder
	hub   *embedded.Server
	app   *embedded.App
	inst  *embedded.Installation
	repo  *embedded.Repo
	pr    *embedded.PR
	bot   *client.GitHub
}

func newWorld(t *testing.T, opt client.Options, limits embedded.Limits) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), clock: &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
	// Each test has its own connections, because tests break them.
	pool := &http.Transport{}
	t.Cleanup(pool.CloseIdleConnections)
	w.wire = &recorder{seen: map[string]int{}, next: pool}
	var err error
	w.hub, err = embedded.New(embedded.Options{Dir: t.TempDir(), Clock: w.clock.Now, Seed: 7, Limits: limits, RetargetPulls: true})
	w.no(err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := errors.Join(w.hub.Quiet(ctx), w.hub.Close()); err != nil {
			t.Error(err)
		}
	})
	key, err := testKey()
	w.no(err)
	w.app, err = w.hub.CreateApp(embedded.AppOptions{Slug: "kernelgate", Key: key})
	w.no(err)
	w.repo, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "kernels"})
	w.no(err)
	w.inst, err = w.app.Install(w.repo)
	w.no(err)
	_, err = w.repo.Push("main", map[string]string{"a.cu": "one\n"}, "first")
	w.no(err)
	_, err = w.repo.Push("faster", map[string]string{"a.cu": "two\n"}, "faster")
	w.no(err)
	w.pr, err = w.repo.OpenPR(embedded.PROptions{Title: "Faster", Head: "faster", Labels: []string{"optimisation"}})
	w.no(err)
	w.bot = w.newApp(opt)
	return w
}

func (w *world) options(opt client.Options) client.Options {
	opt.BaseURL, opt.Now, opt.Sleep = w.hub.URL(), w.clock.Now, w.clock.Sleep
	if opt.Transport == nil {
		opt.Transport = w.wire
	}
	return opt
}

func (w *world) newApp(opt client.Options) *client.GitHub {
	w.Helper()
	h, err := client.NewApp(w.app.ID(), w.app.PrivateKeyPEM(), w.options(opt))
	w.no(err)
	return h
}

func (w *world) newToken(token string, opt client.Options) *client.GitHub {
	w.Helper()
	h, err := client.NewToken(token, w.options(opt))
	w.no(err)
	return h
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// refusal returns err as an Error with this status.
func (w *world) refusal(err error, status int) *client.Error {
	w.Helper()
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Status != status {
		w.Fatalf("got %v, want status %d", err, status)
	}
	return e
}
