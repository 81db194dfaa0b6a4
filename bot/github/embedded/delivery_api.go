package embedded

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/go-github/v60/github"
)

// deliveryEntry has what go-github's struct lacks.
type deliveryEntry struct {
	*github.HookDelivery
	ThrottledAt *github.Timestamp `json:"throttled_at"`
	URL         string            `json:"url"`
}

func (d *delivery) render(full bool) deliveryEntry {
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
	if full {
		raw, answer := json.RawMessage(d.Payload), textOf(d.response)
		out.Request = &github.HookRequest{Headers: flat(d.header), RawPayload: &raw}
		out.Response = &github.HookResponse{Headers: flat(d.replied), RawPayload: &answer}
	}
	return deliveryEntry{HookDelivery: out, URL: d.hook.url}
}

// textOf is a receiver's answer, which need not be JSON, as a JSON text.
func textOf(body []byte) json.RawMessage {
	raw, err := json.Marshal(string(body))
	if err != nil || len(body) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

func flat(h http.Header) map[string]string {
	out := map[string]string{}
	for name := range h {
		out[name] = h.Get(name)
	}
	return out
}

// listDeliveries is paged by a cursor, newest first. Those still under way are not
// listed yet.
func listDeliveries(rq *request, h *Hook) error {
	per := min(max(atoiOr(rq.query("per_page"), 30), 1), 100)
	cursor, err := strconv.ParseInt(rq.query("cursor"), 10, 64)
	if rq.query("cursor") != "" && err != nil {
		return invalid("Delivery", "cursor", "invalid", "")
	}
	out := []deliveryEntry{}
	for i := len(h.deliveries) - 1; i >= 0; i-- {
		d := h.deliveries[i]
		failed := d.StatusCode < 200 || d.StatusCode >= 400
		switch {
		case d.StatusCode == 0, h.expired(d), cursor != 0 && d.ID > cursor,
			rq.query("status") == "failure" && !failed, rq.query("status") == "success" && failed:
			continue
		case len(out) == per:
			next := rq.URL.Query()
			next.Set("cursor", itoa(d.ID))
			rq.setLinks([]string{rq.link(url.Values(next), "next")})
			return rq.ok(out)
		}
		out = append(out, d.render(false))
	}
	return rq.ok(out)
}

func getDelivery(rq *request, h *Hook) error {
	for _, d := range h.deliveries {
		if d.ID == rq.pathInt("delivery") && !h.expired(d) {
			return rq.ok(d.render(true))
		}
	}
	return errNotFound()
}

func postAttempt(rq *request, h *Hook) error {
	if err := h.redeliver(rq.pathInt("delivery")); err != nil {
		return err
	}
	return rq.reply(http.StatusAccepted, map[string]any{})
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
