package app_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/app"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// TestRefusals checks that a mistake is reported before the user is sent anywhere, and that the
// message names the flag.
func TestRefusals(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	taken := t.TempDir()
	for _, name := range []string{"file", "private-key.pem"} {
		if err := os.WriteFile(filepath.Join(taken, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*app.Options)
		want   string
	}{
		{"no url", func(o *app.Options) { o.URL = "" }, "--url: is required"},
		{"url without https", func(o *app.Options) { o.URL = "http://gate.example.com" }, "--url: \"http://gate.example.com\" is not https"},
		{"url without a scheme", func(o *app.Options) { o.URL = "gate.example.com" }, "--url: "},
		{"url with a password", func(o *app.Options) { o.URL = "https://a:b@gate.example.com" }, "--url: "},
		{"url with a query", func(o *app.Options) { o.URL = "https://gate.example.com?a=b" }, "--url: "},
		{"name too long", func(o *app.Options) { o.Name = strings.Repeat("x", 35) }, "--name: "},
		{"name with a line in it", func(o *app.Options) { o.Name = "a\nb" }, "--name: "},
		{"organisation with a path", func(o *app.Options) { o.Org = "../x" }, "--org: "},
		{"github without https", func(o *app.Options) { o.GitHub = "http://github.example.com" }, "--github: "},
		{"github with a path", func(o *app.Options) { o.GitHub = "https://github.example.com/acme" }, "--github: "},
		{"listen for everybody", func(o *app.Options) { o.Listen = "0.0.0.0:0" }, "--listen: \"0.0.0.0:0\" is not an address on the loopback"},
		{"listen for everybody, shorter", func(o *app.Options) { o.Listen = ":8765" }, "--listen: "},
		{"listen on a port that is taken", func(o *app.Options) { o.Listen = busy.Addr().String() }, "--listen: "},
		{"code with a path", func(o *app.Options) { o.Code = "a/../b" }, "--code: "},
		{"no folder", func(o *app.Options) { o.Dir = "" }, "--dir: "},
		{"a file for a folder", func(o *app.Options) { o.Dir = filepath.Join(taken, "file") }, "--dir: "},
		{"below a file", func(o *app.Options) { o.Dir = filepath.Join(taken, "file", "below") }, "--dir: "},
		{"files that are there", func(o *app.Options) { o.Dir = taken }, "private-key.pem already exists (choose a different --dir, or overwrite it with --force)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opt := app.Options{URL: "https://gate.example.com", Dir: filepath.Join(t.TempDir(), "new"), GitHub: "https://github.com", Out: &screen{},
				Random: func() string { return "x" }, Open: func(string) error { t.Error("a browser is opened"); return nil }}
			tt.change(&opt)
			err := app.Run(t.Context(), opt)
			var bad usage.Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it says %v, want %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("it takes several lines: %v", err)
			}
		})
	}
}

// A recorder stores the URL of the first request, and sends none.
type recorder struct{ first string }

func (r *recorder) RoundTrip(rq *http.Request) (*http.Response, error) {
	if r.first == "" {
		r.first = rq.URL.String()
	}
	return nil, errors.New("not today")
}

// TestAddresses compares the URLs with those that the bot will use.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, github := range []string{"https://github.com", "https://www.github.com/", "https://api.github.com", "https://github.example.com",
		"https://GitHub.example.com:8443/api/v3/", "https://acme.ghe.com", "https://api.acme.ghe.com", "http://127.0.0.1:9"} {
		t.Run(github, func(t *testing.T) {
			theirs, ours := &recorder{}, &recorder{}
			h, err := client.NewToken("x", client.Options{BaseURL: github, Transport: theirs, Sleep: func(context.Context, time.Duration) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Me(t.Context()); err == nil {
				t.Fatal("a request got through")
			}
			opt := app.Options{URL: "https://gate.example.com", Dir: filepath.Join(t.TempDir(), "new"), GitHub: github, Out: &screen{},
				Random: func() string { return "x" }, Code: "abc", Transport: ours}
			if err := app.Run(t.Context(), opt); err == nil || !strings.Contains(err.Error(), "not today; the code is good for an hour") || strings.Contains(err.Error(), "abc") {
				t.Errorf("it says %v", err)
			}
			if want := strings.TrimSuffix(theirs.first, "user") + "app-manifests/abc/conversions"; ours.first != want {
				t.Errorf("the code goes to %s, want %s", ours.first, want)
			}
			opt.Code, opt.Transport = "", nil
			opt.Open = func(address string) error {
				answer, err := http.Get(address)
				if err != nil {
					return err
				}
				defer answer.Body.Close()
				want := "form-action " + strings.TrimSuffix(h.CloneURL("o/n"), "/o/n.git") + " "
				if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy, want) {
					t.Errorf("the policy is %q, want %q in it", policy, want)
				}
				return nil
			}
			opt.Wait = 1 // no browser will come
			if err := app.Run(t.Context(), opt); err == nil {
				t.Error("somebody came")
			}
		})
	}
}

func TestBrowser(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		uid  int
		env  string
		want bool
	}{
		{"a desk", 1000, "DISPLAY", true},
		{"a newer desk", 1000, "WAYLAND_DISPLAY", true},
		{"a server", 1000, "", false},
		{"root", 0, "DISPLAY", false},
		{"the other end of ssh", 1000, "DISPLAY SSH_CONNECTION", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			getenv := func(name string) string {
				if slices.Contains(strings.Fields(tt.env), name) {
					return "set"
				}
				return ""
			}
			if got := app.Browser(tt.uid, getenv) != nil; got != tt.want {
				t.Errorf("a browser: %v, want %v", got, tt.want)
			}
		})
	}
}
