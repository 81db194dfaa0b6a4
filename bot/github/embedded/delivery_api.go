package embedded

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/google/go-github/v60/github"
)

// deliveryEntry has what go-github's struct lacks.
type deliveryEntry struct {
	*github.HookDelivery
	ThrottledAt *github.Timestamp `json:"throttled_at"`
	URL         string            `json:"url"`
}

func (d *delivery) render() deliveryEntry {
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
	return deliveryEntry{HookDelivery: out, URL: d.hook.url}
}

// listDeliveries is paged by a cursor, newest first. Those still under way are not
// listed yet.
func listDeliveries(rq *request, app *App) error {
	h := app.hook
	per := min(max(atoiOr(rq.query("per_page"), 30), 1), 100)
	cursor, err := strconv.ParseInt(rq.query("cursor"), 10, 64)
	if rq.query("cursor") != "" && err != nil {
		return invalid("Delivery", "cursor", "invalid", "")
	}
	out := []deliveryEntry{}
	for _, d := range slices.Backward(h.deliveries) {
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
