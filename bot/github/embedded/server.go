// Package embedded is a GitHub to test and demonstrate against: a real HTTP
// server with users, repositories in git, pull requests, checks, a merge queue
// and webhooks, which answers the calls that the bot makes as GitHub would, errors
// and limits included. What people do there, they do by methods. It keeps everything
// but the git objects in memory, serves no GraphQL and of the web interface plain pages
// to look at and the form that makes an App out of a manifest, and is no place for real
// code.
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

// Options say where the hub lives and how strict it is. The zero value of every
// field but Dir is usable.
type Options struct {
	Dir    string           // the git repositories are made here
	Clock  func() time.Time // dates, expiry and limits; time.Now unless given
	Seed   uint64           // tokens, delivery ids and what SetFaults and SetDelivery draw
	Limits Limits           // GitHub's own unless given

	Lag Lag // none unless given

	// RetargetPulls has a deleted branch's pull requests follow it, as GitHub does: those that
	// go to a branch whose own pull request was merged go to that one's base, of which no
	// webhook tells, and others are closed. Without it they stay as they are, as they do at GitHub
	// until it has come that far.
	RetargetPulls bool

	HookTimeout time.Duration // how long a webhook's receiver may take, 10 s unless given
}

// A Server is one GitHub.
type Server struct {
	opt    Options
	url    string
	http   *http.Server
	client *http.Client
	stop   context.CancelFunc
	ctx    context.Context
	work   sync.WaitGroup

	mu      sync.Mutex // guards everything below and every handle's fields
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
	slow    time.Duration // as SetSlowDeliveryLists says
	seen    map[string]uint64
	unruly  Unruly
	queues  map[string]*outbox
	pending int
}

// New starts a hub on a socket of its own.
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
	s.work.Go(func() { _ = s.http.Serve(listener) }) // until Close
	return s, nil
}

// URL is the address of the API, the git repositories and the page alike. The API
// is at its root, as on api.github.com, and under /api/v3/, as on Enterprise.
func (s *Server) URL() string { return s.url }

// Close stops the hub and waits for its deliveries to end.
func (s *Server) Close() error {
	s.stop()
	err := s.http.Close()
	s.work.Wait()
	s.client.CloseIdleConnections()
	return err
}

// WaitFor returns once cond holds. It asks again after each change of the hub's
// state, and now and then, for a condition that is about something else as well.
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

// Quiet returns once every webhook has been answered, timed out or lost.
func (s *Server) Quiet(ctx context.Context) error {
	return s.WaitFor(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.pending == 0
	})
}

// touch wakes whoever waits for a change.
func (s *Server) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// now has GitHub's resolution: whole seconds in UTC.
func (s *Server) now() time.Time { return s.opt.Clock().UTC().Truncate(time.Second) }

// id is unique over all kinds of things, so that a mix-up of two ids shows.
func (s *Server) id() int64 {
	s.lastID++
	return s.lastID
}

func nodeID(kind string, id int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + ":" + strconv.FormatInt(id, 10)))
}

// secret draws the random part of a token.
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
