package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestThroughAllFaults uses a GitHub with 30 % failing calls. Reads succeed in the end. A write
// that succeeded is present once, and an uncertain write at most once.
func TestThroughAllFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, client.Options{}, embedded.Limits{})
			w.hub.SetFaults(embedded.Faults{Rate: 0.3, Seed: seed})
			var all sync.WaitGroup
			tally := &tally{done: map[string]error{}}
			for worker := range 3 {
				all.Go(func() {
					for i := range 4 {
						w.storm(tally, fmt.Sprintf("%d-%d", worker, i))
					}
				})
			}
			all.Wait()
			w.hub.SetFaults(embedded.Faults{})
			comments, checks := map[string]int{}, map[string]int{}
			for _, c := range w.pr.Comments() {
				comments[c.Body]++
			}
			for _, c := range w.repo.Checks(w.pr.HeadSHA()) {
				checks[c.ExternalID]++
			}
			unknown := 0
			for name, err := range tally.done {
				kind, id, _ := strings.Cut(name, " ")
				n := map[string]map[string]int{"comment": comments, "check": checks}[kind][id]
				switch {
				case err == nil && n != 1:
					t.Errorf("%s succeeded and is there %d times", name, n)
				case err != nil && !errors.Is(err, client.ErrUnknown):
					t.Errorf("%s: %v", name, err)
				case err != nil:
					unknown++
					if n > 1 {
						t.Errorf("%s is unknown and there %d times", name, n)
					}
				}
			}
			if unknown == 0 || unknown == len(tally.done) {
				t.Errorf("%d of %d writes are unknown, which proves nothing", unknown, len(tally.done))
			}
			if s := w.bot.Stats(); s.Retries == 0 || s.Waits[client.Secondary] == 0 {
				t.Errorf("no faults were met: %+v", s)
			}
		})
	}
}

type tally struct {
	mu   sync.Mutex
	done map[string]error
}

func (y *tally) note(name string, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.done[name] = err
}

// storm performs every operation once.
func (w *world) storm(y *tally, id string) {
	sha, n := w.pr.HeadSHA(), w.pr.Number()
	comment, err := w.bot.CreateComment(w.ctx, repo, n, id)
	y.note("comment "+id, err)
	check, err2 := w.bot.CreateCheck(w.ctx, repo, client.Check{Name: "kernelgate", HeadSHA: sha, ExternalID: id})
	y.note("check "+id, err2)
	must := func(what string, err error) {
		if err != nil {
			w.Errorf("%s: %v", what, err)
		}
	}
	if err == nil {
		// A repeatable write must always succeed in the end.
		must("edit", w.bot.EditComment(w.ctx, repo, comment, id))
		must("react", w.bot.React(w.ctx, repo, comment, "eyes"))
	}
	if err2 == nil {
		must("conclude", w.bot.UpdateCheck(w.ctx, repo, check, client.Check{Status: "completed", Conclusion: "success", Title: "PASS", Summary: "s"}))
	}
	must("status", w.newToken(w.hub.CreateToken("alice"), client.Options{}).SetStatus(w.ctx, repo, sha, client.Status{Context: "c", State: "success"}))
	_, err = w.bot.ListComments(w.ctx, repo, n)
	must("comments", err)
	_, err = w.bot.ListChecks(w.ctx, repo, sha, "kernelgate")
	must("checks", err)
	_, err = w.bot.OpenPulls(w.ctx, repo)
	must("pulls", err)
	_, err = w.bot.Permission(w.ctx, repo, "alice")
	must("permission", err)
	_, err = w.bot.MergeQueue(w.ctx, repo, "main")
	must("queue", err)
}

// TestUnknownIsResolvedByLooking does what a caller does after ErrUnknown: read the state, then
// write again.
func TestUnknownIsResolvedByLooking(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	_, err := w.bot.Pull(w.ctx, repo, 1)
	w.no(err)
	for kind, want := range map[embedded.FaultKind]int{embedded.LostAnswer: 1, embedded.Reset: 0, embedded.BadGateway: 0} {
		w.hub.SetFaults(embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{kind}, Only: func(r *http.Request) bool { return r.Method == http.MethodPost }})
		_, err = w.bot.CreateComment(w.ctx, repo, w.pr.Number(), string(kind))
		if !errors.Is(err, client.ErrUnknown) || !strings.Contains(err.Error(), "look before doing it again") {
			t.Errorf("%s: %v", kind, err)
		}
		found := 0
		list, err := w.bot.ListComments(w.ctx, repo, w.pr.Number())
		w.no(err)
		for _, c := range list {
			if c.Mine && c.Body == string(kind) {
				found++
			}
		}
		if found != want {
			t.Errorf("%s: %d comments, want %d", kind, found, want)
		}
	}
}

// TestSecretsStaySecret checks that neither the log nor an error contains a secret.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	secrets := map[string]bool{}
	var lines bytes.Buffer
	w := newWorld(t, client.Options{}, embedded.Limits{})
	opt := client.Options{Log: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug})), Transport: roundTrip(func(rq *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		secrets[strings.TrimPrefix(rq.Header.Get("Authorization"), "Bearer ")] = true
		return w.wire.RoundTrip(rq)
	})}
	w.hub.SetFaults(embedded.Faults{Rate: 0.4})
	var errs []error
	for _, h := range []*client.GitHub{w.newApp(opt), w.newToken("ghp_nobody", opt), w.newToken(w.hub.CreateToken("alice"), opt)} {
		for range 10 {
			_, err := h.CreateComment(w.ctx, repo, w.pr.Number(), "hello")
			_, err2 := h.Pull(w.ctx, repo, 77)
			errs = append(errs, err, err2)
		}
	}
	text := lines.String() + fmt.Sprintf("%v %+v", errs, errs)
	if len(secrets) < 4 || !strings.Contains(text, "request failed") {
		t.Fatalf("%d secrets were used, %d bytes written", len(secrets), len(text))
	}
	for s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%.8s… was written down", s)
		}
	}
}
