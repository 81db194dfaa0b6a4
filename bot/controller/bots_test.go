package controller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// leadFor is short, for who waits for a dead bot's lead does nothing else, and long enough for a busy machine. On a cluster it is what
// it is for everybody.
const leadFor = 2 * time.Second

// bots are several on one journal, each a process. GitHub's webhooks and the runner reach any
// of them, and GitHub notes who writes.
type bots struct {
	*world
	nats   *natstest.Servers
	all    []*member
	github string // where GitHub is for the bots

	mu     sync.Mutex
	rng    *rand.Rand
	writes []written
	last   int // the bot that had jobs for the runner
}

// A member is one of several bots.
type member struct {
	setup
	*victim
}

// written is a request that changed something at GitHub.
type written struct {
	by, what string
	at       time.Time
	body     string
	status   int
}

func newBots(w *world, n, nodes int, runners ...runnerSetup) *bots {
	w.Helper()
	b := &bots{world: w, rng: rand.New(rand.NewPCG(5, uint64(n)))}
	var ports []string
	for range 2 * nodes {
		_, port, err := net.SplitHostPort(w.freeAddress())
		w.no(err)
		ports = append(ports, port)
	}
	b.nats = natstest.New(w, ports)
	for i := range nodes {
		b.listens(i)
	}
	b.watchGitHub()
	for i := range n {
		s := w.setup()
		s.Dir, s.Addr, s.Name = filepath.Join(w.dir, fmt.Sprint("bot", i)), w.freeAddress(), fmt.Sprint("bot", i)
		s.NATS, s.GitHub, s.Absent, s.Copies, s.Runners = b.nats.URLs, b.github, true, nodes, runners
		if nodes == 1 {
			s.Lead = leadFor
		}
		w.no(os.MkdirAll(s.Dir, 0o700))
		b.all = append(b.all, &member{setup: s})
	}
	w.Cleanup(func() {
		for _, m := range b.all {
			if m.victim != nil {
				m.kill()
				if w.Failed() {
					w.Logf("%s: %s", m.Name, m.log)
				}
			}
		}
	})
	b.balance()
	if len(runners) == 0 {
		b.run()
	}
	return b
}

// listens waits until clients can reach a NATS server.
func (b *bots) listens(i int) {
	b.Helper()
	b.poll("a NATS server", func() bool {
		c, err := net.Dial("tcp", b.nats.Addr(i))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// begin starts a bot, and waits until it listens.
func (b *bots) begin(m *member) {
	b.Helper()
	m.victim = b.spawn(m.setup)
	b.poll(m.Name, func() bool {
		if bytes.Contains(m.log.Bytes(), []byte("\n")) && m.cmd.ProcessState != nil {
			b.Fatalf("%s: %s", m.Name, m.log)
		}
		_, err := m.leads()
		return err == nil
	})
}

// leads asks a bot.
func (m *member) leads() (bool, error) {
	c := http.Client{Timeout: time.Second}
	resp, err := c.Get("http://" + m.Addr + "/leads")
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text) == "true", err
}

// leader waits until one of the bots leads, other than one.
func (b *bots) leader(but *member) (found *member) {
	b.Helper()
	b.poll("a bot that leads", func() bool {
		for _, m := range b.all {
			if m != but {
				if leads, err := m.leads(); err == nil && leads {
					found = m
					return true
				}
			}
		}
		return false
	})
	return found
}

// watchGitHub stands between the bots and GitHub.
func (b *bots) watchGitHub() {
	to, err := url.Parse(b.hub.URL())
	b.no(err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	proxy.ModifyResponse = func(r *http.Response) error {
		if body, ok := r.Request.Context().Value(bodyKey{}).(string); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.writes = append(b.writes, written{r.Request.UserAgent(), r.Request.Method + " " + r.Request.URL.Path, time.Now(), body, r.StatusCode})
		}
		return nil
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/repos/") && !strings.Contains(r.URL.Path, ".git/") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, string(body)))
		}
		proxy.ServeHTTP(w, r)
	}))
	b.Cleanup(srv.Close)
	b.github = srv.URL
}

type bodyKey struct{}

// wrote is what a bot has written to GitHub since then.
func (b *bots) wrote(by *member, since time.Time) (all []written) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.writes {
		if w.by == by.Name && w.at.After(since) {
			all = append(all, w)
		}
	}
	return all
}

