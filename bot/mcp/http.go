package mcp

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// Tokens are the secrets by the name of their owner. Submissions and budgets belong to names, so that a
// new secret keeps them.
type Tokens map[string]string

// minToken is the length of the shortest secret.
const minToken = 16

// ReadTokens reads a file with a name and a secret in each line. Empty lines and lines that begin
// with # say nothing.
func ReadTokens(file string) (Tokens, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage.Errorf("reading the tokens: %w", err)
	}
	defer f.Close()
	tokens, owners := Tokens{}, map[string]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		bad := func(format string, args ...any) error {
			return usage.Errorf("%s:%d: %s", file, n, fmt.Sprintf(format, args...))
		}
		switch {
		case len(words) != 2:
			return nil, bad("a line has a name and a token (write e.g. agent1 %s)", strings.Repeat("x", minToken))
		case !ident.IsName(words[0]):
			return nil, bad("%q is not a name (write letters, digits, '.', '_' and '-')", words[0])
		case tokens[words[0]] != "":
			return nil, bad("the name %s is there twice", words[0])
		case len(words[1]) < minToken:
			return nil, bad("the token of %s has %d characters (at least %d)", words[0], len(words[1]), minToken)
		case owners[words[1]] != "":
			return nil, bad("%s and %s have the same token", owners[words[1]], words[0])
		}
		tokens[words[0]], owners[words[1]] = words[1], words[0]
	}
	if err := lines.Err(); err != nil {
		return nil, usage.Errorf("reading the tokens: %w", err)
	}
	if len(tokens) == 0 {
		return nil, usage.Errorf("%s has no tokens (write a name and a token in each line)", file)
	}
	return tokens, nil
}

// owner compares digests with all tokens in constant time, so that timing reveals nothing.
func (t Tokens) owner(secret string) (name string) {
	given := sha256.Sum256([]byte(secret))
	for owner, token := range t {
		own := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(given[:], own[:]) == 1 {
			name = owner
		}
	}
	return name
}

// Limits of requests.
const (
	maxBody = 4 << 20 // more than files may have, with JSON around them
	maxOpen = 32      // requests of one owner at a time: those who wait for a state are among them
)

// NewHandler returns a handler that offers the tools over streamable HTTP to the owners of tokens. A
// token allows the seven tools, and nothing else. There are no sessions: every request has its token,
// so that no owner can go on with the session of another.
func NewHandler(s Service, tokens Tokens, version string, log *slog.Logger) http.Handler {
	servers, open := map[string]*mcp.Server{}, map[string]chan struct{}{}
	for name := range tokens {
		servers[name], open[name] = NewServer(s, name, version, log), make(chan struct{}, maxOpen)
	}
	ownerOf := func(r *http.Request) string {
		secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			return ""
		}
		return tokens.owner(secret)
	}
	// The token protects against other sites as well, and a proxy may change the name of the host.
	streams := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server { return servers[ownerOf(r)] },
		&mcp.StreamableHTTPOptions{Stateless: true, Logger: log, DisableLocalhostProtection: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		owner := ownerOf(r)
		if owner == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Send Authorization: Bearer TOKEN with one of the tokens of this server.", http.StatusUnauthorized)
			return
		}
		select {
		case open[owner] <- struct{}{}:
			defer func() { <-open[owner] }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("%d requests of this token are open. Wait for one of them.", maxOpen), http.StatusTooManyRequests)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		streams.ServeHTTP(w, r)
	})
}
