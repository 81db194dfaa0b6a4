package client

import (
	"context"
	"net/http"
	"sync/atomic"
)

// An op is one operation of the client as errors tell of it.
type op struct {
	name       string
	permission string // which an App needs for it
	repeatable bool   // a write whose repetition changes nothing further
}

// A call is what the transport learns about one operation on its way. It travels
// in the request's context, because go-github passes neither answers nor causes
// on when a context ends.
type call struct {
	op op
	// uncertain is set once a write was carried out, or may have been and failed. An
	// error of a call without it means that nothing was done.
	uncertain atomic.Bool
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf is the call that a request belongs to; one without has a call of its own.
func callOf(rq *http.Request) *call {
	if c, ok := rq.Context().Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// writes says whether a request changes anything at GitHub.
func writes(rq *http.Request) bool {
	return rq.Method != http.MethodGet && rq.Method != http.MethodHead
}

// again is a copy of a request that can be sent.
func again(rq *http.Request) (*http.Request, error) {
	copied := rq.Clone(rq.Context())
	if rq.Body == nil || rq.Body == http.NoBody || rq.GetBody == nil {
		return copied, nil
	}
	body, err := rq.GetBody()
	if err != nil {
		return nil, err
	}
	copied.Body = body
	return copied, nil
}
