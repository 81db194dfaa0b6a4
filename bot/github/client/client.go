package client

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/google/go-github/v60/github"
)

// A client is go-github's for one identity. Limits are GitHub's per identity, so
// each has its own.
type client struct {
	*github.Client
	source   source
	throttle *throttle // nil where nothing is written that GitHub counts as content
}

// client stacks the layers of the transport. Outermost is what a request meets
// first: a cached answer needs no turn, a write waits for its turn once however
// often it is tried, and each try passes the limits anew and with a fresh token.
func (h *GitHub) client(identity string, src source, content bool) *client {
	e := &env{identity: identity, opt: h.opt, stats: h.stats}
	var stack http.RoundTripper = &once{env: e, next: h.opt.Transport}
	if content && h.opt.MayWrite != nil {
		stack = &permit{ask: h.opt.MayWrite, next: stack}
	}
	stack = &auth{next: stack, source: src, api: h.api}
	var paced *throttle
	if content {
		paced = &throttle{env: e, next: stack, windows: contentWindows(h.opt)}
		stack = paced
	}
	stack = &limits{env: e, next: stack}
	stack = &retry{env: e, next: stack}
	if content {
		stack = newTurn(stack, paced)
	}
	stack = &cache{env: e, next: stack, store: h.cache}
	gh := github.NewClient(&http.Client{Transport: stack})
	gh.BaseURL, gh.UserAgent = h.api, h.opt.UserAgent
	return &client{Client: gh, source: src, throttle: paced}
}

// An env is what the layers of one identity share.
type env struct {
	identity string
	opt      Options
	stats    *counters
}

// do carries out one operation in a repository as whoever is at home there.
func (h *GitHub) do(ctx context.Context, o op, repo string, f func(ctx context.Context, c *github.Client, owner, name string) error) error {
	owner, name, err := splitRepo(repo)
	if err != nil {
		return &Error{Op: o.name, Err: err}
	}
	for fresh := false; ; fresh = true {
		c, err := h.clientOf(ctx, repo)
		if err != nil {
			return h.explain(o, repo, nil, err)
		}
		record := &call{op: o}
		err = f(withCall(ctx, record), c.Client, owner, name)
		// An App that was removed and installed again is another installation; the
		// request itself was never sent.
		gone := errors.Is(err, errNoToken)
		err = h.explain(o, repo, record, err)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Status != http.StatusNotFound && e.Status != http.StatusUnauthorized {
			return err
		}
		h.forget(repo, gone || e.Status == http.StatusUnauthorized)
		if !gone || fresh || h.app == nil {
			return err
		}
	}
}

// alone carries out one operation that concerns no repository.
func (h *GitHub) alone(ctx context.Context, o op, c *client, f func(context.Context, *github.Client) error) error {
	record := &call{op: o}
	return h.explain(o, "", record, f(withCall(ctx, record), c.Client))
}

const perPage = 100

// pages reads a list to its end. A full page without a successor is not trusted
// to be the last: the answer 304 tells of the page and not of those after it.
func pages[T any](fetch func(github.ListOptions) ([]T, *github.Response, error)) ([]T, error) {
	var all []T
	for at := (github.ListOptions{Page: 1, PerPage: perPage}); ; at.Page++ {
		some, answer, err := fetch(at)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < perPage && answer.NextPage == 0 {
			return all, nil
		}
	}
}

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
