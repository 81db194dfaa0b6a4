package app_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/app"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/policies/usage"
)

var allFiles = []string{"kernelgate.yaml", "private-key.pem", "webhook-secret"}

// TestMakesAnAppThatWorks performs the whole setup: the page, GitHub's form, the redirect back, the
// files. Then it lets the bot read them.
func TestMakesAnAppThatWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.CreateOrg("acme")
	w.opt.Org = "acme"
	page, result := w.start(t.Context())
	_, first := w.get(page)
	back := w.press(page)
	answer, last := w.get(back)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", answer.Status, last)
	}
	w.no(<-result)
	if got := w.files(); !slices.Equal(got, allFiles) {
		t.Errorf("the folder holds %v", got)
	}
	host := hostOf(t, page)
	w.golden("begin.html", first, host)
	w.golden("finish.html", last, host)
	w.golden("terminal.txt", w.out.String(), host)
	w.golden("kernelgate.yaml", w.read("kernelgate.yaml"), host)

	for name, want := range map[string]fs.FileMode{"": 0o700, "private-key.pem": 0o600, "webhook-secret": 0o600, "kernelgate.yaml": 0o644} {
		info, err := os.Stat(filepath.Join(w.opt.Dir, name))
		w.no(err)
		if info.Mode().Perm() != want {
			t.Errorf("%q has mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
	none := func(string) string { return "" }
	config, err := serve.Load(serve.Sources{File: filepath.Join(w.opt.Dir, "kernelgate.yaml"), Getenv: none})
	w.no(err)
	secrets, err := config.ReadSecrets(none, func(text string) { t.Error(text) })
	w.no(err)
	for _, shown := range []string{w.out.String(), w.seen.String()} {
		if strings.Contains(shown, "PRIVATE KEY") || strings.Contains(shown, string(secrets.Webhooks[0])) {
			t.Errorf("a secret is shown:\n%s", shown)
		}
	}

	made := w.hub.App("my-gate")
	repo, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "acme", Name: "kernels"})
	w.no(err)
	sha, err := repo.Push("main", map[string]string{"a.cu": "one\n"}, "first")
	w.no(err)
	_, err = made.Install(repo)
	w.no(err)
	w.no(w.hub.Quiet(t.Context()))
	ping := <-w.webhooks
	w.no(github.ValidateSignature(ping.signature, ping.payload, secrets.Webhooks[0]))
	bot, err := client.NewApp(config.GitHub.AppID, secrets.PrivateKey, client.Options{BaseURL: config.GitHub.APIURL})
	w.no(err)
	if me, err := bot.Me(t.Context()); err != nil || me != "my-gate[bot]" {
		t.Errorf("the bot is %q: %v", me, err)
	}
	if _, err := bot.CreateCheck(t.Context(), "acme/kernels", client.Check{Name: "kernelgate", HeadSHA: sha, Status: "in_progress"}); err != nil {
		t.Error(err)
	}
}

// TestCode sets up a host without a browser, and checks that a code is good for one exchange only.
func TestCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	page, result := w.start(ctx)
	code := regexp.MustCompile(`code=([^&]+)`).FindStringSubmatch(w.press(page))[1]
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted, it returns %v", err)
	}
	if got := w.files(); got != nil {
		t.Fatalf("interrupted, it leaves %v", got)
	}
	if _, err := http.Get(page); err == nil {
		t.Error("the page is still there")
	}
	w.opt.Code, w.opt.Open = code, nil
	w.no(app.Run(t.Context(), w.opt))
	if got := w.files(); !slices.Equal(got, allFiles) {
		t.Errorf("the folder holds %v", got)
	}
	w.opt.Dir = t.TempDir()
	err := app.Run(t.Context(), w.opt)
	var bad usage.Error
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "--code: ") || !strings.Contains(err.Error(), "used already or is older than an hour: start again") || strings.Contains(err.Error(), code) {
		t.Errorf("the second time it says %v", err)
	}
	if got := w.files(); got != nil {
		t.Errorf("the second time it writes %v", got)
	}
}

