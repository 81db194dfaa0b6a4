package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

// graphQLPath returns the path of the GraphQL API. On Enterprise Server it lies next to the REST
// API, not below it.
func (h *GitHub) graphQLPath() string {
	if h.api.Path == "/api/v3/" {
		return "/api/graphql"
	}
	return "/graphql"
}

// isGraphQL reports whether a request goes to the GraphQL API. The client sends only queries there,
// which change nothing although their method is POST.
func isGraphQL(rq *http.Request) bool {
	return rq.URL.Path == "/graphql" || rq.URL.Path == "/api/graphql"
}

// query sends a GraphQL query and returns the answer's body, which may hold errors.
func (h *GitHub) query(ctx context.Context, gh *github.Client, text string, variables map[string]any) ([]byte, error) {
	rq, err := gh.NewRequest(http.MethodPost, h.graphQLPath(), map[string]any{"query": text, "variables": variables})
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	_, err = gh.Do(ctx, rq, &body)
	return body.Bytes(), err
}

// graphQLErrors are the errors in an answer of the GraphQL API.
type graphQLErrors []graphQLError

type graphQLError struct {
	Type       string `json:"type"` // of an error that occurred while GitHub executed the query
	Message    string `json:"message"`
	Path       []any  `json:"path"`
	Extensions struct {
		Code string `json:"code"` // of an error that GitHub found before it executed the query
	} `json:"extensions"`
}

func (all graphQLErrors) find(meant func(graphQLError) bool) *graphQLError {
	if i := slices.IndexFunc(all, meant); i >= 0 {
		return &all[i]
	}
	return nil
}

func (all graphQLErrors) Error() string {
	var texts []string
	for _, e := range all {
		kind := e.Type
		if kind == "" {
			kind = e.Extensions.Code
		}
		texts = append(texts, strings.TrimSpace(kind+" "+e.Message))
	}
	return "GitHub answered the query with errors: " + strings.Join(texts, "; ")
}

// limited reports whether the identity has used its GraphQL points. GitHub has sent both names.
func (e graphQLError) limited() bool { return e.Type == "RATE_LIMITED" || e.Type == "RATE_LIMIT" }

// away reports whether the error concerns the whole repository or installation.
func (e graphQLError) away() bool {
	return e.Type == "FORBIDDEN" && away(http.StatusForbidden, e.Message)
}

// fault reports whether GitHub gives no reason, as it does for timeouts and its own failures.
func (e graphQLError) fault() bool { return e.Type == "" && e.Extensions.Code == "" }

// asREST gives an answer of the GraphQL API the status that the REST API would have, so that the
// layers of the transport wait for limits, retry faults and notice an IP allow list. GraphQL
// answers 200 for all of them. It leaves other errors to the caller.
func asREST(answer *http.Response) {
	if answer.StatusCode != http.StatusOK {
		return
	}
	var got struct {
		Errors graphQLErrors `json:"errors"`
	}
	if json.Unmarshal(peek(answer), &got) != nil {
		return // the caller reports it
	}
	for _, c := range []struct {
		status int
		meant  func(graphQLError) bool
	}{
		{http.StatusTooManyRequests, graphQLError.limited},
		{http.StatusForbidden, graphQLError.away},
		{http.StatusBadGateway, graphQLError.fault},
	} {
		e := got.Errors.find(c.meant)
		if e == nil {
			continue
		}
		if c.status == http.StatusTooManyRequests {
			answer.Header.Set("X-RateLimit-Remaining", "0") // GitHub may still show points that are spent
		}
		body, _ := json.Marshal(map[string]string{"message": e.Message}) // a map of strings always marshals
		answer.StatusCode, answer.Status = c.status, fmt.Sprintf("%d %s", c.status, http.StatusText(c.status))
		fill(answer, body)
		return
	}
}
