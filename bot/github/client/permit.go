package client

import (
	"context"
	"net/http"
)

// permit lets a write through only where the bot may write at that moment. It is the last layer before the wire: whatever
// a request has waited for, it was before.
type permit struct {
	ask  func(context.Context) error
	next http.RoundTripper
}

func (p *permit) RoundTrip(rq *http.Request) (*http.Response, error) {
	if writes(rq) {
		if err := p.ask(rq.Context()); err != nil {
			return nil, &notSent{err}
		}
	}
	return p.next.RoundTrip(rq)
}
