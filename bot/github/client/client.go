package client

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/google/go-github/v60/github"
)

// A client is go-github's client for one identity. GitHub's limits apply per identity, so each
// identity has its own client.
type client struct {
	*github.Client
	source   source
	throttle *throttle // nil if the client makes no writes that GitHub counts as content
}

// client stacks the layers of the transport, the outermost first. A cached answer needs no turn. A
// write waits for its turn once, however often it is attempted. Each attempt passes the limits
// again and gets a fresh token.
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

// An env holds the values that the layers of one identity share.
type env struct {
	identity string
	opt      Options
	stats    *counters
}

// do executes one operation in a repository, with the client that serves the repository.
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
		record := &call{op: o, owner: owner}
		err = f(withCall(ctx, record), c.Client, owner, name)
		// An App that was removed and installed again has a new installation. The request itself
		// was not sent.
		gone := errors.Is(err, errNoToken)
		err = h.explain(o, repo, record, err)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Status != http.StatusNotFound && e.Status != http.StatusUnauthorized {
			return err
		}
		h.forget(repo, gone || e.Status == http.StatusUnauthorized)
		if fresh || h.app == nil || !gone && !h.servedByOther(ctx, repo, c) {
			return err
		}
	}
}

// servedByOther reports whether an installation serves a repository that is not the one which the
// client knew: the name went to a repository of a different installation. A request that was
// answered with 404 was not executed, so it may be sent to that one.
func (h *GitHub) servedByOther(ctx context.Context, repo string, knew *client) bool {
	now, err := h.clientOf(ctx, repo)
	return err == nil && now != knew
}

// alone executes one operation that concerns no repository.
func (h *GitHub) alone(ctx context.Context, o op, c *client, f func(context.Context, *github.Client) error) error {
	record := &call{op: o}
	return h.explain(o, "", record, f(withCall(ctx, record), c.Client))
}

const perPage = 100

// pages reads a list to its end. A full page without a next link may not be the last one: a 304
// vouches for its own page, but not for the pages after it.
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

// An op describes one operation for error messages and for retries.
type op struct {
	name       string
	permission string // the permission that an App needs for it
	repeatable bool   // a write that changes nothing when it is repeated
}

// A call records what the transport learns about one operation. It travels in the request's
// context, because go-github drops the answer and the cause when a context ends.
type call struct {
	op    op
	owner string // of the repository; empty if the operation concerns none
	// uncertain is set once a write was executed, or failed and may have been executed. If it is
	// not set, an error means that nothing was done.
	uncertain atomic.Bool
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the call of a request, or an empty call if the request has none.
func callOf(rq *http.Request) *call {
	if c, ok := rq.Context().Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// writes reports whether a request changes anything at GitHub.
func writes(rq *http.Request) bool {
	return rq.Method != http.MethodGet && rq.Method != http.MethodHead && !isGraphQL(rq)
}

// again returns a copy of a request that can be sent.
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
