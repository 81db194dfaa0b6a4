package embedded_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// testKey is generated once, because generating RSA keys is slow under the race detector.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// A clock stands still until a test advances it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A world is a hub with a repository of alice's, an App installed in it, and a receiver that
// records the webhooks.
type world struct {
	*testing.T
	ctx   context.Context
	clock *clock
	hub   *embedded.Server
	app   *embedded.App
	inst  *embedded.Installation
	repo  *embedded.Repo
	hooks *receiver
}

func newWorld(t *testing.T, opt embedded.Options) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), clock: &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}, hooks: newReceiver(t)}
	opt.Dir, opt.Clock, opt.Seed = t.TempDir(), w.clock.Now, 7
	var err error
	w.hub, err = embedded.New(opt)
	w.no(err)
	t.Cleanup(func() { // the receiver would report a truncated webhook
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := errors.Join(w.hub.Quiet(ctx), w.hub.Close()); err != nil {
			t.Error(err)
		}
		w.checkWebhooks()
	})
	key, err := testKey()
	w.no(err)
	w.app, err = w.hub.CreateApp(embedded.AppOptions{Slug: "kernelgate", Key: key, HookURL: w.hooks.URL, HookSecret: hookSecret})
	w.no(err)
	w.repo, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "kernels"})
	w.no(err)
	w.inst, err = w.app.Install(w.repo)
	w.no(err)
	w.quiet() // events without a repository have a separate queue
	w.push("main", map[string]string{"a.cu": "one\n", "b.cu": "one\n"}, "first")
	return w
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) push(branch string, files map[string]string, message string) string {
	w.Helper()
	sha, err := w.repo.Push(branch, files, message)
	w.no(err)
	return sha
}

func (w *world) open(opt embedded.PROptions) *embedded.PR {
	w.Helper()
	pr, err := w.repo.OpenPR(opt)
	w.no(err)
	return pr
}

// opened returns a pull request that changes a.cu.
func (w *world) opened() *embedded.PR {
	w.Helper()
	w.push("faster", map[string]string{"a.cu": "two\n"}, "faster")
	return w.open(embedded.PROptions{Title: "Faster", Head: "faster"})
}

func (w *world) client(token string) *github.Client {
	w.Helper()
	c, err := github.NewClient(nil).WithAuthToken(token).WithEnterpriseURLs(w.hub.URL(), w.hub.URL())
	w.no(err)
	return c
}

// bot returns the App's client; person returns a user's client with a personal token.
func (w *world) bot() *github.Client                { return w.client(w.inst.Token()) }
func (w *world) person(login string) *github.Client { return w.client(w.hub.CreateToken(login)) }

func (w *world) quiet() {
	w.Helper()
	w.no(w.hub.Quiet(w.ctx))
}

// check creates a completed check run.
func (w *world) check(c *github.Client, sha, name, conclusion string) *github.CheckRun {
	w.Helper()
	run, _, err := c.Checks.CreateCheckRun(w.ctx, "alice", "kernels", github.CreateCheckRunOptions{
		Name: name, HeadSHA: sha, Conclusion: &conclusion,
		Output: &github.CheckRunOutput{Title: github.String("Verdict"), Summary: github.String("words")}})
	w.no(err)
	return run
}

// in returns the world for a subtest, so that failures are reported by the subtest.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.T = t
	return &sub
}

// wantStatus fails the test unless err is GitHub's refusal with this status.
func (w *world) wantStatus(err error, status int) *github.ErrorResponse {
	w.Helper()
	refusal, ok := errors.AsType[*github.ErrorResponse](err)
	if !ok || refusal.Response.StatusCode != status {
		w.Fatalf("got %v, want status %d", err, status)
	}
	return refusal
}

func (w *world) jwt(key *rsa.PrivateKey, life time.Duration) string {
	w.Helper()
	part := func(v any) string {
		raw, err := json.Marshal(v)
		w.no(err)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	now := w.clock.Now()
	text := part(map[string]string{"alg": "RS256", "typ": "JWT"}) + "." +
		part(map[string]any{"iss": fmt.Sprint(w.app.ID()), "iat": now.Unix() - 60, "exp": now.Add(life).Unix()})
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	w.no(err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

const hookSecret = "it is a secret"

// A receiver records webhooks and verifies the signature of each, as a bot would.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	status int
}

type received struct {
	guid, event string
	payload     any
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusAccepted}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		raw, err := github.ValidatePayload(rq, []byte(hookSecret))
		if err != nil {
			t.Errorf("webhook %s: %v", rq.Header.Get("X-GitHub-Event"), err)
		}
		payload, err := github.ParseWebHook(github.WebHookType(rq), raw)
		if err != nil {
			t.Errorf("webhook: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, received{github.DeliveryID(rq), github.WebHookType(rq), payload})
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.got...)
}

// names returns the events in order, as event.action.
func (r *receiver) names() []string {
	var out []string
	for _, e := range r.all() {
		name := e.event
		if a, ok := e.payload.(interface{ GetAction() string }); ok && a.GetAction() != "" {
			name += "." + a.GetAction()
		}
		out = append(out, name)
	}
	return out
}

// last returns the newest payload of a type.
func last[T any](w *world) T {
	w.Helper()
	var found T
	seen := false
	for _, e := range w.hooks.all() {
		if p, ok := e.payload.(T); ok {
			found, seen = p, true
		}
	}
	if !seen {
		w.Fatalf("no %T among %v", found, w.hooks.names())
	}
	return found
}
