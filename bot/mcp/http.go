package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of requests.
const (
	maxBody = 4 << 20 // more than files may have, with JSON around them
	maxOpen = 32      // requests of one owner at a time: those who wait for a state are among them

	maxRequest = 2 * time.Minute // more than status and check_static wait
)

// NewHandler returns a handler that offers the tools over streamable HTTP to the owners of tokens, as they are at
// each request. A token allows the seven tools, and nothing else. There are no sessions: every request has its
// token, so that no owner can go on with the session of another.
func NewHandler(s Service, tokens func() Tokens, version string, log *slog.Logger) http.Handler {
	h := &handler{service: s, tokens: tokens, version: version, log: log, owners: map[string]*owner{}}
	// The token protects against other sites as well, and a proxy may change the name of the host.
	h.streams = mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		if o, ok := r.Context().Value(ownerKey{}).(*owner); ok {
			return o.server
		}
		return nil
	}, &mcp.StreamableHTTPOptions{Stateless: true, Logger: log, DisableLocalhostProtection: true})
	return h
}

// Knows tells whether a request has one of the tokens.
func (t Tokens) Knows(r *http.Request) bool { return t.ownerOf(r) != "" }

func (t Tokens) ownerOf(r *http.Request) string {
	secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return t.owner(secret)
}

// A handler answers the owners of tokens.
type handler struct {
	service Service
	tokens  func() Tokens
	version string
	log     *slog.Logger
	streams http.Handler

	mu     sync.Mutex
	owners map[string]*owner
}

// An owner is one who has asked.
type owner struct {
	server *mcp.Server
	open   chan struct{} // has an element for each request
}

type ownerKey struct{}

// owner of a request; nil if it has no token of now.
func (h *handler) owner(r *http.Request) *owner {
	tokens := h.tokens()
	name := tokens.ownerOf(r)
	if name == "" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owners[name] == nil {
		maps.DeleteFunc(h.owners, func(other string, _ *owner) bool { return tokens[other].Secret == "" })
		h.owners[name] = &owner{NewServer(h.service, name, h.version, h.log), make(chan struct{}, maxOpen)}
	}
	return h.owners[name]
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := h.owner(r)
	if o == nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "Send Authorization: Bearer TOKEN with one of the tokens of this server.", http.StatusUnauthorized)
		return
	}
	select {
	case o.open <- struct{}{}:
		defer func() { <-o.open }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprintf("%d requests of this token are open. Wait for one of them.", maxOpen), http.StatusTooManyRequests)
		return
	}
	until := time.Now().Add(maxRequest)
	c := http.NewResponseController(w) // a server without deadlines has none to exceed
	_, _ = c.SetReadDeadline(until), c.SetWriteDeadline(until)
	ctx, cancel := context.WithDeadline(context.WithValue(r.Context(), ownerKey{}, o), until)
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	h.streams.ServeHTTP(w, r)
}
