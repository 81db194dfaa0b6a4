package embedded_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// post sends a body to the GraphQL API.
func (w *world) post(path, token, body string) (status int, text string, header http.Header) {
	w.Helper()
	rq, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.hub.URL()+path, strings.NewReader(body))
	w.no(err)
	if token != "" {
		rq.Header.Set("Authorization", "bearer "+token)
	}
	answer, err := http.DefaultClient.Do(rq)
	w.no(err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	w.no(err)
	return answer.StatusCode, string(raw), answer.Header
}

func (w *world) ask(token, query string, variables map[string]any) string {
	w.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	w.no(err)
	status, text, _ := w.post("/graphql", token, string(body))
	if status != http.StatusOK {
		w.Fatalf("%d: %s", status, text)
	}
	return text
}

type queueEntry struct {
	Position    int
	State       string
	Base        struct{ OID string } `json:"baseCommit"`
	Head        struct{ OID string } `json:"headCommit"`
	PullRequest struct {
		Number     int
		HeadRefOID string
	}
}

const queueQuery = `query Queue($owner: String!, $name: String!, $branch: String, $first: Int, $after: String) {
  # the entries, in order
  repository(owner: $owner, name: $name) { mergeQueue(branch: $branch) { entries(first: $first, after: $after) {
    totalCount, nodes { position state baseCommit { oid } headCommit { oid } pullRequest { number headRefOid } } pageInfo { hasNextPage endCursor } } } } }`

// entries lists a queue one page after the other, with two entries on a page. Without a branch it is
// that of the default branch.
func (w *world) entries(branch string) (all []queueEntry) {
	w.Helper()
	variables := map[string]any{"owner": "alice", "name": "kernels", "first": 2}
	if branch != "" {
		variables["branch"] = branch
	}
	for {
		var got struct {
			Data struct {
				Repository struct {
					MergeQueue struct {
						Entries struct {
							TotalCount int
							Nodes      []queueEntry
							PageInfo   struct {
								HasNextPage bool
								EndCursor   string
							}
						}
					}
				}
			}
			Errors []any
		}
		text := w.ask(w.inst.Token(), queueQuery, variables)
		w.no(json.Unmarshal([]byte(text), &got))
		page := got.Data.Repository.MergeQueue.Entries
		all = append(all, page.Nodes...)
		if len(got.Errors) > 0 || !page.PageInfo.HasNextPage && page.TotalCount != len(all) || len(page.Nodes) > 2 {
			w.Fatal(text)
		}
		if !page.PageInfo.HasNextPage {
			return all
		}
		variables["after"] = page.PageInfo.EndCursor
	}
}

