package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// enqueue protects main with a merge queue and puts the world's pull request and a second one into it.
func (w *world) enqueue(size int) (second *embedded.PR) {
	w.Helper()
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true, QueueSize: size})
	_, err := w.repo.Push("other", map[string]string{"b.cu": "two\n"}, "other")
	w.no(err)
	second, err = w.repo.OpenPR(embedded.PROptions{Title: "Other", Head: "other"})
	w.no(err)
	for _, pr := range []*embedded.PR{w.pr, second} {
		_, err := w.bot.CreateCheck(w.ctx, repo, client.Check{Name: "kernelgate", HeadSHA: pr.HeadSHA(), Status: "completed", Conclusion: "success", Title: "PASS", Summary: "s"})
		w.no(err)
		w.no(w.repo.Enqueue("alice", pr))
	}
	return second
}

// The entries of a queue chain: each group is built on the one ahead. Batches of several entries do
// not change that.
func TestMergeQueue(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 3} {
		t.Run(fmt.Sprint("batches of ", size), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, client.Options{MayWrite: func(context.Context) error { return nil }}, embedded.Limits{})
			if got, err := w.bot.MergeQueue(w.ctx, repo, "main"); err != nil || len(got) != 0 {
				t.Errorf("a branch without a queue has %v, %v", got, err)
			}
			second := w.enqueue(size)
			heads := w.repo.QueueHeads()
			want := []client.QueueEntry{{Number: w.pr.Number(), PullHead: w.pr.HeadSHA(), Base: w.repo.Head("main"), Head: heads[0]},
				{Number: second.Number(), PullHead: second.HeadSHA(), Base: heads[0], Head: heads[1]}}
			for name, h := range map[string]*client.GitHub{"an App": w.bot, "a token": w.newToken(w.hub.CreateToken("bob"), client.Options{})} {
				got, err := h.MergeQueue(w.ctx, repo, "main")
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%s: %v, entries (-want +got):\n%s", name, err, diff)
				}
			}
			w.no(w.repo.Rename("renamed"))
			if got, err := w.bot.MergeQueue(w.ctx, "alice/renamed", "main"); err != nil || len(got) != 2 {
				t.Errorf("after a rename: %v, %v", got, err)
			}
		})
	}
}

func TestMergeQueueRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	w.enqueue(0)
	key, err := testKey()
	w.no(err)
	blind, err := w.hub.CreateApp(embedded.AppOptions{Slug: "blind", Key: key, Permissions: map[string]string{"metadata": "read", "contents": "read", "pull_requests": "write"}})
	w.no(err)
	_, err = blind.Install(w.repo)
	w.no(err)
	h, err := client.NewApp(blind.ID(), blind.PrivateKeyPEM(), w.options(client.Options{}))
	w.no(err)
	if _, err := h.MergeQueue(w.ctx, repo, "main"); !errors.Is(err, client.ErrNoQueueEntries) || !strings.Contains(err.Error(), "Merge queues: read") {
		t.Errorf("without the permission: %v", err)
	}
	token := w.newToken(w.hub.CreateToken("alice"), client.Options{})
	_, err = token.MergeQueue(w.ctx, "alice/nothing", "main")
	if e := w.refusal(err, http.StatusNotFound); !client.NotFound(err) || errors.Is(err, client.ErrNoQueueEntries) || e.Hint != "check that it exists and that the token may see alice/nothing" {
		t.Errorf("an unknown repository: %v", err)
	}
	_, err = w.newToken("ghp_wrong", client.Options{}).MergeQueue(w.ctx, repo, "main")
	w.refusal(err, http.StatusUnauthorized)
	w.hub.SetAllowList("alice", true)
	_, err = token.MergeQueue(w.ctx, repo, "main")
	if e := w.refusal(err, http.StatusForbidden); !errors.Is(err, client.ErrUnavailable) || !strings.Contains(e.Hint, "IP allow list") || !token.Stats().Shut["token in alice"] {
		t.Errorf("an IP allow list: %v, %v", err, token.Stats().Shut)
	}
	w.hub.SetAllowList("alice", false)
	_, err = token.MergeQueue(w.ctx, repo, "main")
	w.no(err)
	if len(token.Stats().Shut) != 0 {
		t.Errorf("after the list was lifted: %v", token.Stats().Shut)
	}
}

