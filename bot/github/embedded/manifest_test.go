package embedded_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/github/embedded/openapi"
)

// postManifest posts a manifest as a browser would, but does not follow the redirect.
func (w *world) postManifest(path string, manifest string) (*http.Response, string) {
	w.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.PostForm(w.hub.URL()+path, url.Values{"manifest": {manifest}})
	w.no(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	w.no(err)
	return answer, string(text)
}

// aManifest returns a valid manifest with some fields replaced. A nil value removes its field.
func (w *world) aManifest(replace map[string]any) string {
	w.Helper()
	raw, err := os.ReadFile("../app/app-manifest.json")
	w.no(err)
	m := map[string]any{}
	w.no(json.Unmarshal(raw, &m))
	m["name"], m["redirect_url"] = "My Gate", "http://127.0.0.1:9/back?kept=1"
	m["hook_attributes"] = map[string]any{"url": w.hub.URL() + "/nobody", "active": false}
	for name, value := range replace {
		m[name] = value
		if value == nil {
			delete(m, name)
		}
	}
	raw, err = json.Marshal(m)
	w.no(err)
	return string(raw)
}

func (w *world) codeFrom(answer *http.Response) string {
	w.Helper()
	back, err := answer.Location()
	w.no(err)
	return back.Query().Get("code")
}

func TestManifestMakesAnApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pings := make(chan []byte, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, rq *http.Request) {
		raw, err := io.ReadAll(rq.Body)
		if err != nil {
			t.Error(err)
		}
		pings <- append(raw, "\n"+rq.Header.Get(github.SHA256SignatureHeader)...)
	}))
	t.Cleanup(receiver.Close)
	w.hub.CreateOrg("acme")
	answer, text := w.postManifest("/organizations/acme/settings/apps/new?state=a%26b",
		w.aManifest(map[string]any{"hook_attributes": map[string]any{"url": receiver.URL}}))
	if answer.StatusCode != http.StatusFound {
		t.Fatalf("%s: %s", answer.Status, text)
	}
	back, err := answer.Location()
	w.no(err)
	if q := back.Query(); back.Host != "127.0.0.1:9" || back.Path != "/back" || q.Get("kept") != "1" || q.Get("state") != "a&b" {
		t.Errorf("the browser is sent to %s", back)
	}
	made, response, err := w.nobody().Apps.CompleteAppManifest(w.ctx, w.codeFrom(answer))
	w.no(err)
	if response.StatusCode != http.StatusCreated || made.GetSlug() != "my-gate" || made.GetName() != "My Gate" || made.GetOwner().GetLogin() != "acme" ||
		made.GetHTMLURL() != w.hub.URL()+"/apps/my-gate" || made.GetExternalURL() != "https://kernelgate.example.com" {
		t.Errorf("%s: %+v", response.Status, made)
	}
	w.quiet()
	ping := <-pings
	cut := bytes.LastIndexByte(ping, '\n')
	w.no(github.ValidateSignature(string(ping[cut+1:]), ping[:cut], []byte(made.GetWebhookSecret())))

	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(made.GetPEM()))
	w.no(err)
	w.app = w.hub.App("my-gate")
	self, _, err := w.client(w.jwt(key, 5*time.Minute)).Apps.Get(w.ctx, "")
	w.no(err)
	if self.GetID() != made.GetID() || self.GetSlug() != "my-gate" {
		t.Errorf("the key is good for %+v", self)
	}
	_, _, err = w.nobody().Apps.CompleteAppManifest(w.ctx, w.codeFrom(answer))
	w.wantStatus(err, http.StatusNotFound)
}

func TestConversionsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	offer := func(name string) string {
		answer, text := w.postManifest("/settings/apps/new", w.aManifest(map[string]any{"name": name}))
		if answer.StatusCode != http.StatusFound {
			t.Fatalf("%s: %s", answer.Status, text)
		}
		return w.codeFrom(answer)
	}
	first, same, late := offer("one"), offer("One!"), offer("late")
	made, _, err := w.nobody().Apps.CompleteAppManifest(w.ctx, first)
	w.no(err)
	if made.WebhookSecret != nil {
		t.Error("an App without a webhook has a secret for it")
	}
	_, _, err = w.nobody().Apps.CompleteAppManifest(w.ctx, same)
	w.wantStatus(err, http.StatusUnprocessableEntity)
	w.clock.Advance(time.Hour)
	_, _, err = w.nobody().Apps.CompleteAppManifest(w.ctx, late)
	w.wantStatus(err, http.StatusNotFound)
	_, _, err = w.nobody().Apps.CompleteAppManifest(w.ctx, "unheard-of")
	w.wantStatus(err, http.StatusNotFound)
}

func TestManifestsThatGitHubRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	type fields map[string]any
	hook := func(v map[string]any) fields { return fields{"hook_attributes": v} }
	for name, tt := range map[string]struct {
		replace fields
		want    string
	}{
		"no name":          {fields{"name": nil}, "Name can't be blank"},
		"name too long":    {fields{"name": strings.Repeat("x", 35)}, "maximum is 34 characters"},
		"name taken":       {fields{"name": "KernelGate"}, "Name is already taken"},
		"no url":           {fields{"url": nil}, `"url" wasn't supplied.`},
		"no redirect":      {fields{"redirect_url": nil}, `"redirect_url" wasn't supplied.`},
		"odd redirect":     {fields{"redirect_url": "javascript:alert(1)"}, `"redirect_url" must be a valid URL`},
		"hook without url": {hook(map[string]any{"active": false}), `"url" wasn't supplied.`},
		"odd permission":   {fields{"default_permissions": map[string]string{"kernels": "read"}, "default_events": nil}, "resource is not included in the list"},
		"odd level":        {fields{"default_permissions": map[string]string{"checks": "own"}, "default_events": nil}, "action is not included in the list"},
		"automatic event":  {fields{"default_events": []string{"push", "installation"}}, "Default events unsupported: installation\n"},
		"event without permission": {fields{"default_permissions": map[string]string{"pull_requests": "write"},
			"default_events": []string{"pull_request", "issue_comment", "label"}}, "Default events are not supported by permissions: issue_comment\n"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, text := w.in(t).postManifest("/settings/apps/new", w.in(t).aManifest(tt.replace))
			if answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, tt.want) {
				t.Errorf("%s: %s\nwant %s", answer.Status, text, tt.want)
			}
		})
	}
	if answer, _ := w.postManifest("/settings/apps/new", "{"); answer.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("half a manifest: %s", answer.Status)
	}
	if answer, _ := w.postManifest("/organizations/nobody/settings/apps/new", w.aManifest(nil)); answer.StatusCode != http.StatusNotFound {
		t.Errorf("no such organisation: %s", answer.Status)
	}
	answer, err := http.Get(w.hub.URL() + "/settings/apps/new")
	w.no(err)
	w.no(answer.Body.Close())
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("without a manifest: %s", answer.Status)
	}
}

func TestConversionMatchesGitHubsDescription(t *testing.T) {
	t.Parallel()
	d := openapi.Load(t)
	w := newWorld(t, embedded.Options{})
	eye := &witness{t: t, d: d, seen: map[string]bool{}}
	c, err := github.NewClient(&http.Client{Transport: eye}).WithEnterpriseURLs(w.hub.URL(), w.hub.URL())
	w.no(err)
	answer, text := w.postManifest("/settings/apps/new", w.aManifest(nil))
	if answer.StatusCode != http.StatusFound {
		t.Fatalf("%s: %s", answer.Status, text)
	}
	for _, status := range []string{"201", "404"} {
		_, _, err := c.Apps.CompleteAppManifest(w.ctx, w.codeFrom(answer))
		if (err == nil) != (status == "201") || !eye.seen["POST /app-manifests/{code}/conversions "+status] {
			t.Errorf("%s was not compared: %v, %v", status, eye.seen, err)
		}
	}
}
