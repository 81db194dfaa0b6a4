package embedded_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/embedded/openapi"
)

// A witness is a transport that compares each answer with GitHub's API description.
type witness struct {
	t    *testing.T
	d    *openapi.Description
	seen map[string]bool
}

func (w *witness) RoundTrip(rq *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(rq)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	path := strings.TrimPrefix(rq.URL.Path, "/api/v3")
	// GitHub redirects to these paths but does not describe them.
	if strings.HasPrefix(path, "/repositories/") {
		return answer, nil
	}
	operation := w.d.Operation(rq.Method, path)
	if operation == nil {
		w.t.Errorf("GitHub has no %s %s", rq.Method, path)
		return answer, nil
	}
	call := rq.Method + " " + operation.Path
	status := strconv.Itoa(answer.StatusCode)
	wrong, known, compared := operation.Answer(status, raw)
	if !known && status != "403" { // few calls describe their refusals
		w.t.Errorf("%s answers %s, which GitHub does not", call, status)
	}
	if compared {
		w.seen[call+" "+status] = true
	}
	w.complain(call, wrong)
	return answer, nil
}

func (w *witness) complain(call string, wrong []string) {
	for _, line := range wrong {
		if knownMistake(call, line) {
			continue
		}
		w.t.Errorf("%s: %s", call, line)
	}
}

// knownMistake reports whether the difference is a known mistake of the description.
func knownMistake(call, line string) bool {
	// A label without a description has null, in lists of pull requests, too.
	label := strings.Contains(line, ".labels[") && strings.HasSuffix(line, "].description is null")
	// An account is a user or an enterprise. Only this list requires the fields of both.
	both := call == "GET /app/installations" && strings.Contains(line, ".account.") && strings.HasSuffix(line, " is missing")
	return label || both
}

