package embedded_test

import (
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

func TestAppAuthentication(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	key, err := testKey()
	w.no(err)
	app := w.client(w.jwt(key, 9*time.Minute))
	self, _, err := app.Apps.Get(w.ctx, "")
	w.no(err)
	if self.GetID() != w.app.ID() || self.GetSlug() != "kernelgate" {
		t.Errorf("app: %v", self)
	}
	installations, _, err := app.Apps.ListInstallations(w.ctx, nil)
	w.no(err)
	if len(installations) != 1 || installations[0].GetID() != w.inst.ID() || installations[0].Permissions.GetChecks() != "write" {
		t.Errorf("installations: %v", installations)
	}
	found, _, err := app.Apps.FindRepositoryInstallation(w.ctx, "alice", "kernels")
	w.no(err)
	token, _, err := app.Apps.CreateInstallationToken(w.ctx, found.GetID(), nil)
	w.no(err)
	c := w.client(token.GetToken())
	repos, _, err := c.Apps.ListRepos(w.ctx, nil)
	w.no(err)
	if repos.GetTotalCount() != 1 || repos.Repositories[0].GetFullName() != "alice/kernels" {
		t.Errorf("repositories: %v", repos)
	}
	w.clock.Advance(59 * time.Minute)
	_, _, err = c.Apps.ListRepos(w.ctx, nil)
	w.no(err)
	w.clock.Advance(time.Minute)
	_, _, err = c.Apps.ListRepos(w.ctx, nil)
	w.wantStatus(err, 401)
}

func TestBadCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	key, err := testKey()
	w.no(err)
	forged, err := rsa.GenerateKey(rand.Reader, 2048)
	w.no(err)
	tests := map[string]string{
		"another key":        w.jwt(forged, 5*time.Minute),
		"life too long":      w.jwt(key, 11*time.Minute),
		"expired":            w.jwt(key, -time.Second),
		"unknown token":      "ghp_unknown",
		"personal token":     w.hub.CreateToken("alice"),
		"installation token": w.inst.Token(),
	}
	for name, secret := range tests {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			_, _, err := w.client(secret).Apps.Get(w.ctx, "")
			w.wantStatus(err, 401)
		})
	}
}

func TestKeyAndTokensEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	key, err := testKey()
	w.no(err)
	asApp, installed := w.client(w.jwt(key, time.Minute)), w.bot()
	person := w.person("alice")
	w.app.RefuseKey(true)
	_, _, err = asApp.Apps.Get(w.ctx, "")
	w.wantStatus(err, 401)
	_, _, err = installed.Repositories.Get(w.ctx, "alice", "kernels")
	w.no(err)
	w.app.RefuseKey(false)
	_, _, err = asApp.Apps.Get(w.ctx, "")
	w.no(err)
	w.app.EndTokens()
	_, _, err = installed.Repositories.Get(w.ctx, "alice", "kernels")
	w.wantStatus(err, 401)
	_, _, err = person.Repositories.Get(w.ctx, "alice", "kernels")
	w.no(err)
}

func TestPermissionEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	w.hub.CreateUser("stranger")
	tests := map[string]struct {
		role             embedded.Role
		permission, name string
	}{
		"reader":     {embedded.Read, "read", "read"},
		"triager":    {embedded.Triage, "read", "triage"},
		"writer":     {embedded.Write, "write", "write"},
		"maintainer": {embedded.Maintain, "write", "maintain"},
		"admin":      {embedded.Admin, "admin", "admin"},
		"alice":      {"", "admin", "admin"}, // the owner
		"stranger":   {"", "read", "read"},   // the repository is public
	}
	c := w.bot()
	for login, tt := range tests {
		t.Run(login, func(t *testing.T) {
			w := w.in(t)
			if tt.role != "" {
				w.no(w.repo.Grant(login, tt.role))
			}
			got, _, err := c.Repositories.GetPermissionLevel(w.ctx, "alice", "kernels", login)
			w.no(err)
			if got.GetPermission() != tt.permission || got.User.GetRoleName() != tt.name || got.User.Permissions["push"] != (tt.name != "read" && tt.name != "triage") {
				t.Errorf("%s: permission %s, role %s, %v", login, got.GetPermission(), got.User.GetRoleName(), got.User.Permissions)
			}
		})
	}
	_, _, err := c.Repositories.GetPermissionLevel(w.ctx, "alice", "kernels", "nobody-at-all")
	w.wantStatus(err, 404)
	_, _, err = w.person("reader").Repositories.GetPermissionLevel(w.ctx, "alice", "kernels", "alice")
	w.wantStatus(err, 403)
	if w.repo.Grant("x", "owner") == nil {
		t.Error("an unknown role was granted")
	}
}

func TestPrivateRepositoryDoesNotExistForStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	secret, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "secret", Private: true})
	w.no(err)
	for name, c := range map[string]*github.Client{"anonymous": w.nobody(), "stranger": w.person("stranger"), "an App elsewhere": w.bot()} {
		_, _, err := c.Repositories.Get(w.ctx, "alice", "secret")
		if refusal := w.wantStatus(err, 404); refusal.Message != "Not Found" {
			t.Errorf("%s: %q", name, refusal.Message)
		}
	}
	w.no(secret.Grant("friend", embedded.Read))
	_, _, err = w.person("friend").Repositories.Get(w.ctx, "alice", "secret")
	w.no(err)
	pr := w.opened()
	_, _, err = w.nobody().Issues.CreateComment(w.ctx, "alice", "kernels", 1, &github.IssueComment{Body: github.String("hello")})
	w.wantStatus(err, 401)
	if err := pr.Label("stranger", "x"); err == nil || !strings.Contains(err.Error(), "403 ") {
		t.Errorf("a stranger's label: %v", err)
	}
}

// nobody returns a client without credentials.
func (w *world) nobody() *github.Client {
	c, err := github.NewClient(nil).WithEnterpriseURLs(w.hub.URL(), w.hub.URL())
	w.no(err)
	return c
}
