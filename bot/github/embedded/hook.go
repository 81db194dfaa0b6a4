package embedded

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

// A Hook sends the webhooks of an App or of a repository to one URL.
type Hook struct {
	s           *Server
	id          int64
	app         *App
	repo        *Repo
	url, secret string
	events      []string
	created     time.Time
	deliveries  []*delivery
}

// CreateHook creates a webhook of the repository and sends a ping to it. A bot without an App
// receives events this way. Without events the hook subscribes to push only; "*" subscribes to all.
func (r *Repo) CreateHook(url, secret string, events ...string) *Hook {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if len(events) == 0 {
		events = []string{"push"}
	}
	h := &Hook{s: r.s, id: r.s.id(), repo: r, url: url, secret: secret, events: events, created: r.s.now()}
	r.hooks = append(r.hooks, h)
	h.ping()
	return h
}

// Hook returns the App's webhook.
func (a *App) Hook() *Hook { return a.hook }

func (h *Hook) ping() {
	e := &github.PingEvent{Zen: ptr("Keep it logically awesome."), HookID: &h.id, Hook: h.render()}
	if h.repo != nil {
		e.Repo, e.Sender = h.repo.render(), h.repo.owner.render(h.s.url)
	}
	h.send("ping", "", h.repo, e)
}

func (h *Hook) render() *github.Hook {
	out := &github.Hook{ID: &h.id, Type: ptr("App"), Name: ptr("web"), Events: h.events, Active: ptr(true), CreatedAt: when(h.created), UpdatedAt: when(h.created),
		Config: &github.HookConfig{ContentType: ptr("json"), InsecureSSL: ptr("0"), URL: ptr(h.url)}, LastResponse: map[string]any{"code": nil, "status": "unused", "message": nil}}
	if h.secret != "" {
		out.Config.Secret = ptr("********")
	}
	if h.repo != nil {
		url := h.repo.api("/hooks/%d", h.id)
		out.Type, out.URL, out.TestURL, out.PingURL = ptr("Repository"), &url, ptr(url+"/test"), ptr(url+"/pings")
	}
	return out
}

// emit sends an event to every subscriber: the installed Apps that subscribed to it and the
// repository's hooks. With only set, it sends the event to that App, which need not have
// subscribed. Every payload names the repository and the sender.
func (r *Repo) emit(who *account, event, action string, only *App, payload any) {
	defer r.s.touch()
	if only == nil && !r.heard(event) {
		return
	}
	body := with(payload, map[string]any{"repository": r.render(), "sender": who.render(r.s.url)})
	if action != "" {
		body["action"] = action
	}
	for _, app := range r.s.apps {
		in := app.installationFor(r)
		if in == nil || in.suspended() || only != nil && app != only || only == nil && !slices.Contains(app.opt.Events, event) {
			continue
		}
		body["installation"] = in.renderShort()
		app.hook.send(event, action, r, body)
	}
	if only != nil {
		return
	}
	delete(body, "installation")
	for _, h := range r.hooks {
		if h.wants(event) {
			h.send(event, action, r, body)
		}
	}
}

// heard reports whether emit would send the event to anybody.
func (r *Repo) heard(event string) bool {
	return slices.ContainsFunc(r.hooks, func(h *Hook) bool { return h.wants(event) }) || slices.ContainsFunc(r.s.apps, func(app *App) bool {
		in := app.installationFor(r)
		return in != nil && !in.suspended() && slices.Contains(app.opt.Events, event)
	})
}

func (h *Hook) wants(event string) bool {
	return slices.Contains(h.events, event) || slices.Contains(h.events, "*")
}

// Deliveries returns the hook's deliveries, newest first.
func (h *Hook) Deliveries() []Delivery {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	out := each(h.deliveries, func(d *delivery) Delivery { return d.Delivery })
	slices.Reverse(out)
	return out
}

// Redeliver sends a delivery again, with the same delivery id and payload.
func (h *Hook) Redeliver(id int64) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if err := h.redeliver(id); err != nil {
		return fmt.Errorf("redeliver %d: %w", id, err)
	}
	return nil
}

func (h *Hook) redeliver(id int64) error {
	for _, d := range h.deliveries {
		if d.ID == id && !h.expired(d) {
			again := *d
			again.Delivery = Delivery{ID: h.s.id(), GUID: d.GUID, Event: d.Event, Action: d.Action, Redelivery: true, Payload: d.Payload}
			h.post(&again)
			return nil
		}
	}
	return errors.Join(errNotFound(), errors.New("no such delivery in the last three days"))
}

// expired reports whether a delivery is too old. Expired deliveries are not listed and cannot be
// redelivered.
func (h *Hook) expired(d *delivery) bool {
	return !d.At.IsZero() && h.s.now().Sub(d.At) > 72*time.Hour
}
