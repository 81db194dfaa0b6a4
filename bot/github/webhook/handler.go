// Package webhook takes GitHub's webhooks in: Handler proves that a delivery is
// GitHub's and hands it on unread, Decode reads a stored one. It decides nothing
// about what a delivery leads to.
//
// The events are structs of its own and not go-github's. Those name every field
// that GitHub sends, all optional, so that a missing commit id is a nil pointer
// somewhere later; these name what kernelgate needs, and Decode has checked it.
//
// GitHub signs the body alone. The event's name and the delivery's id come from
// headers that nothing proves: they may sort and de-duplicate deliveries, never
// grant anything. So only the events that kernelgate uses are stored. An event of
// any other name, such as one that bots send each other, is not.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// A Delivery is one webhook as it came, with a good signature.
type Delivery struct {
	ID       string // GitHub's; a redelivery bears the same
	Event    string // such as pull_request
	Received time.Time
	Body     []byte // the JSON, not yet looked at
}

// defaultMaxBytes is the most that GitHub sends.
const defaultMaxBytes = 25 << 20

// A Handler is the endpoint that GitHub posts to. It answers 202 once Store has
// returned, so that whatever GitHub believes delivered is stored. Deadlines are
// the server's.
type Handler struct {
	// Secrets are those that GitHub may have signed with: while one is being
	// replaced, the old and the new. An empty one is no secret.
	Secrets [][]byte
	// MaxBytes bounds a body; 0 is 25 MiB.
	MaxBytes int64
	// Store keeps a delivery for good, or fails. It may see one more than once. ErrNotUsed says
	// that nobody would read the delivery: GitHub is told that it arrived.
	Store func(context.Context, Delivery) error
	// Now is time.Now if nil.
	Now func() time.Time
	// Log never gets a secret, a signature or a body; nil discards.
	Log *slog.Logger
}

// ErrNotUsed is a delivery that need not be stored, such as the word of another App's check run.
var ErrNotUsed = errors.New("nobody uses the delivery")

// retryAfter is in seconds. GitHub does not heed it; proxies and people do.
const retryAfter = "30"

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	log := h.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d, err := h.receive(w, r)
	if err != nil {
		no, ok := errors.AsType[refusal](err)
		if !ok {
			no = refusal{http.StatusBadRequest, "the body could not be read"}
		}
		log.WarnContext(r.Context(), "webhook refused", "status", no.status, "reason", no.reason, "remote", r.RemoteAddr)
		switch no.status {
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", http.MethodPost)
		case http.StatusUnauthorized:
			no.reason = "unauthorized" // which part is wrong helps only who has no secret
		}
		http.Error(w, no.reason, no.status)
		return
	}
	log = log.With("delivery", d.ID, "event", d.Event, "bytes", len(d.Body))
	if d.Event == "ping" {
		// It says that the hook works, and so does the answer.
		log.InfoContext(r.Context(), "webhook pinged")
		answer(w, http.StatusOK, "pong")
		return
	}
	if !Used(d.Event) {
		// A hook may send everything, and GitHub need not send this again.
		log.DebugContext(r.Context(), "webhook left out: its event is not used")
		answer(w, http.StatusAccepted, "not used")
		return
	}
	err = h.Store(r.Context(), d)
	if errors.Is(err, ErrNotUsed) {
		log.DebugContext(r.Context(), "webhook left out: nobody would read it")
		answer(w, http.StatusAccepted, "not used")
		return
	}
	if err != nil {
		log.ErrorContext(r.Context(), "webhook not stored: redeliver it from the hook's page once the store works", "error", err)
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "not stored; redeliver later", http.StatusServiceUnavailable)
		return
	}
	log.InfoContext(r.Context(), "webhook stored")
	answer(w, http.StatusAccepted, "accepted")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// A refusal is a request that is not stored, and why. The reason holds nothing
// of the request.
type refusal struct {
	status int
	reason string
}

func (r refusal) Error() string { return r.reason }

var (
	deliveryID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	eventName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// receive checks what is cheap first, and nothing of the body before its
// signature.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request) (Delivery, error) {
	var d Delivery
	if r.Method != http.MethodPost {
		return d, refusal{http.StatusMethodNotAllowed, "GitHub sends POST"}
	}
	contentType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	isForm := contentType == "application/x-www-form-urlencoded"
	if err != nil || !isForm && contentType != "application/json" || r.Header.Get("Content-Encoding") != "" {
		return d, refusal{http.StatusUnsupportedMediaType, "set the hook's content type to application/json"}
	}
	var ok bool
	if d.Event, ok = single(r.Header, "X-GitHub-Event", eventName); !ok {
		return d, refusal{http.StatusBadRequest, "X-GitHub-Event is missing or strange"}
	}
	if d.ID, ok = single(r.Header, "X-GitHub-Delivery", deliveryID); !ok {
		return d, refusal{http.StatusBadRequest, "X-GitHub-Delivery is missing or strange"}
	}
	hexDigest, ok := single(r.Header, "X-Hub-Signature-256", signatureText)
	if !ok {
		return d, refusal{http.StatusUnauthorized, "X-Hub-Signature-256 is missing or strange"}
	}
	body, err := h.readBody(w, r)
	if err != nil {
		return d, err
	}
	if !signedBy(h.Secrets, body, hexDigest) {
		return d, refusal{http.StatusUnauthorized, "the signature is not by any of our secrets"}
	}
	d.Received = time.Now()
	if h.Now != nil {
		d.Received = h.Now()
	}
	d.Body = body
	if isForm {
		d.Body, err = formPayload(body)
	}
	return d, err
}

// single is a header that is there once and looks as it should.
func single(header http.Header, name string, looks *regexp.Regexp) (string, bool) {
	values := header.Values(name)
	if len(values) != 1 || !looks.MatchString(values[0]) {
		return "", false
	}
	return values[0], true
}

func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := h.MaxBytes
	if most <= 0 {
		most = defaultMaxBytes
	}
	tooLarge := refusal{http.StatusRequestEntityTooLarge, "the body is too large"}
	if r.ContentLength > most {
		return nil, tooLarge
	}
	// The stated length saves copies, but is only believed where it costs little.
	const believed = 1 << 20
	var buffer bytes.Buffer
	buffer.Grow(int(min(max(r.ContentLength, 0), believed)) + bytes.MinRead)
	_, err := io.Copy(&buffer, http.MaxBytesReader(w, r.Body, most))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, tooLarge
	}
	return buffer.Bytes(), err
}

// formPayload is the JSON in a form-encoded body.
func formPayload(body []byte) ([]byte, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		return nil, refusal{http.StatusBadRequest, "the form has no single payload"}
	}
	return []byte(form.Get("payload")), nil
}

const signaturePrefix = "sha256="

var signatureText = regexp.MustCompile(`^sha256=[0-9a-fA-F]{64}$`)

// Sign is the X-Hub-Signature-256 that GitHub would send with a body.
func Sign(secret, body []byte) string {
	return signaturePrefix + hex.EncodeToString(digest(secret, body))
}

func digest(secret, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return mac.Sum(nil)
}

// signedBy compares in constant time, and with every secret whether or not one
// fits: how long it takes tells nothing. Anybody can sign with the empty secret,
// so that proves nothing.
func signedBy(secrets [][]byte, body []byte, signature string) bool {
	got, err := hex.DecodeString(strings.TrimPrefix(signature, signaturePrefix))
	if err != nil {
		return false
	}
	signed := false
	for _, secret := range secrets {
		if len(secret) > 0 && hmac.Equal(got, digest(secret, body)) {
			signed = true
		}
	}
	return signed
}