func TestWrongState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, result := w.start(t.Context())
	back := w.press(page)
	for name, forged := range map[string]string{
		"another state": strings.Replace(back, "state=", "state=x", 1),
		"no state":      regexp.MustCompile(`&?state=[^&]*`).ReplaceAllString(back, ""),
	} {
		answer, text := w.get(forged)
		if answer.StatusCode != http.StatusForbidden || w.files() != nil {
			t.Errorf("%s: %s, and %v is written:\n%s", name, answer.Status, w.files(), text)
		}
	}
	if got := strings.Count(w.out.String(), "from a different setup"); got != 1 {
		t.Errorf("the terminal tells %d times:\n%s", got, w.out)
	}
	if answer, text := w.get(strings.Replace(back, "code=", "code=../", 1)); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a code with a path in it: %s\n%s", answer.Status, text)
	}
	if answer, text := w.get(back); answer.StatusCode != http.StatusOK {
		t.Errorf("the right state: %s\n%s", answer.Status, text)
	}
	w.no(<-result)
}

func TestDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	page, result := w.start(ctx)
	root := "http://" + hostOf(t, page)
	for _, tt := range []struct {
		name, method, address, host string
		status                      int
	}{
		{"the page", "GET", page, "", 200},
		{"another name for the host", "GET", page, "evil.example.com", 403},
		{"the same name with another port", "GET", page, "127.0.0.1:1", 403},
		{"without the key", "GET", root + "/", "", 404},
		{"with another key", "GET", page + "x", "", 404},
		{"a post", "POST", page, "", 405},
		{"a head", "HEAD", page, "", 405},
		{"a post to the way back", "POST", root + "/back", "", 405},
		{"no code", "GET", root + "/back?state=DRAWN2", "", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rq, err := http.NewRequest(tt.method, tt.address, nil)
			if err != nil {
				t.Fatal(err)
			}
			rq.Host = tt.host
			answer, text := w.request(rq)
			if answer.StatusCode != tt.status {
				t.Errorf("%s, want %d", answer.Status, tt.status)
			}
			if tt.status != 200 && strings.Contains(text, "DRAWN2") {
				t.Error("the state is shown")
			}
			policy := answer.Header.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none'; ") || !strings.Contains(policy, "form-action "+w.hub.URL()+" 'self'; ") {
				t.Errorf("the policy is %q", policy)
			}
			if tt.status == 403 {
				w.golden("stop.html", text, hostOf(t, page))
			}
			if _, style, ok := strings.Cut(text, "<style>"); ok {
				style, _, _ = strings.Cut(style, "</style>")
				sum := sha256.Sum256([]byte(style))
				if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
					t.Errorf("the policy %q forbids the page's own style", policy)
				}
			}
		})
	}
	cancel()
	<-result
}

// A lame transport fails the first requests, and can delay one.
type lame struct {
	failures int
	before   func()
}

func (l *lame) RoundTrip(rq *http.Request) (*http.Response, error) {
	if l.failures--; l.failures >= 0 {
		return nil, errors.New("the network is down")
	}
	if l.before != nil {
		l.before()
	}
	return http.DefaultTransport.RoundTrip(rq)
}

func TestReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opt.Transport = &lame{failures: 1}
	page, result := w.start(t.Context())
	back := w.press(page)
	if answer, text := w.get(back); answer.StatusCode != http.StatusBadGateway || !strings.Contains(text, "Reload this page") {
		t.Fatalf("%s: %s", answer.Status, text)
	}
	code := regexp.MustCompile(`code=([^&]+)`).FindStringSubmatch(back)[1]
	if out := w.out.String(); !strings.Contains(out, "the network is down") || strings.Contains(out, code) {
		t.Errorf("the terminal says\n%s", out)
	}
	if answer, text := w.get(back); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", answer.Status, text)
	}
	w.no(<-result)
}