// Queries have their own hourly limit. The client waits for it, and REST goes on meanwhile.
func TestGraphQLLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{CacheBytes: -1}, embedded.Limits{PerHour: 20})
	for range 20 {
		_, err := w.bot.MergeQueue(w.ctx, repo, "main")
		w.no(err)
	}
	began := w.clock.Now()
	if _, err := w.bot.Pull(w.ctx, repo, w.pr.Number()); err != nil || !w.clock.Now().Equal(began) {
		t.Errorf("REST waited %v for GraphQL's limit, %v", w.clock.Now().Sub(began), err)
	}
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	if _, err := w.bot.MergeQueue(ctx, repo, "main"); !errors.Is(err, client.ErrLimited) {
		t.Errorf("with a short deadline: %v", err)
	}
	_, err := w.bot.MergeQueue(w.ctx, repo, "main")
	w.no(err)
	if s := w.bot.Stats(); s.Waits[client.Primary] != 1 || !w.clock.Now().After(began.Add(50*time.Minute)) {
		t.Errorf("waits %v, %v", s.Waits, w.clock.Now().Sub(began))
	}
	// A second client does not know that the points are spent. GitHub tells it with status 200.
	for range 19 {
		_, err := w.bot.MergeQueue(w.ctx, repo, "main")
		w.no(err)
	}
	began = w.clock.Now()
	if _, err := w.newApp(client.Options{}).MergeQueue(w.ctx, repo, "main"); err != nil || !w.clock.Now().After(began) {
		t.Errorf("a client that GitHub refuses waits %v, %v", w.clock.Now().Sub(began), err)
	}
}

// A query changes nothing: it needs no permission to write, is not counted as a write, and is
// repeated after a fault.
func TestQueriesAreReads(t *testing.T) {
	t.Parallel()
	not := errors.New("another one leads")
	w := newWorld(t, client.Options{}, embedded.Limits{})
	w.enqueue(0)
	h := w.newApp(client.Options{MayWrite: func(context.Context) error { return not }, ContentPerMinute: 1, ContentPerHour: 1})
	first := true
	w.hub.SetFaults(embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{embedded.LostAnswer}, Only: func(r *http.Request) bool {
		hit := first && r.URL.Path == "/graphql"
		first = first && !hit
		return hit
	}})
	for range 3 {
		if got, err := h.MergeQueue(client.WithPriority(w.ctx, client.Backlog), repo, "main"); err != nil || len(got) != 2 {
			t.Errorf("%v, %v", got, err)
		}
	}
	if s := h.Stats(); s.Retries != 1 || s.Requests[client.Request{Class: client.Write, Ending: client.OK}] != 1 { // the App's token
		t.Errorf("%+v", s)
	}
}