// balance listens at the world's address, and hands each request to a bot that takes it. A
// bot that does not answer within seconds is passed over.
func (b *bots) balance() {
	l, err := listenAgain(b.addr)
	b.no(err)
	srv := &http.Server{Handler: http.HandlerFunc(b.hand), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go srv.Serve(l)
	b.Cleanup(func() { srv.Close() })
}

func (b *bots) hand(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b.mu.Lock()
	order := b.rng.Perm(len(b.all))
	if strings.HasPrefix(r.URL.Path, protocol.Prefix) {
		for i := range order {
			order[i] = (b.last + i) % len(b.all)
		}
	}
	b.mu.Unlock()
	for _, i := range order {
		if b.forward(w, r, body, b.all[i].Addr) {
			b.mu.Lock()
			b.last = i
			b.mu.Unlock()
			return
		}
	}
	http.Error(w, "no bot takes it", http.StatusServiceUnavailable)
}

func (b *bots) forward(w http.ResponseWriter, r *http.Request, body []byte, to string) bool {
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, r.Method, "http://"+to+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return false
	}
	rq.Header = r.Header.Clone()
	answer, err := http.DefaultTransport.RoundTrip(rq)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode == http.StatusServiceUnavailable {
		return false
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(text)
	return true
}

// run is the runner, which outlives the bots.
func (b *bots) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- agent.Run(ctx, agent.Config{
			Servers: []string{"http://" + b.addr}, Token: token, Name: "runner", Labels: []string{"cpu"}, StateDir: filepath.Join(b.dir, "runner"),
			Measure: scripted.Runner{Hold: b.hold}.Measure, Host: "host",
		})
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}

// stop stops a bot's process with SIGSTOP, and waits until it stands still.
func (b *bots) stop(m *member) {
	b.Helper()
	b.no(m.cmd.Process.Signal(syscall.SIGSTOP))
	b.standsStill(m)
}

func (b *bots) standsStill(m *member) {
	b.Helper()
	b.poll(m.Name+" to stand still", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid))
		if err != nil {
			b.Fatalf("%s has ended: %v\n%s", m.Name, err, m.log)
		}
		_, after, _ := bytes.Cut(stat, []byte(") "))
		return bytes.HasPrefix(after, []byte("T"))
	})
}

func (b *bots) goOn(m *member) { b.no(m.cmd.Process.Signal(syscall.SIGCONT)) }

// events reads the journal to its end, as nobody who leads.
func (b *bots) events(do func(journal.Event)) {
	b.Helper()
	j, err := journal.Open(b.ctx, journal.Options{URL: b.nats.URLs})
	b.no(err)
	_, err = j.Replay(b.ctx, 0, func(e journal.Event) error { do(e); return nil })
	b.no(errors.Join(err, j.Close()))
}

// handled waits until every delivery has been, and none was given up.
func (b *bots) handled() {
	b.Helper()
	nc, err := nats.Connect(b.nats.URLs)
	b.no(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	b.no(err)
	state, err := js.KeyValue(b.ctx, "DELIVERY_STATE")
	b.no(err)
	b.poll("every delivery to be handled", func() bool {
		var place struct{ Next uint64 }
		entry, err := state.Get(b.ctx, "processor.place")
		b.no(err)
		b.no(json.Unmarshal(entry.Value(), &place))
		all, err := js.Stream(b.ctx, "DELIVERIES")
		b.no(err)
		return place.Next == all.CachedInfo().State.LastSeq+1
	})
	j, err := journal.Open(b.ctx, journal.Options{URL: b.nats.URLs})
	b.no(err)
	dead, err := j.Dead(b.ctx)
	b.no(errors.Join(err, j.Close()))
	if len(dead) > 0 {
		b.Errorf("deliveries were given up: %+v", dead)
	}
}

// is tells whether a request, as method and path, is one of that method whose path ends so.
func is(request, what string) bool {
	method, end, _ := strings.Cut(what, " ")
	return strings.HasPrefix(request, method+" ") && strings.HasSuffix(request, end)
}

// stopping stops this process right before a request is sent, and sends it all the same when the process goes on.
type stopping struct {
	at   string
	once sync.Once
}

func (s *stopping) RoundTrip(rq *http.Request) (*http.Response, error) {
	if is(rq.Method+" "+rq.URL.Path, s.at) {
		s.once.Do(func() {
			rq = rq.WithContext(context.WithoutCancel(rq.Context())) // nothing may keep it back
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-time.After(10 * time.Millisecond) // the signal is there before that
		})
	}
	return http.DefaultTransport.RoundTrip(rq)
}