// TestAnswersMatchGitHubsDescription calls the whole API once. It checks every answer and every
// webhook against the description that GitHub publishes.
func TestAnswersMatchGitHubsDescription(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, embedded.Options{})
	eye := &witness{t: t, d: d, seen: map[string]bool{}}
	client := func(token string) *github.Client {
		c, err := github.NewClient(&http.Client{Transport: eye}).WithAuthToken(token).WithEnterpriseURLs(w.hub.URL(), w.hub.URL())
		w.no(err)
		return c
	}
	key, err := testKey()
	w.no(err)
	app, bot, alice := client(w.jwt(key, 5*time.Minute)), client(w.inst.Token()), client(w.hub.CreateToken("alice"))
	w.repo.Protect("main", "kernelgate")
	pr := w.opened()
	w.no(pr.Label("alice", "optimisation"))
	const o, r = "alice", "kernels"
	sha := pr.HeadSHA()

	calls := map[string]func() error{
		"app":        func() error { _, _, err := app.Apps.Get(w.ctx, ""); return err },
		"insts":      func() error { _, _, err := app.Apps.ListInstallations(w.ctx, nil); return err },
		"repo inst":  func() error { _, _, err := app.Apps.FindRepositoryInstallation(w.ctx, o, r); return err },
		"token":      func() error { _, _, err := app.Apps.CreateInstallationToken(w.ctx, w.inst.ID(), nil); return err },
		"deliveries": func() error { _, _, err := app.Apps.ListHookDeliveries(w.ctx, nil); return err },
		"inst repos": func() error { _, _, err := bot.Apps.ListRepos(w.ctx, nil); return err },
		"repo":       func() error { _, _, err := bot.Repositories.Get(w.ctx, o, r); return err },
		"permission": func() error { _, _, err := bot.Repositories.GetPermissionLevel(w.ctx, o, r, o); return err },
		"pulls":      func() error { _, _, err := bot.PullRequests.List(w.ctx, o, r, nil); return err },
		"pull":       func() error { _, _, err := bot.PullRequests.Get(w.ctx, o, r, 1); return err },
		"reviews":    func() error { _, _, err := bot.PullRequests.ListReviews(w.ctx, o, r, 1, nil); return err },
		"events":     func() error { _, _, err := bot.Issues.ListIssueEvents(w.ctx, o, r, 1, nil); return err },
		"user":       func() error { _, _, err := alice.Users.Get(w.ctx, ""); return err },
		"comment": func() error {
			c, _, err := bot.Issues.CreateComment(w.ctx, o, r, 1, &github.IssueComment{Body: github.String("x")})
			w.no(err)
			_, _, err = bot.Issues.EditComment(w.ctx, o, r, c.GetID(), &github.IssueComment{Body: github.String("y")})
			w.no(err)
			_, _, err = bot.Reactions.CreateIssueCommentReaction(w.ctx, o, r, c.GetID(), "rocket")
			w.no(err)
			_, err = bot.Issues.DeleteComment(w.ctx, o, r, c.GetID())
			w.no(err)
			_, _, err = bot.Issues.ListComments(w.ctx, o, r, 1, nil)
			return err
		},
		"issue": func() error {
			i, _, err := bot.Issues.Create(w.ctx, o, r, &github.IssueRequest{Title: github.String("t"), Body: github.String("b"), Labels: &[]string{"kernelgate"}})
			w.no(err)
			_, _, err = bot.Issues.CreateComment(w.ctx, o, r, i.GetNumber(), &github.IssueComment{Body: github.String("x")})
			w.no(err)
			for _, state := range []string{"closed", "open"} {
				_, _, err = bot.Issues.Edit(w.ctx, o, r, i.GetNumber(), &github.IssueRequest{State: &state, Body: github.String(state)})
				w.no(err)
			}
			for _, number := range []int{1, i.GetNumber()} {
				_, _, err = bot.Issues.Get(w.ctx, o, r, number)
				w.no(err)
			}
			_, _, err = bot.Issues.ListByRepo(w.ctx, o, r, nil)
			return err
		},
		"check": func() error {
			run, _, err := bot.Checks.CreateCheckRun(w.ctx, o, r, github.CreateCheckRunOptions{Name: "kernelgate", HeadSHA: sha})
			w.no(err)
			_, _, err = bot.Checks.UpdateCheckRun(w.ctx, o, r, run.GetID(), github.UpdateCheckRunOptions{Name: "kernelgate", Conclusion: github.String("success"),
				Output: &github.CheckRunOutput{Title: github.String("t"), Summary: github.String("s"), Annotations: annotations(2)}})
			w.no(err)
			_, _, err = bot.Checks.ListCheckRunsForRef(w.ctx, o, r, sha, nil)
			return err
		},
		"status": func() error {
			_, _, err := alice.Repositories.CreateStatus(w.ctx, o, r, sha, &github.RepoStatus{State: github.String("success"), Context: github.String("c")})
			return err
		},
	}
	w.quiet()
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.no(pr.Merge("alice"))
	_, _, err = bot.PullRequests.Get(w.ctx, o, r, 1)
	w.no(err)
	if len(eye.seen) < 25 {
		t.Errorf("only %d kinds of answers were compared", len(eye.seen))
	}
	w.quiet()
	eye.webhooks(w.app.Hook().Deliveries())
}

// webhooks compares payloads with the description.
func (w *witness) webhooks(deliveries []embedded.Delivery) {
	compared := 0
	for _, d := range deliveries {
		name := strings.ReplaceAll(d.Event, "_", "-")
		if d.Action != "" {
			name += "-" + strings.ReplaceAll(d.Action, "_", "-")
		}
		wrong, known := w.d.Webhook(name, d.Payload)
		if !known {
			w.t.Errorf("GitHub has no webhook %s", name)
			continue
		}
		compared++
		w.complain("webhook "+name, wrong)
	}
	if compared < 10 {
		w.t.Errorf("only %d webhooks were compared", compared)
	}
}
