package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/google/go-github/v60/github"
)

// A Delivery is one attempt of GitHub to deliver a webhook.
type Delivery struct {
	ID            int64
	GUID          string // X-GitHub-Delivery, the same in every attempt
	Event, Action string
	At            time.Time // by GitHub's clock
	StatusCode    int       // from the bot's answer, or GitHub's code if there was none
}

// FailedDeliveries returns one page of the App's failed deliveries, newest first, and the cursor of
// the next page. The cursor is empty after the last page. Every failed attempt is listed, even if a
// later attempt succeeded.
func (h *GitHub) FailedDeliveries(ctx context.Context, cursor string) (failed []Delivery, next string, err error) {
	o := op{name: "list the App's failed webhook deliveries"}
	if h.app == nil {
		return nil, "", &Error{Op: o.name, Err: ErrNeedsApp}
	}
	// go-github does not support this filter. An Enterprise server that does not support it either
	// returns all deliveries.
	query := url.Values{"per_page": {strconv.Itoa(perPage)}, "status": {"failure"}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	err = h.alone(ctx, o, h.solo, func(ctx context.Context, c *github.Client) error {
		rq, err := c.NewRequest("GET", "app/hook/deliveries?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		var page []*github.HookDelivery
		answer, err := c.Do(ctx, rq, &page)
		if err != nil {
			return err
		}
		for _, d := range page {
			if code := d.GetStatusCode(); code < 200 || code >= 400 {
				failed = append(failed, Delivery{ID: d.GetID(), GUID: d.GetGUID(), Event: d.GetEvent(), Action: d.GetAction(), At: d.GetDeliveredAt().Time, StatusCode: code})
			}
		}
		if next = answer.Cursor; next == cursor {
			next = ""
		}
		return nil
	})
	return failed, next, err
}

// Redeliver asks GitHub to send a webhook again.
func (h *GitHub) Redeliver(ctx context.Context, id int64) error {
	o := op{name: fmt.Sprintf("ask for delivery %d again", id)}
	if h.app == nil {
		return &Error{Op: o.name, Err: ErrNeedsApp}
	}
	return h.alone(ctx, o, h.solo, func(ctx context.Context, c *github.Client) error {
		_, _, err := c.Apps.RedeliverHookDelivery(ctx, id)
		if _, accepted := errors.AsType[*github.AcceptedError](err); accepted {
			return nil
		}
		return err
	})
}