// The answers to requests that GitHub does not serve.
func TestGraphQLErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	w.protectQueue("main", 0)
	w.queue("one", "main")
	_, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "secret", Private: true})
	w.no(err)
	mine := w.hub.CreateToken("alice")
	key, err := testKey()
	w.no(err)
	blind, err := w.hub.CreateApp(embedded.AppOptions{Slug: "blind", Key: key, Permissions: map[string]string{"metadata": "read", "contents": "read", "pull_requests": "write"}})
	w.no(err)
	inst, err := blind.Install(w.repo)
	w.no(err)
	repository := func(rest string) string { return `{ repository(owner: "alice", name: "kernels") { ` + rest + ` } }` }
	for name, tt := range map[string]struct {
		token, query string
		want         []string // parts of the answer
	}{
		"an alias":              {mine, repository(`me: nameWithOwner mergeQueue { entries(first: 1) { totalCount } }`), []string{`"me":"alice/kernels"`, `"totalCount":1`}},
		"no queue":              {mine, repository(`mergeQueue(branch: "next") { entries(first: 1) { totalCount } }`), []string{`{"data":{"repository":{"mergeQueue":null}}}`}},
		"an unknown field":      {mine, repository(`mergeStack { id }`), []string{`"code":"undefinedField"`, `Field 'mergeStack' doesn't exist on type 'Repository'`, `"column":49,"line":1`}},
		"an unknown object":     {mine, `{ viewer { login } }`, []string{`Field 'viewer' doesn't exist on type 'Query'`}},
		"a mutation":            {mine, `mutation { enqueuePullRequest(input: 1) { clientMutationId } }`, []string{`doesn't exist on type 'Mutation'`}},
		"an object as a scalar": {mine, repository(`mergeQueue`), []string{`"code":"selectionMismatch"`}},
		"a scalar as an object": {mine, repository(`nameWithOwner { x }`), []string{`"code":"selectionMismatch"`}},
		"an unknown argument":   {mine, repository(`mergeQueue(of: "main") { entries(first: 1) { totalCount } }`), []string{`"code":"argumentNotAccepted"`}},
		"an argument's type":    {mine, repository(`mergeQueue(branch: 5) { entries(first: 1) { totalCount } }`), []string{`"code":"argumentLiteralsIncompatible"`}},
		"a missing argument":    {mine, `{ repository(owner: "alice") { nameWithOwner } }`, []string{`"code":"missingRequiredArguments"`}},
		"a missing variable":    {mine, `query($a: String!) { repository(owner: $a, name: "x") { nameWithOwner } }`, []string{`Variable $a of type String! was provided invalid value`}},
		"an undefined variable": {mine, `{ repository(owner: $a, name: "x") { nameWithOwner } }`, []string{`"code":"variableNotDefined"`}},
		"no page size":          {mine, repository(`mergeQueue { entries { totalCount } }`), []string{`MISSING_PAGINATION_BOUNDARIES`}},
		"a page too long":       {mine, repository(`mergeQueue { entries(first: 101) { totalCount } }`), []string{`EXCESSIVE_PAGINATION`}},
		"no cursor":             {mine, repository(`mergeQueue { entries(first: 1, after: "x") { totalCount } }`), []string{`INVALID_CURSOR_ARGUMENTS`}},
		"a fragment":            {mine, `{ ...F }`, []string{`Parse error on \".\" at [1, 3]`}},
		"an open end":           {mine, `{ repository(`, []string{`Unexpected end of document`}},
		"an empty object":       {mine, `{ }`, []string{`Parse error on \"}\"`}},
		"too deep":              {mine, strings.Repeat("{a", 100), []string{`Parse error`}},
		"an unknown repository": {mine, `{ repository(owner: "alice", name: "x") { nameWithOwner } }`, []string{`"data":{"repository":null}`, `"type":"NOT_FOUND"`, `"path":["repository"]`, `Could not resolve to a Repository with the name 'alice/x'.`}},
		"a hidden repository":   {w.inst.Token(), `{ repository(owner: "alice", name: "secret") { nameWithOwner } }`, []string{`"type":"NOT_FOUND"`}},
		"a missing permission":  {inst.Token(), repository(`nameWithOwner mergeQueue { entries(first: 1) { totalCount } }`), []string{`"nameWithOwner":"alice/kernels"`, `"mergeQueue":null`, `"type":"FORBIDDEN"`, `"path":["repository","mergeQueue"]`, `Resource not accessible by integration`}},
		"an App's JWT":          {w.jwt(key, 300e9), repository(`mergeQueue { entries(first: 1) { totalCount } }`), []string{`"type":"FORBIDDEN"`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.in(t).ask(tt.token, tt.query, nil)
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	for name, tt := range map[string]struct {
		path, token, body string
		status            int
		want              string
	}{
		"no token":       {"/graphql", "", `{"query":"{ viewer }"}`, 401, "This endpoint requires you to be authenticated."},
		"a wrong token":  {"/graphql", "ghp_x", `{"query":"{ viewer }"}`, 401, "Bad credentials"},
		"no JSON":        {"/graphql", mine, `{"query":`, 400, "Problems parsing JSON"},
		"no query":       {"/graphql", mine, `{}`, 200, "A query attribute must be specified"},
		"on Enterprise":  {"/api/graphql", mine, `{"query":"{ repository(owner: \"alice\", name: \"kernels\") { nameWithOwner } }"}`, 200, "alice/kernels"},
		"the wrong path": {"/api/v3/graphql/x", mine, `{}`, 404, ""},
	} {
		if status, text, _ := w.post(tt.path, tt.token, tt.body); status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	w.hub.SetAllowList("alice", true)
	if got := w.ask(mine, repository(`nameWithOwner`), nil); !strings.Contains(got, "FORBIDDEN") || !strings.Contains(got, "IP allow list") {
		t.Errorf("behind an IP allow list: %s", got)
	}
}

// Queries are counted apart from REST, and are no content. The refusal has status 200.
func TestGraphQLLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{Limits: embedded.Limits{PerHour: 3, ContentPerMinute: 1}})
	mine := w.hub.CreateToken("alice")
	const query = `{"query":"{ repository(owner: \"alice\", name: \"kernels\") { nameWithOwner } }"}`
	for range 3 {
		if status, text, _ := w.post("/graphql", mine, query); status != 200 || strings.Contains(text, "errors") {
			t.Fatalf("%d %s", status, text)
		}
	}
	status, text, header := w.post("/graphql", mine, query)
	if status != 200 || !strings.Contains(text, `"type":"RATE_LIMITED"`) || header.Get("X-RateLimit-Remaining") != "0" || header.Get("X-RateLimit-Resource") != "graphql" {
		t.Errorf("%d %s %v", status, text, header)
	}
	if _, answer, err := w.client(mine).Repositories.Get(w.ctx, "alice", "kernels"); err != nil || answer.Header.Get("X-RateLimit-Resource") != "core" || answer.Header.Get("X-RateLimit-Remaining") != "2" {
		t.Errorf("REST: %v", err)
	}
}