// TestSpent uses a code that another client has already used.
func TestSpent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, result := w.start(t.Context())
	back := w.press(page)
	c, err := github.NewClient(nil).WithEnterpriseURLs(w.hub.URL(), w.hub.URL())
	w.no(err)
	_, _, err = c.Apps.CompleteAppManifest(t.Context(), regexp.MustCompile(`code=([^&]+)`).FindStringSubmatch(back)[1])
	w.no(err)
	if answer, text := w.get(back); answer.StatusCode != http.StatusGone {
		t.Errorf("%s: %s", answer.Status, text)
	}
	if err := <-result; err == nil || !strings.Contains(err.Error(), "used already or is older than an hour: start again") || w.files() != nil {
		t.Errorf("%v, and %v is written", err, w.files())
	}
}

// TestInterruptedTooLate checks that an exchange that has begun runs to its end.
func TestInterruptedTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.opt.Transport = &lame{before: cancel}
	page, result := w.start(ctx)
	if answer, text := w.get(w.press(page)); answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", answer.Status, text)
	}
	w.no(<-result)
	if got := w.files(); !slices.Equal(got, allFiles) {
		t.Errorf("the folder holds %v", got)
	}
}

func TestNobodyComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opt.Wait = time.Nanosecond
	if err := app.Run(t.Context(), w.opt); err == nil || !strings.Contains(err.Error(), "in time: start again") || w.files() != nil {
		t.Errorf("%v, and %v is written", err, w.files())
	}
}

// TestRescue creates the files in between, while the browser is at GitHub.
func TestRescue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, result := w.start(t.Context())
	back := w.press(page)
	w.no(os.MkdirAll(w.opt.Dir, 0o700))
	w.no(os.WriteFile(filepath.Join(w.opt.Dir, "webhook-secret"), []byte("of another"), 0o600))
	answer, text := w.get(back)
	if answer.StatusCode != http.StatusInternalServerError {
		t.Errorf("%s: %s", answer.Status, text)
	}
	err := <-result
	if err == nil {
		t.Fatal("no error")
	}
	if got := w.files(); !slices.Equal(got, []string{"webhook-secret"}) || w.read("webhook-secret") != "of another" {
		t.Errorf("the folder holds %v", got)
	}
	saved, globErr := filepath.Glob(filepath.Join(w.opt.TempDir, "*"))
	w.no(globErr)
	if len(saved) != 1 || !strings.Contains(err.Error(), saved[0]) {
		t.Fatalf("%v is saved, and told is: %v", saved, err)
	}
	info, statErr := os.Stat(saved[0])
	w.no(statErr)
	raw, readErr := os.ReadFile(saved[0])
	w.no(readErr)
	if info.Mode().Perm() != 0o600 || !strings.Contains(string(raw), "BEGIN RSA PRIVATE KEY") || !strings.Contains(string(raw), `"webhook_secret": "`) {
		t.Errorf("%v with mode %v", saved, info.Mode())
	}
	if shown := err.Error() + w.out.String() + w.seen.String(); strings.Contains(shown, "PRIVATE KEY") {
		t.Errorf("the key is shown:\n%s", shown)
	}
	w.golden("rescue.txt", strings.ReplaceAll(err.Error(), saved[0], "/tmp/kernelgate-setup-1.json")+"\n", hostOf(t, page))
}

// TestRescueFails checks the message if the secrets cannot be saved at all.
func TestRescueFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, result := w.start(t.Context())
	back := w.press(page)
	w.no(os.MkdirAll(filepath.Join(w.opt.Dir, "kernelgate.yaml"), 0o700))
	w.no(os.Remove(w.opt.TempDir))
	if answer, text := w.get(back); answer.StatusCode != http.StatusInternalServerError {
		t.Errorf("%s: %s", answer.Status, text)
	}
	if err := <-result; err == nil || !strings.Contains(err.Error(), "they are lost: create a new key") {
		t.Errorf("told is: %v", err)
	}
	if got := w.files(); !slices.Equal(got, []string{"kernelgate.yaml"}) {
		t.Errorf("the folder holds %v", got)
	}
}
