package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

func TestCommentsArePagedAndConditional(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	c := w.bot()
	for i := range 7 {
		_, err := pr.Comment("alice", fmt.Sprint("comment ", i))
		w.no(err)
	}
	var bodies []string
	opt := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 3}}
	for {
		page, answer, err := c.Issues.ListComments(w.ctx, "alice", "kernels", 1, opt)
		w.no(err)
		for _, comment := range page {
			bodies = append(bodies, comment.GetBody())
		}
		if answer.NextPage == 0 {
			break
		}
		if answer.LastPage != 3 {
			t.Errorf("last page %d, want 3", answer.LastPage)
		}
		opt.Page = answer.NextPage
	}
	if len(bodies) != 7 || bodies[6] != "comment 6" {
		t.Errorf("over all pages: %q", bodies)
	}

	ask := func(etag string) *github.Response {
		rq, err := c.NewRequest("GET", "repos/alice/kernels/issues/1/comments", nil)
		w.no(err)
		rq.Header.Set("If-None-Match", etag)
		answer, err := c.BareDo(w.ctx, rq)
		if _, refused := errors.AsType[*github.ErrorResponse](err); err != nil && !refused {
			t.Fatal(err)
		}
		return answer
	}
	first := ask("")
	second := ask(first.Header.Get("ETag"))
	if second.StatusCode != http.StatusNotModified || second.Rate.Remaining != first.Rate.Remaining {
		t.Errorf("unchanged: status %d, remaining %d → %d", second.StatusCode, first.Rate.Remaining, second.Rate.Remaining)
	}
	_, err := pr.Comment("alice", "more")
	w.no(err)
	if third := ask(first.Header.Get("ETag")); third.StatusCode != http.StatusOK || third.Rate.Remaining != first.Rate.Remaining-1 {
		t.Errorf("changed: status %d, remaining %d", third.StatusCode, third.Rate.Remaining)
	}
}

func TestStickyCommentAndReactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	c := w.bot()
	comment, _, err := c.Issues.CreateComment(w.ctx, "alice", "kernels", 1, &github.IssueComment{Body: github.String("measuring")})
	w.no(err)
	_, _, err = c.Issues.EditComment(w.ctx, "alice", "kernels", comment.GetID(), &github.IssueComment{Body: github.String("PASS")})
	w.no(err)
	for range 2 {
		_, _, err = c.Reactions.CreateIssueCommentReaction(w.ctx, "alice", "kernels", comment.GetID(), "eyes")
		w.no(err)
	}
	_, _, err = c.Reactions.CreateIssueCommentReaction(w.ctx, "alice", "kernels", comment.GetID(), "applause")
	w.wantStatus(err, 422)
	_, _, err = c.Issues.CreateComment(w.ctx, "alice", "kernels", 1, &github.IssueComment{Body: github.String(strings.Repeat("é", 32769))})
	if refusal := w.wantStatus(err, 422); !strings.Contains(refusal.Errors[0].Message, "65536") {
		t.Errorf("too long: %v", refusal.Errors)
	}
	_, _, err = c.Issues.CreateComment(w.ctx, "alice", "kernels", 1, &github.IssueComment{Body: github.String(strings.Repeat("é", 32768))})
	w.no(err)
	got := pr.Comments()
	if len(got) != 2 || got[0].Body != "PASS" || got[0].Author != "kernelgate[bot]" {
		t.Fatalf("comments: %d", len(got))
	}
	if diff := cmp.Diff(map[string][]string{"eyes": {"kernelgate[bot]"}}, got[0].Reactions); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}
	w.quiet()
	if names := w.hooks.names(); count(names, "issue_comment.edited") != 1 || count(names, "issue_comment.created") != 2 {
		t.Errorf("events: %v", names)
	}
}

func TestPrimaryLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{Limits: embedded.Limits{PerHour: 3}})
	token := w.hub.CreateToken("alice") // valid for more than an hour
	get := func() error {
		// A new client has not stored any limit.
		_, _, err := w.client(token).Repositories.Get(w.ctx, "alice", "kernels")
		return err
	}
	for range 3 {
		w.no(get())
	}
	refusal, ok := errors.AsType[*github.RateLimitError](get())
	if !ok || refusal.Rate.Remaining != 0 || !refusal.Rate.Reset.Time.Equal(w.clock.Now().Add(time.Hour)) {
		t.Fatalf("the fourth call: %v", refusal)
	}
	if refusal.Rate.Limit != 3 {
		t.Errorf("the limit is said to be %d", refusal.Rate.Limit)
	}
	w.clock.Advance(time.Hour)
	w.no(get())
}

func TestContentCreationLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{Limits: embedded.Limits{ContentPerMinute: 2, RetryAfter: 30 * time.Second}})
	pr := w.opened()
	token := w.inst.Token()
	post := func() error {
		_, _, err := w.client(token).Issues.CreateComment(w.ctx, "alice", "kernels", 1, &github.IssueComment{Body: github.String("x")})
		return err
	}
	w.no(post())
	w.no(post())
	refusal, ok := errors.AsType[*github.AbuseRateLimitError](post())
	if !ok || refusal.GetRetryAfter() != 30*time.Second || refusal.Response.StatusCode != 403 {
		t.Fatalf("the third comment: %v", refusal)
	}
	_, _, err := w.client(token).Issues.ListComments(w.ctx, "alice", "kernels", 1, nil)
	w.no(err)
	w.clock.Advance(time.Minute)
	w.no(post())
	if n := len(pr.Comments()); n != 3 {
		t.Errorf("%d comments, want 3", n)
	}
}

func TestFaultsAreDeterministic(t *testing.T) {
	t.Parallel()
	story := func() (outcomes []string, comments int) {
		w := newWorld(t, embedded.Options{Limits: embedded.Limits{ContentPerMinute: -1, PointsPerMinute: -1}})
		pr := w.opened()
		token := w.inst.Token()
		w.hub.SetFaults(embedded.Faults{Rate: 0.5, Seed: 3})
		for range 60 {
			_, answer, err := w.client(token).Issues.CreateComment(w.ctx, "alice", "kernels", 1, &github.IssueComment{Body: github.String("x")})
			switch {
			case answer != nil:
				outcomes = append(outcomes, answer.Status)
			case err != nil:
				outcomes = append(outcomes, "broken")
			}
		}
		return outcomes, len(pr.Comments())
	}
	first, comments := story()
	second, _ := story()
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
	created := count(first, "201 Created")
	if created < 15 || created > 45 {
		t.Errorf("%d of 60 calls succeeded at a rate of one half", created)
	}
	kinds := slices.Compact(slices.Sorted(slices.Values(first)))
	for _, want := range []string{"500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable", "429 Too Many Requests", "403 Forbidden", "broken"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no %q among %q", want, kinds)
		}
	}
	if comments <= created {
		t.Errorf("%d comments for %d answers: no answer was lost after the deed", comments, created)
	}
}

func TestWaitForSeesWhatManyDoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	c := w.bot()
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			body := fmt.Sprint("comment ", i)
			if _, _, err := c.Issues.CreateComment(w.ctx, "alice", "kernels", 1, &github.IssueComment{Body: &body}); err != nil {
				t.Error(err)
			}
		})
	}
	w.no(w.hub.WaitFor(w.ctx, func() bool { return len(pr.Comments()) == 8 }))
	work.Wait()
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if err := w.hub.WaitFor(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context's end: %v", err)
	}
}
