// Package embedded implements a GitHub server for tests and demonstrations. It is a real HTTP
// server with users, git repositories, pull requests, checks, a merge queue and webhooks. It
// answers the API calls that the bot makes as GitHub would, including errors and rate limits. Go
// methods stand for the actions of people. It keeps everything except the git objects in memory. Of
// GraphQL it serves only the merge queue, and for people only plain pages and the form that creates
// an App from a manifest. Do not store real code in it.
package embedded

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// Options configures a hub. Only Dir is required.
type Options struct {
	Dir    string           // folder of the git repositories
	Clock  func() time.Time // for dates, expiry and limits; defaults to time.Now
	Seed   uint64           // for tokens, delivery ids and the draws of SetFaults and SetDelivery
	Limits Limits           // default to GitHub's

	Lag Lag // defaults to none

	// RetargetPulls makes the hub update the pull requests that target a deleted branch, as GitHub
	// does. If the branch's own pull request was merged, they move to the base of that one, and no
	// webhook is sent. Otherwise they are closed. Without RetargetPulls they stay unchanged, which
	// is their state at GitHub until it gets to them.
	RetargetPulls bool

	HookTimeout time.Duration // time limit for a webhook's receiver; defaults to 10 s

	// OnCheck is called after each write of a check run, with its commit. The hub's lock is held, so
	// OnCheck must not call the hub.
	OnCheck func(sha string, c Check)
}

// A Server is a running hub.
type Server struct {
	opt    Options
	url    string
	http   *http.Server
	client *http.Client
	stop   context.CancelFunc
	ctx    context.Context
	work   sync.WaitGroup

	// mu guards all fields below, and the fields of every App, Repo, PR and the like.
	mu      sync.Mutex
	changed chan struct{}
	begun   time.Time
	rand    *rand.Rand
	lastID  int64
	users   map[string]*account
	tokens  map[string]*token
	apps    []*App
	offers  map[string]*offer // by code
	repos   []*Repo
	meters  map[string]*meter
	running int
	faults  Faults
	lag     Lag
	slow    time.Duration // set by SetSlowDeliveryLists
	seen    map[string]uint64
	unruly  Unruly
	queues  map[string]*outbox
	pending int
}

// New starts a hub on a free port of the loopback address.
func New(opt Options) (*Server, error) {
	if opt.Dir == "" {
		return nil, errors.New("start a hub: no folder for its repositories; set Options.Dir")
	}
	if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start a hub in %s: %w", opt.Dir, err)
	}
	if opt.Clock == nil {
		opt.Clock = time.Now
	}
	opt.HookTimeout = cmp.Or(opt.HookTimeout, 10*time.Second)
	opt.Limits = opt.Limits.withDefaults()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a hub: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		opt: opt, url: "http://" + listener.Addr().String(), ctx: ctx, stop: stop,
		client:  &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		changed: make(chan struct{}),
		rand:    rand.New(rand.NewPCG(opt.Seed, 0x6b67)),
		lastID:  1000,
		users:   map[string]*account{}, tokens: map[string]*token{}, offers: map[string]*offer{}, meters: map[string]*meter{},
		lag: opt.Lag, seen: map[string]uint64{}, queues: map[string]*outbox{},
	}
	s.begun = s.now()
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 30 * time.Second}
	s.work.Go(func() { _ = s.http.Serve(listener) }) // ends with Close
	return s, nil
}

// URL returns the base URL of the API, the git repositories and the pages. The API is at the root,
// as on api.github.com, and under /api/v3/ and /api/graphql, as on GitHub Enterprise.
func (s *Server) URL() string { return s.url }

// Close stops the hub and waits for its deliveries to end.
func (s *Server) Close() error {
	s.stop()
	err := s.http.Close()
	s.work.Wait()
	s.client.CloseIdleConnections()
	return err
}

// WaitFor returns once cond holds. It evaluates cond after each change of the hub's state, and
// every 100 ms, because cond may also depend on other state.
func (s *Server) WaitFor(ctx context.Context, cond func() bool) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the hub: %w", context.Cause(ctx))
		}
	}
}

// Quiet returns once every webhook is answered, timed out or lost.
func (s *Server) Quiet(ctx context.Context) error {
	return s.WaitFor(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.pending == 0
	})
}

// touch wakes all callers of WaitFor.
func (s *Server) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// now returns the time with GitHub's resolution: whole seconds in UTC.
func (s *Server) now() time.Time { return s.opt.Clock().UTC().Truncate(time.Second) }

// id returns a number that is unique over all kinds of objects, so that a mix-up of two ids shows
// in tests.
func (s *Server) id() int64 {
	s.lastID++
	return s.lastID
}

func nodeID(kind string, id int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + ":" + strconv.FormatInt(id, 10)))
}

// secret returns a token with a random part.
func (s *Server) secret(prefix string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, 36)
	for i := range b {
		b[i] = letters[s.rand.IntN(len(letters))]
	}
	return prefix + string(b)
}

func (s *Server) uuid() string {
	a, b := s.rand.Uint64(), s.rand.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}
