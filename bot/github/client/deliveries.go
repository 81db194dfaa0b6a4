package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

// A Delivery is one try of GitHub's to deliver a webhook.
type Delivery struct {
	ID   int64
	GUID string // X-GitHub-Delivery, the same in every try
}

// FailedDeliveries are the App's webhooks since a time that no try has
// delivered, each by its newest try, oldest first.
func (h *GitHub) FailedDeliveries(ctx context.Context, since time.Time) ([]Delivery, error) {
	o := op{name: "list the App's webhook deliveries"}
	if h.app == nil {
		return nil, &Error{Op: o.name, Err: ErrNeedsApp}
	}
	var failed []Delivery
	seen, delivered := map[string]bool{}, map[string]bool{}
	err := h.alone(ctx, o, h.solo, func(ctx context.Context, c *github.Client) error {
		for at := (&github.ListCursorOptions{PerPage: perPage}); ; {
			some, answer, err := c.Apps.ListHookDeliveries(ctx, at)
			if err != nil {
				return err
			}
			for _, d := range some { // newest first
				if d.GetDeliveredAt().Before(since) {
					return nil
				}
				guid := d.GetGUID()
				if code := d.GetStatusCode(); code >= 200 && code < 400 {
					delivered[guid] = true
				} else if !seen[guid] {
					failed = append(failed, Delivery{ID: d.GetID(), GUID: guid})
				}
				seen[guid] = true
			}
			if answer.Cursor == "" || answer.Cursor == at.Cursor {
				return nil
			}
			at.Cursor = answer.Cursor
		}
	})
	if err != nil {
		return nil, err
	}
	failed = slices.DeleteFunc(failed, func(d Delivery) bool { return delivered[d.GUID] })
	slices.Reverse(failed)
	return failed, nil
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
