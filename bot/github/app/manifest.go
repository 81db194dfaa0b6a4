package app

import (
	_ "embed" // for the manifest
	"encoding/json"
	"fmt"
	"net/url"
)

//go:embed app-manifest.json
var shipped string

// Manifest is the GitHub App that the bot needs, in the form that GitHub reads. Its addresses are placeholders.
func Manifest() []byte { return []byte(shipped) }

// A manifest is an App as GitHub's form takes it.
type manifest struct {
	Name        string            `json:"name"`
	URL         string            `json:"url"`
	Description string            `json:"description"`
	Public      bool              `json:"public"`
	RedirectURL string            `json:"redirect_url"`
	Hook        hook              `json:"hook_attributes"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
}

type hook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// manifest is the shipped one with this job's addresses in it.
func (j *job) manifest(back string) (manifest, error) {
	var m manifest
	if err := json.Unmarshal(Manifest(), &m); err != nil {
		return m, fmt.Errorf("reading the App's manifest: %w", err)
	}
	m.Name, m.URL, m.RedirectURL = j.opt.Name, j.site, back
	m.Hook.URL = j.site + "/webhook"
	return m, nil
}

// form returns the URL to which the manifest is posted.
func (j *job) form(state string) string {
	u := *j.web
	u.Path = "/settings/apps/new"
	if j.opt.Org != "" {
		u.Path = "/organizations/" + j.opt.Org + "/settings/apps/new"
	}
	u.RawQuery = url.Values{"state": {state}}.Encode()
	return u.String()
}
