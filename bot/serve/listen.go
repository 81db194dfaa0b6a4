package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

const (
	// GitHub hangs up after 10 s and calls that a failure.
	webhookTime = 9 * time.Second
	// Requests under way when the server stops.
	stopTime = 10 * time.Second
	// GitHub and runners send a few hundred bytes of headers.
	maxHeader = 64 << 10
)

// listeners are the ways in: one for everybody, one for runners on this host, one for its operator.
type listeners struct {
	main, socket net.Listener
	control      net.Listener // nil if there is none
	servers      [3]*http.Server
	polls        context.CancelFunc // ends waiting for jobs
	all          *sync.WaitGroup
}

func (s *Server) listen(ctx context.Context) (l listeners, err error) {
	if l.main, err = new(net.ListenConfig).Listen(ctx, "tcp", s.opt.Listen); err != nil {
		return l, fmt.Errorf("listening: %w (choose a free address: listen)", err)
	}
	if l.socket, err = listenUnix(ctx, s.opt.socket()); err != nil {
		return l, errors.Join(err, l.main.Close())
	}
	if err := s.ownSocket(); err != nil {
		return l, errors.Join(err, l.main.Close(), l.socket.Close())
	}
	if l.control, err = s.listenControl(ctx); err != nil {
		return l, errors.Join(err, l.main.Close(), l.socket.Close())
	}
	polls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.polls, l.all = cancel, &sync.WaitGroup{}
	runners := s.Runners.Handler()
	mux := http.NewServeMux()
	mux.Handle("/webhook", s.counts.counted(within(webhookTime, &webhook.Handler{
		Secrets: s.opt.Secrets.Webhooks, Store: s.store, Now: s.opt.Now, Log: s.log,
	})))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.counts.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn), Timeout: webhookTime,
	}))
	mux.Handle(protocol.Prefix, endingWith(polls, s.leading(runners, s.Runners.Knows)))
	mux.Handle(fleet.OperatorPrefix, s.Runners.OperatorHandler())
	if s.agents != nil {
		mux.Handle(mcpPath, endingAgentsWith(polls, s.leading(s.agentHandler(), func(r *http.Request) bool { return s.agentTokens.Tokens().Knows(r) })))
	}
	site, err := s.pages(polls.Done())
	if err != nil {
		cancel()
		return l, errors.Join(err, l.main.Close(), l.socket.Close())
	}
	mux.Handle("/", site)
	control := s.httpServer(s.controlHandler())
	control.WriteTimeout = 0 // a backup may be large
	l.servers = [3]*http.Server{s.httpServer(mux), s.httpServer(endingWith(polls, s.leading(runners, nil))), control}
	return l, nil
}

// httpServer bounds what a slow client may hold. Runners' long polls and
// transfers set deadlines of their own.
func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: webhookTime, WriteTimeout: 15 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}

func (l *listeners) serve(fail func(error)) {
	for i, on := range []net.Listener{l.main, l.socket, l.control} {
		if on == nil {
			continue
		}
		l.all.Go(func() {
			if err := l.servers[i].Serve(on); !errors.Is(err, http.ErrServerClosed) {
				fail(fmt.Errorf("listening on %s: %w", on.Addr(), err))
			}
		})
	}
}

// close stops accepting, and lets requests end.
func (l *listeners) close() error {
	if l.servers[0] == nil {
		return nil
	}
	l.polls()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var failed error
	for _, server := range l.servers {
		if err := server.Shutdown(ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("a request did not end in time and was cancelled: %w", err), server.Close())
		}
	}
	l.all.Wait()
	return failed
}

// within ends a request's context in time to answer.
func within(limit time.Duration, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// endingWith has runners that wait for a job told that there is none when the
// server stops, and lets go of those that hold one; other requests are let through to
// their end.
func endingWith(polls context.Context, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != protocol.Prefix+"lease" && !strings.HasSuffix(r.URL.Path, "/hold") {
			h.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(polls, cancel)()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// maxSocketPath is the kernel's limit.
const maxSocketPath = 107

// listenUnix takes the place of a socket that a crash left behind, and of no
// other.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listening for runners: the path %s is longer than %d bytes (set a shorter runner.socket)", path, maxSocketPath)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("listening for runners: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("listening for runners: %s is not a socket (remove it, or set a different runner.socket)", path)
	default:
		if c, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			c.Close()
			return nil, fmt.Errorf("listening for runners: another process answers at %s (stop it, or set a different runner.socket)", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("listening for runners: %w", err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening for runners: %w (set a different runner.socket)", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listening for runners: %w", err), l.Close())
	}
	return l, nil
}

// store counts what the journal takes.
func (s *Server) store(ctx context.Context, d webhook.Delivery) error {
	err := s.Bot.Store(ctx, d)
	if err == nil {
		s.counts.accepted.Inc()
	}
	return err
}
