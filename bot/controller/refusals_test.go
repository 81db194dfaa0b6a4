package controller_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// no is an answer by which GitHub refuses.
func no(rq *http.Request, message string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusForbidden, Status: http.StatusText(http.StatusForbidden), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: rq,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"message":%q}`, message))),
	}
}

// checkIn waits for the required check of a commit in a repository.
func (w *world) checkIn(repo *embedded.Repo, sha, conclusion string) {
	w.Helper()
	w.until(conclusion+" at "+sha, func() bool {
		c, _ := repo.Check(sha, "kernelgate")
		return c.Conclusion == conclusion
	})
}

// An installation that GitHub limits for an hour holds up nobody: another's pull
// request gets its verdict at once, and its own gets it after the hour.
func TestLimitedInstallation(t *testing.T) {
	for _, kind := range []embedded.FaultKind{embedded.TooMany, embedded.Secondary} {
		t.Run(string(kind), func(t *testing.T) {
			var ahead atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			w := newWorld(t, worldOptions{two: true, now: now, retold: kind == embedded.TooMany})
			w.settle()
			w.hub.SetFaults(embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{kind}, RetryAfter: time.Hour, Only: func(r *http.Request) bool {
				return strings.Contains(r.URL.Path, "/otto/") && !strings.HasSuffix(r.URL.Path, "/installation") // which the App asks for itself
			}})
			var limited []*embedded.PR
			for i := range 3 {
				limited = append(limited, w.proposeIn(w.other, fmt.Sprint("limited", i), fmt.Sprintf("// speed 1.3%d\n", i), embedded.PROptions{}))
			}
			w.comment(limited[0], "walt", "/explain")
			pr := w.propose("free", "// speed 1.3\n", embedded.PROptions{})
			w.checkIn(w.repo, pr.HeadSHA(), "success")
			w.poll("the deliveries of both", func() bool { c := w.running.bot.Counts(); return c.Handled >= c.Accepted && c.Failed == 0 })
			if _, ok := w.other.Check(limited[0].HeadSHA(), "kernelgate"); ok {
				t.Fatal("the limited installation was not limited")
			}
			w.hub.SetFaults(embedded.Faults{})
			ahead.Store(int64(time.Hour + time.Minute))
			for i, pr := range limited { // a push is news, which ends the pause
				_, err := w.other.Push(fmt.Sprint("limited", i), map[string]string{"README.md": "After the hour.\n"}, "again")
				w.no(err)
				w.checkIn(w.other, pr.HeadSHA(), "success")
			}
		})
	}
}

// An installation that gets no token is no reason to look at no other, whichever is
// listed first.
func TestInstallationThatRefusesTokens(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first=%v", first), func(t *testing.T) {
			var tokens atomic.Value
			tokens.Store("")
			w := newWorld(t, worldOptions{watchful: true, two: true, retold: first, refuse: func(rq *http.Request) *http.Response {
				if at := tokens.Load().(string); at != "" && strings.HasSuffix(rq.URL.Path, at) {
					return no(rq, "Resource not accessible by integration")
				}
				return nil
			}})
			w.settle()
			w.no(w.running.stop())
			refused, in, free := w.inst, w.other, w.repo
			if first {
				refused, in, free = w.mine, w.repo, w.other
			}
			tokens.Store(fmt.Sprintf("/app/installations/%d/access_tokens", refused.ID()))
			w.app.SetHook("", "") // whatever is found is found by looking
			late := w.proposeIn(in, "faster", "// speed 1.3\n", embedded.PROptions{})
			pr := w.proposeIn(free, "faster", "// speed 1.3\n", embedded.PROptions{})
			w.start()
			w.checkIn(free, pr.HeadSHA(), "success")
			tokens.Store("")
			w.checkIn(in, late.HeadSHA(), "success")
		})
	}
}

// A repository that takes nothing is left alone after the first refusals, however many
// pull requests are open there, until it takes part again.
func TestArchivedRepository(t *testing.T) {
	var archived atomic.Bool
	var writes atomic.Int64
	w := newWorld(t, worldOptions{watchful: true, two: true, refuse: func(rq *http.Request) *http.Response {
		switch {
		case !archived.Load():
		case strings.Contains(rq.URL.Path, "/repos/otto/") && rq.Method != http.MethodGet:
			writes.Add(1)
			return no(rq, "Repository was archived so is read-only.")
		case rq.URL.Path == "/api/v3/installation/repositories":
			return archive(rq)
		}
		return nil
	}})
	w.settle()
	archived.Store(true)
	var prs []*embedded.PR
	for i := range 8 {
		prs = append(prs, w.proposeIn(w.other, fmt.Sprint("late", i), fmt.Sprintf("// speed 1.3%d\n", i), embedded.PROptions{}))
	}
	live := w.propose("live", "// speed 1.3\n", embedded.PROptions{})
	w.checkIn(w.repo, live.HeadSHA(), "success")
	seen := w.running.bot.Counts().Reconciled
	w.poll("two reconciliations", func() bool { return w.running.bot.Counts().Reconciled.After(seen.Add(5 * time.Second)) })
	if n := writes.Load(); n > 12 {
		t.Errorf("%d writes were sent to an archived repository with 8 pull requests", n)
	}
	archived.Store(false)
	for _, pr := range prs {
		w.checkIn(w.other, pr.HeadSHA(), "success")
	}
}

// archive passes a list of repositories on, with otto's archived.
func archive(rq *http.Request) *http.Response {
	rq = rq.Clone(rq.Context())
	rq.Header.Del("If-None-Match")
	answer, err := http.DefaultTransport.RoundTrip(rq)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var list struct {
		Total        int              `json:"total_count"`
		Repositories []map[string]any `json:"repositories"`
	}
	if json.NewDecoder(answer.Body).Decode(&list) != nil {
		return nil
	}
	for _, r := range list.Repositories {
		r["archived"] = r["full_name"] == "otto/kernels"
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Del("ETag")
	answer.Header.Del("Content-Length")
	return answer
}

// Where a conversation is locked, commands are followed without a word, and verdicts go
// on.
func TestLockedConversation(t *testing.T) {
	var locked atomic.Bool
	w := newWorld(t, worldOptions{retold: true, refuse: func(rq *http.Request) *http.Response {
		if locked.Load() && rq.Method != http.MethodGet && strings.Contains(rq.URL.Path, "/issues/") {
			return no(rq, "Unable to create comment because issue is locked.")
		}
		return nil
	}})
	pr := w.propose("close", onTheEdge, embedded.PROptions{Title: "Almost"})
	w.concluded(pr.HeadSHA(), "failure")
	locked.Store(true)
	w.comment(pr, "walt", "/rebench rounds=2")
	w.until("a second attempt", func() bool { return len(w.repo.Checks(pr.HeadSHA())) == 4 })
	w.concluded(pr.HeadSHA(), "failure")
	w.expect("a rebench under lock", w.attempts(pr.HeadSHA()), "1111111122")
	_, err := w.repo.Push("close", map[string]string{sourceFile: "// speed 1.3\n"}, "Faster")
	w.no(err)
	w.concluded(pr.HeadSHA(), "success")
}

// deliver sends the bot a signed webhook, and waits until all that follows is done.
func (w *world) deliver(event, id string, payload any) {
	w.Helper()
	w.post(event, id, payload)
	w.settle()
}

// post sends the bot a signed webhook.
func (w *world) post(event, id string, payload any) {
	w.Helper()
	body, err := json.Marshal(payload)
	w.no(err)
	rq, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "http://"+w.addr+"/webhook", bytes.NewReader(body))
	w.no(err)
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("X-GitHub-Event", event)
	rq.Header.Set("X-GitHub-Delivery", id)
	rq.Header.Set("X-Hub-Signature-256", webhook.Sign([]byte(secret), body))
	answer, err := http.DefaultClient.Do(rq)
	w.no(err)
	w.no(answer.Body.Close())
	if answer.StatusCode != http.StatusAccepted {
		w.Fatalf("the delivery was answered with %d", answer.StatusCode)
	}
}

// A bot that loses the lead tells the next leader through the journal what was in flight. Nobody can do so from outside, whatever event a webhook claims to be.
func TestInternalEventsFromOutside(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(pr.HeadSHA(), "success")
	w.settle()
	id := change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()}
	before, err := w.running.journal.Last(w.ctx, id.String())
	w.no(err)
	w.deliver("kernelgate_in_flight", "00000000-0000-0000-0000-000000000001", []string{id.String()})
	err = w.running.bot.Store(w.ctx, webhook.Delivery{ID: "2", Event: "kernelgate_in_flight", Body: []byte(`["` + id.String() + `"]`)})
	if err == nil || !strings.Contains(err.Error(), `there is no event "kernelgate_in_flight"`) {
		t.Errorf("storing it: %v", err)
	}
	w.settle()
	if after, err := w.running.journal.Last(w.ctx, id.String()); err != nil || after.Seq != before.Seq {
		t.Errorf("a webhook made the bot note %s: %v", after.Kind, err)
	}
}

// Whoever asks another App to check again asks nothing of this one, with an App and with
// a token.
func TestAnotherAppsChecks(t *testing.T) {
	for _, pat := range []bool{false, true} {
		t.Run(fmt.Sprintf("token=%v", pat), func(t *testing.T) {
			w := newWorld(t, worldOptions{retold: true, pat: pat})
			pr := w.propose("close", onTheEdge, embedded.PROptions{Title: "Almost"})
			w.until("a verdict", func() bool { return strings.Contains(fmt.Sprint(pr.Comments()), "DEFER") })
			w.settle()
			ours := fmt.Sprintf("pr-%d-%d/kernels/scale", w.repo.ID(), pr.Number()) // which anybody can copy
			about := map[string]any{
				"id": 5, "name": "kernelgate / scale", "external_id": ours, "app": map[string]any{"id": 999_999}, "head_sha": pr.HeadSHA(), "check_suite": map[string]any{"head_branch": "close"},
				"pull_requests": []any{map[string]any{"number": pr.Number(), "base": map[string]any{"repo": map[string]any{"id": w.repo.ID()}}}},
			}
			for i, d := range []struct{ event, field, action string }{
				{"check_suite", "check_suite", "rerequested"}, {"check_run", "check_run", "rerequested"}, {"check_run", "check_run", "requested_action"},
			} {
				w.deliver(d.event, fmt.Sprintf("00000000-0000-0000-0000-00000000000%d", i), map[string]any{
					"action": d.action, d.field: about, "requested_action": map[string]any{"identifier": "rebench"},
					"repository": map[string]any{"id": w.repo.ID(), "full_name": "olga/kernels", "default_branch": "main", "name": "kernels", "owner": map[string]any{"login": "olga"}},
					"sender":     map[string]any{"id": 3, "login": "walt", "type": "User"},
				})
				runs, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{RepoID: w.repo.ID(), Folder: "kernels/scale"})
				w.no(err)
				if len(runs) != 1 {
					t.Fatalf("%s of another App's %s started a measurement", d.action, d.event)
				}
			}
		})
	}
}

// A command is the first that the bot hears of a pull request, while GitHub does not
// tell of it: it is kept, and followed later.
func TestCommandBeforeThePullRequest(t *testing.T) {
	var mute sync.Map
	w := newWorld(t, worldOptions{refuse: func(rq *http.Request) *http.Response {
		if _, ok := mute.Load("pulls"); ok && strings.Contains(rq.URL.Path, "/pulls") {
			return no(rq, "Although you appear to have the correct authorization credentials, your IP address is not permitted")
		}
		return nil
	}})
	w.settle()
	mute.Store("pulls", true)
	w.app.SetHook("", "")
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.app.SetHook("http://"+w.addr+"/webhook", secret)
	w.comment(pr, "rita", "/explain")
	w.no(w.hub.Quiet(w.ctx))
	w.poll("the command", func() bool { c := w.running.bot.Counts(); return c.Handled >= c.Accepted })
	w.no(w.running.stop())
	mute.Delete("pulls")
	w.start()
	w.concluded(pr.HeadSHA(), "success")
	w.reacted(pr, w.firstBy(pr, "rita"), "rocket")
}

func (w *world) firstBy(pr *embedded.PR, who string) embedded.Comment {
	w.Helper()
	for _, c := range pr.Comments() {
		if c.Author == who {
			return c
		}
	}
	w.Fatalf("%s said nothing", who)
	return embedded.Comment{}
}
