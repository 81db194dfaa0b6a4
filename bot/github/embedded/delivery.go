package embedded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// A Delivery is one webhook that was sent or will be sent.
type Delivery struct {
	ID            int64
	GUID          string // X-GitHub-Delivery
	Event, Action string
	Redelivery    bool
	At            time.Time // zero until it is sent
	Status        string    // OK, or GitHub's word for the failure
	StatusCode    int
	Duration      time.Duration
	Payload       []byte
}

type delivery struct {
	Delivery
	hook *Hook
	repo *Repo
}

// Unruly makes deliveries go wrong. The numbers are probabilities.
type Unruly struct {
	Fail      float64 // not sent, but listed as failed
	Vanish    float64 // neither sent nor listed
	Duplicate float64 // sent twice
	Shuffle   bool    // waiting deliveries are sent out of order
	Hold      bool    // all deliveries wait until Hold is false again
}

// SetDelivery makes deliveries unruly from now on. The zero value restores normal delivery and
// sends the deliveries that were held.
func (s *Server) SetDelivery(u Unruly) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unruly = u
	for _, box := range s.queues {
		s.start(box)
	}
}

// An outbox sends the deliveries of one hook and one repository one after the other.
type outbox struct {
	waiting []*delivery
	busy    bool
}

// send queues a delivery with the state at this moment.
func (h *Hook) send(event, action string, r *Repo, payload any) {
	if h.url == "" {
		return
	}
	raw, err := encode(payload)
	if err != nil {
		panic(err) // texts, numbers and times always marshal
	}
	draw := func(p float64) bool { return p > 0 && h.s.rand.Float64() < p }
	d := &delivery{hook: h, repo: r, Delivery: Delivery{ID: h.s.id(), GUID: h.s.uuid(), Event: event, Action: action, Payload: raw}}
	switch {
	case draw(h.s.unruly.Vanish):
		return
	case draw(h.s.unruly.Fail):
		d.At, d.Status, d.StatusCode = h.s.now(), "failed to connect to host", http.StatusBadGateway
		h.deliveries = append(h.deliveries, d)
		return
	}
	h.post(d)
	if draw(h.s.unruly.Duplicate) {
		again := *d
		again.ID = h.s.id()
		h.post(&again)
	}
}

func (h *Hook) post(d *delivery) {
	h.deliveries = append(h.deliveries, d)
	key := itoa(h.id)
	if d.repo != nil {
		key += "/" + itoa(d.repo.id)
	}
	if h.s.queues[key] == nil {
		h.s.queues[key] = &outbox{}
	}
	box := h.s.queues[key]
	box.waiting = append(box.waiting, d)
	h.s.pending++
	h.s.start(box)
}

func (s *Server) start(box *outbox) {
	if box.busy || s.unruly.Hold || len(box.waiting) == 0 || s.ctx.Err() != nil {
		return
	}
	box.busy = true
	s.work.Go(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for len(box.waiting) > 0 && !s.unruly.Hold && s.ctx.Err() == nil {
			i := 0
			if s.unruly.Shuffle {
				i = s.rand.IntN(len(box.waiting))
			}
			d := box.waiting[i]
			box.waiting = slices.Delete(box.waiting, i, i+1)
			s.deliver(d)
			s.pending--
			s.touch()
		}
		box.busy = false
	})
}

// deliver posts one delivery. It releases the lock while it waits for the answer.
func (s *Server) deliver(d *delivery) {
	url, header := d.hook.url, d.headers()
	d.At = s.now()
	s.mu.Unlock()
	begun := time.Now()
	code, status := s.postOnce(url, header, d.Payload)
	took := time.Since(begun)
	s.mu.Lock()
	d.StatusCode, d.Status, d.Duration = code, status, took
}

func (d *delivery) headers() http.Header {
	h := http.Header{}
	h.Set("User-Agent", "GitHub-Hookshot/embedded")
	h.Set("Content-Type", "application/json")
	h.Set("X-GitHub-Event", d.Event)
	h.Set("X-GitHub-Delivery", d.GUID)
	h.Set("X-GitHub-Hook-ID", itoa(d.hook.id))
	if d.hook.app != nil {
		h.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
		h.Set("X-GitHub-Hook-Installation-Target-ID", itoa(d.hook.app.id))
	} else {
		h.Set("X-GitHub-Hook-Installation-Target-Type", "repository")
		h.Set("X-GitHub-Hook-Installation-Target-ID", itoa(d.hook.repo.id))
	}
	if d.hook.secret != "" {
		h.Set("X-Hub-Signature-256", webhook.Sign([]byte(d.hook.secret), d.Payload))
	}
	return h
}

func (s *Server) postOnce(url string, header http.Header, payload []byte) (code int, status string) {
	ctx, cancel := context.WithTimeout(s.ctx, s.opt.HookTimeout)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
	if err != nil {
		return http.StatusBadGateway, "invalid URL"
	}
	rq.Header = header
	answer, err := s.client.Do(rq)
	switch slow, ok := errors.AsType[net.Error](err); {
	case ok && slow.Timeout():
		return http.StatusGatewayTimeout, "timed out"
	case err != nil:
		return http.StatusBadGateway, "failed to connect to host"
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)) // only the status counts
	if answer.StatusCode >= 300 {
		return answer.StatusCode, "Invalid HTTP Response: " + itoa(int64(answer.StatusCode))
	}
	return answer.StatusCode, "OK"
}

func (d *delivery) render() map[string]any {
	out := &github.HookDelivery{ID: &d.ID, GUID: &d.GUID, DeliveredAt: &github.Timestamp{Time: d.At}, Redelivery: ptr(d.Redelivery),
		Duration: ptr(d.Duration.Seconds()), Status: ptr(d.Status), StatusCode: ptr(d.StatusCode), Event: &d.Event, Action: orNil(d.Action)}
	if d.repo != nil {
		out.RepositoryID = &d.repo.id
		if d.hook.app != nil {
			if in := d.hook.app.installationFor(d.repo); in != nil {
				out.InstallationID = &in.id
			}
		}
	}
	return with(out, map[string]any{"throttled_at": nil, "url": d.hook.url})
}

// listDeliveries pages by a cursor, newest first. It leaves out deliveries that are still in
// flight.
func listDeliveries(rq *request, app *App) error {
	h := app.hook
	cursor, err := strconv.ParseInt(rq.query("cursor"), 10, 64)
	if rq.query("cursor") != "" && err != nil {
		return invalid("Delivery", "cursor", "invalid", "")
	}
	status := rq.query("status")
	if err := rq.oneOf("Delivery", "status", "success", "failure"); err != nil {
		return err
	}
	out := []map[string]any{}
	for _, d := range slices.Backward(h.deliveries) {
		switch {
		case d.StatusCode == 0, h.expired(d), cursor != 0 && d.ID > cursor,
			status == "failure" && (d.StatusCode < 400 || d.StatusCode > 599), status == "success" && (d.StatusCode < 200 || d.StatusCode > 399):
			continue
		case len(out) == rq.perPage():
			next := rq.URL.Query()
			next.Set("cursor", itoa(d.ID))
			rq.setLinks([]string{rq.link(url.Values(next), "next")})
			return rq.ok(out)
		}
		out = append(out, d.render())
	}
	return rq.ok(out)
}

func postAttempt(rq *request, app *App) error {
	if err := app.hook.redeliver(rq.pathInt("delivery")); err != nil {
		return err
	}
	return rq.reply(http.StatusAccepted, map[string]any{})
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