// These answers come from a GitHub that the embedded one does not imitate.
func TestMergeQueueAnswers(t *testing.T) {
	t.Parallel()
	sha := func(c string) string { return strings.Repeat(c, 40) }
	node := func(position, number int) string {
		return fmt.Sprintf(`{"position":%d,"state":"QUEUED","baseCommit":null,"headCommit":null,"pullRequest":{"number":%d,"headRefOid":%q}}`, position, number, sha("a"))
	}
	page := func(total int, next string, nodes ...string) string {
		return fmt.Sprintf(`{"data":{"repository":{"mergeQueue":{"entries":{"totalCount":%d,"nodes":[%s],"pageInfo":{"hasNextPage":%t,"endCursor":%q}}}}}}`,
			total, strings.Join(nodes, ","), next != "", next)
	}
	problem := func(fields string) string {
		return `{"data":{"repository":{"mergeQueue":null}},"errors":[{` + fields + `}]}`
	}
	none := func(err error) bool { return errors.Is(err, client.ErrNoQueueEntries) }
	other := func(err error) bool {
		return !none(err) && !client.NotFound(err) && !client.IsPermanent(err) && !errors.Is(err, client.ErrUnknown)
	}
	tests := map[string]struct {
		status  int // of the first answer; 0 for 200
		answers []string
		numbers []int
		fails   func(error) bool // nil if it must succeed
		sent    int              // 0 for the number of answers
	}{
		"no group yet, out of order":   {answers: []string{page(2, "", node(2, 8), node(1, 7))}, numbers: []int{7, 8}},
		"two pages":                    {answers: []string{page(2, "x", node(1, 7)), page(2, "", node(2, 8))}, numbers: []int{7, 8}},
		"an entry left between pages":  {answers: []string{page(3, "x", node(1, 7)), page(2, "", node(2, 9)), page(2, "", node(1, 8), node(2, 9))}, numbers: []int{8, 9}},
		"an entry on both pages":       {answers: []string{page(2, "x", node(1, 7)), page(2, "", node(2, 7)), page(1, "", node(1, 7))}, numbers: []int{7}},
		"it never stands still":        {answers: []string{page(9, "", node(1, 7))}, fails: other, sent: 3},
		"it never ends":                {answers: []string{page(9000, "x", node(1, 7))}, fails: other, sent: 10},
		"no next page":                 {answers: []string{strings.Replace(page(2, "", node(1, 7)), "false", "true", 1)}, fails: other},
		"an entry without its pull":    {answers: []string{page(1, "", `{"position":1,"pullRequest":null}`)}, fails: other},
		"a head that is no commit":     {answers: []string{page(1, "", strings.Replace(node(1, 7), sha("a"), "--upload-pack=x", 1))}, fails: other},
		"a group that is no commit":    {answers: []string{page(1, "", strings.Replace(node(1, 7), `"headCommit":null`, `"headCommit":{"oid":"x"}`, 1))}, fails: other},
		"an old server":                {answers: []string{problem(`"extensions":{"code":"undefinedField"},"message":"Field 'mergeQueue' doesn't exist on type 'Repository'"`)}, fails: none},
		"a missing permission":         {answers: []string{problem(`"type":"FORBIDDEN","path":["repository","mergeQueue"],"message":"Resource not accessible by integration"`)}, fails: none},
		"a missing scope":              {answers: []string{problem(`"type":"INSUFFICIENT_SCOPES","message":"Your token has not been granted the required scopes"`)}, fails: none},
		"data next to a refusal":       {answers: []string{strings.TrimSuffix(page(1, "", node(1, 7)), "}") + `,"errors":[{"type":"FORBIDDEN","path":["repository","mergeQueue","entries","nodes",0],"message":"m"}]}`}, fails: none},
		"the repository is not there":  {answers: []string{problem(`"type":"NOT_FOUND","path":["repository"],"message":"Could not resolve"`)}, fails: client.NotFound},
		"something else is not there":  {answers: []string{problem(`"type":"NOT_FOUND","path":["repository","mergeQueue"],"message":"Could not resolve"`)}, fails: other},
		"an unknown error":             {answers: []string{problem(`"type":"UNPROCESSABLE","message":"m"`)}, fails: other},
		"a failure of GitHub, once":    {answers: []string{problem(`"message":"Something went wrong while executing your query."`), page(0, "")}},
		"a failure of GitHub, always":  {answers: []string{problem(`"message":"Something went wrong while executing your query."`)}, fails: other, sent: 6},
		"the newer name of the limit":  {answers: []string{problem(`"type":"RATE_LIMIT","code":"graphql_rate_limit","message":"API rate limit already exceeded"`), page(0, "")}},
		"no GraphQL":                   {status: 404, answers: []string{`{"message":"Not Found"}`}, fails: none},
		"GraphQL is forbidden":         {status: 403, answers: []string{`{"message":"Resource not accessible by integration"}`}, fails: none},
		"the installation is on pause": {status: 403, answers: []string{`{"message":"This installation has been suspended"}`}, fails: func(err error) bool { return !none(err) && errors.Is(err, client.ErrUnavailable) }},
		"no JSON":                      {answers: []string{`<html>`}, fails: other},
		"nothing":                      {answers: []string{`{}`}, fails: other},
		"null":                         {answers: []string{`null`}, fails: other},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, sent := &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}, 0
			h, err := client.NewToken("t", client.Options{Now: c.Now, Sleep: c.Sleep, Transport: roundTrip(func(rq *http.Request) (*http.Response, error) {
				if rq.URL.String() != "https://api.github.com/graphql" || rq.Header.Get("Authorization") != "Bearer t" {
					t.Errorf("%s, %s", rq.URL, rq.Header.Get("Authorization"))
				}
				sent++
				status := http.StatusOK
				if tt.status != 0 && sent == 1 {
					status = tt.status
				}
				return reply(rq, status, tt.answers[min(sent, len(tt.answers))-1]), nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			got, err := h.MergeQueue(t.Context(), repo, "main")
			var numbers []int
			for _, e := range got {
				numbers = append(numbers, e.Number)
			}
			if diff := cmp.Diff(tt.numbers, numbers); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.fails != nil) || err != nil && !tt.fails(err) {
				t.Errorf("error: %v", err)
			}
			if want := max(tt.sent, len(tt.answers)); sent != want {
				t.Errorf("sent %d queries, want %d", sent, want)
			}
		})
	}
}

// reply returns GitHub's answer to a request.
func reply(rq *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Request: rq, Body: io.NopCloser(strings.NewReader(body))}
}
