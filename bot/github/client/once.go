package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// maxAnswer is far above the size of any page with a hundred entries.
const maxAnswer = 64 << 20

// once sends a request a single time, within the timeout, and reads the answer to its end. A
// connection that breaks in the middle of an answer is thus a fault like any other.
type once struct {
	*env
	next http.RoundTripper
}

func (o *once) RoundTrip(rq *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(rq.Context(), o.opt.Timeout, fmt.Errorf("no answer within %v: %w", o.opt.Timeout, context.DeadlineExceeded))
	defer cancel()
	answer, err := o.next.RoundTrip(rq.WithContext(ctx))
	if err == nil {
		err = slurp(answer)
	}
	if err == nil && isGraphQL(rq) {
		asREST(answer)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		o.stats.request(rq, Lost)
		o.opt.Log.Debug("request failed", "as", o.identity, "method", rq.Method, "path", rq.URL.Path, "err", err)
		return nil, err
	}
	o.stats.request(rq, ending(answer))
	o.admitted(rq, answer)
	o.opt.Log.Debug("request", "as", o.identity, "method", rq.Method, "path", rq.URL.Path, "status", answer.StatusCode)
	return answer, nil
}

var inPath = regexp.MustCompile(`/app/installations/([0-9]+)/|/repos/([^/]+)/`)

// admitted records for which identity an organisation's IP allow list refuses this machine. The
// App's identity asks for the tokens of all installations, and one token serves several accounts,
// so the path of the request names the installation or the account. The path of a GraphQL request
// names neither; its call names the account.
func (o *once) admitted(rq *http.Request, answer *http.Response) {
	who, m := o.identity, inPath.FindStringSubmatch(rq.URL.Path)
	switch {
	case m != nil && m[1] != "":
		who = "installation " + m[1]
	case m != nil && who == "token":
		who += " in " + strings.ToLower(m[2])
	case who == "token" && isGraphQL(rq):
		who += " in " + strings.ToLower(callOf(rq).owner)
	}
	switch {
	case answer.StatusCode < 400:
		o.stats.shut(who, false)
	case answer.StatusCode == http.StatusForbidden && bytes.Contains(peek(answer), []byte(allowList)):
		o.stats.shut(who, true)
	}
}

// slurp reads an answer's body into memory.
func slurp(answer *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	closed := answer.Body.Close()
	switch {
	case err != nil:
		return fmt.Errorf("read the answer: %w", err)
	case len(raw) > maxAnswer:
		return fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	case closed != nil:
		return fmt.Errorf("read the answer: %w", closed)
	}
	fill(answer, raw)
	return nil
}

func fill(answer *http.Response, raw []byte) {
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
}

// peek returns an answer's body, which can be read again afterwards.
func peek(answer *http.Response) []byte {
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		raw = nil // impossible: once has already read the body
	}
	fill(answer, raw)
	return raw
}
