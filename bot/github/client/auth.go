package client

import (
	"context"
	"net/http"
	"net/url"
)

// auth adds the token to requests to the API, and to no others: GitHub redirects some requests to
// storage that must not see a token. It replaces a refused token once and repeats the request,
// which is safe because GitHub did not execute it.
type auth struct {
	next   http.RoundTripper
	source source
	api    *url.URL
}

func (a *auth) RoundTrip(rq *http.Request) (*http.Response, error) {
	for second := false; ; second = true {
		signed, err := again(rq)
		if err != nil {
			return nil, err
		}
		if rq.URL.Host != a.api.Host || rq.URL.Scheme != a.api.Scheme {
			signed.Header.Del("Authorization")
			return a.next.RoundTrip(signed)
		}
		token, err := a.source.token(rq.Context())
		if err != nil {
			return nil, &notSent{err}
		}
		token.SetAuthHeader(signed)
		answer, err := a.next.RoundTrip(signed)
		if err != nil || answer.StatusCode != http.StatusUnauthorized || second || !a.source.forget(token) {
			return answer, err
		}
	}
}

// permit sends a write only if the bot may write at that moment. It is the last layer before the
// network, so every wait of the request is already over.
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
