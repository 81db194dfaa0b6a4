package fleet

import (
	"compress/gzip"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/jobs"
)

// A Credential is the hash of a runner's token, with the labels of the jobs that the runner may
// take.
type Credential struct {
	SHA256 [sha256.Size]byte
	Labels []string
}

// NewCredential makes a credential: its holder may take jobs of the labels.
func NewCredential(token string, labels ...string) Credential {
	return Credential{SHA256: sha256.Sum256([]byte(token)), Labels: labels}
}

// A refusal is an error answer, with a line for people.
type refusal struct {
	status int
	reason string
}

func (r refusal) Error() string { return r.reason }

func refuse(status int, format string, args ...any) error {
	return refusal{status, fmt.Sprintf(format, args...)}
}

// A handler answers an authenticated runner.
type handler func(w http.ResponseWriter, r *http.Request, name string) error

// guarded refuses requests without a token, and turns errors into answers.
func (s *Server) guarded(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := s.authenticate(r)
		if !ok {
			s.Log.WarnContext(r.Context(), "a runner without a valid token was refused", "remote", r.RemoteAddr, "path", r.URL.Path)
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		name, err := gpuOf(name, r)
		if err == nil {
			err = h(w, r, name)
		}
		if err == nil {
			return
		}
		status := statusOf(err)
		s.Log.WarnContext(r.Context(), "a runner's request was refused", "runner", name, "path", r.URL.Path, "status", status, "error", err)
		reason := err.Error()
		if status == http.StatusServiceUnavailable {
			reason = "the bot cannot do this now; try again" // details are only in the bot's log
		}
		http.Error(w, reason, status)
	})
}

func statusOf(err error) int {
	var no refusal
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &no):
		return no.status
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, jobs.ErrCancelled):
		return http.StatusGone
	case errors.Is(err, jobs.ErrLeaseLost), errors.Is(err, jobs.ErrFinished):
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

// Knows reports whether a request has a runner's token.
func (s *Server) Knows(r *http.Request) bool {
	_, ok := s.authenticate(r)
	return ok
}

// authenticate compares the token with all known ones, in constant time.
func (s *Server) authenticate(r *http.Request) (name string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", false
	}
	sum := sha256.Sum256([]byte(token))
	for n, c := range s.Tokens {
		if subtle.ConstantTimeCompare(sum[:], c.SHA256[:]) == 1 {
			name, ok = n, true
		}
	}
	return name, ok
}

// patience lets a request exceed the HTTP server's deadlines.
func patience(w http.ResponseWriter, d time.Duration) {
	c := http.NewResponseController(w)
	until := time.Now().Add(d)
	_, _ = c.SetReadDeadline(until), c.SetWriteDeadline(until) // a server without deadlines has none to exceed
}

// transfer is the deadline for bundles, artifacts and results.
const transfer = 30 * time.Minute

// readJSON reads a body of at most limit bytes, unpacked.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	if r.ContentLength > limit {
		return &http.MaxBytesError{Limit: limit}
	}
	body := io.Reader(http.MaxBytesReader(w, r.Body, limit))
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		zip, err := gzip.NewReader(body)
		if err != nil {
			return refuse(http.StatusBadRequest, "the body is not gzipped: %v", err)
		}
		body = http.MaxBytesReader(w, zip, limit)
	default:
		return refuse(http.StatusUnsupportedMediaType, "send the body as it is, or gzipped, not %s", encoding)
	}
	err := json.NewDecoder(body).Decode(into)
	var large *http.MaxBytesError
	if err == nil || errors.As(err, &large) {
		return err
	}
	return refuse(http.StatusBadRequest, "the body cannot be read: %v", err)
}

// small bounds the bodies of requests that carry no content.
const small = 64 << 10
