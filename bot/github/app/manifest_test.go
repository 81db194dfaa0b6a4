package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/app"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestManifestIsGood: GitHub takes it as it is, but for the name, which is taken.
func TestManifestIsGood(t *testing.T) {
	t.Parallel()
	hub, err := embedded.New(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.PostForm(hub.URL()+"/settings/apps/new", url.Values{"manifest": {string(app.Manifest())}})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	back, err := answer.Location()
	if answer.StatusCode != http.StatusFound || err != nil || back.Host != "kernelgate.example.com" || back.Query().Get("code") == "" {
		t.Errorf("%s to %v: %v", answer.Status, back, err)
	}
}

// TestManifestHasOneHost: whoever fills it in by hand replaces one name.
func TestManifestHasOneHost(t *testing.T) {
	t.Parallel()
	var m struct {
		URL      string
		Redirect string `json:"redirect_url"`
		Hook     struct{ URL string }
	}
	raw := strings.Replace(string(app.Manifest()), "hook_attributes", "hook", 1)
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	const host = "https://kernelgate.example.com"
	if m.URL != host || m.Redirect != host+"/" || m.Hook.URL != host+"/webhook" {
		t.Errorf("%+v", m)
	}
	example, err := os.ReadFile("../../install/kernelgate.example.yaml")
	if err != nil || !strings.Contains(string(example), "url: "+host+"\n") {
		t.Error("the example configuration has a different host")
	}
}
