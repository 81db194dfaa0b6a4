package embedded

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/app"
)

// AppOptions describes a GitHub App to register.
type AppOptions struct {
	Slug        string
	Name        string            // defaults to the slug
	Owner       string            // defaults to the slug followed by -owner
	Description string            // may be empty
	Site        string            // the App's home page; defaults to the hub
	Key         *rsa.PrivateKey   // generated if nil
	Permissions map[string]string // such as "checks": "write"; defaults to those of kernelgate's manifest
	Events      []string          // defaults to those of kernelgate's manifest
	HookURL     string            // empty means no webhook until SetHook
	HookSecret  string
}

// An App is a registered GitHub App.
type App struct {
	s       *Server
	id      int64
	opt     AppOptions
	bot     *account
	owner   *account
	hook    *Hook
	created time.Time
	insts   []*Installation
	refused bool // set by RefuseKey
}

// ReplaceKey gives the App a new private key: the hub refuses what the old one has signed.
func (a *App) ReplaceKey() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("replace the key of app %s: %w", a.opt.Slug, err)
	}
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.opt.Key = key
	return nil
}

// RefuseKey makes the hub refuse what the App's key signs, as after the owner has deleted the key. False restores the key.
// Tokens that the App has already stay valid.
func (a *App) RefuseKey(refuse bool) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.refused = refuse
}

// EndTokens invalidates all tokens of the App's installations before their time.
func (a *App) EndTokens() {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	maps.DeleteFunc(a.s.tokens, func(_ string, t *token) bool { return t.inst != nil && t.inst.app == a })
}

// CreateApp registers an App.
func (s *Server) CreateApp(opt AppOptions) (*App, error) {
	if opt.Slug == "" {
		return nil, fmt.Errorf("create an app: no slug; set AppOptions.Slug")
	}
	if opt.Key == nil {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, fmt.Errorf("create app %s: %w", opt.Slug, err)
		}
		opt.Key = key
	}
	// The default permissions are those of the shipped manifest. If tests had more permissions than
	// operators, they would hide a permission that the manifest lacks.
	var shipped manifest
	if err := json.Unmarshal(app.Manifest(), &shipped); err != nil {
		return nil, fmt.Errorf("create app %s: read kernelgate's manifest: %w", opt.Slug, err)
	}
	if opt.Permissions == nil {
		opt.Permissions = shipped.Permissions
	}
	if opt.Events == nil {
		opt.Events = shipped.Events
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.register(opt), nil
}

func (s *Server) register(opt AppOptions) *App {
	a := &App{s: s, id: s.id(), opt: opt, created: s.now(), owner: s.user(cmp.Or(opt.Owner, opt.Slug+"-owner"))}
	a.bot = s.user(opt.Slug + "[bot]")
	a.bot.kind = "Bot"
	a.hook = &Hook{s: s, id: s.id(), app: a, events: opt.Events, created: a.created}
	s.apps = append(s.apps, a)
	if opt.HookURL != "" {
		a.setHook(opt.HookURL, opt.HookSecret)
	}
	return a
}

// App returns the App with a slug, or nil.
func (s *Server) App(slug string) *App {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.appNamed(slug)
}

func (s *Server) appNamed(slug string) *App {
	return find(s.apps, func(a *App) bool { return a.opt.Slug == slug })
}

// ID returns the App's number, which is the issuer of its JWTs.
func (a *App) ID() int64 { return a.id }

// Login returns the login under which the App writes.
func (a *App) Login() string { return a.bot.login }

// PrivateKeyPEM returns the key file that GitHub lets the owner of an App download.
func (a *App) PrivateKeyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(a.opt.Key)})
}

// SetHook sets the URL of the App's webhook and sends a ping to it.
func (a *App) SetHook(url, secret string) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.setHook(url, secret)
}

func (a *App) setHook(url, secret string) {
	a.hook.url, a.hook.secret = url, secret
	a.hook.ping()
}

func (a *App) installationFor(r *Repo) *Installation {
	return find(a.insts, func(in *Installation) bool { return slices.Contains(in.repos, r) })
}

func permissions(m map[string]string) *github.InstallationPermissions {
	raw, _ := json.Marshal(m) // a map of strings always marshals
	p := &github.InstallationPermissions{}
	_ = json.Unmarshal(raw, p) // every field of p is a string
	return p
}

func getApp(rq *request, app *App) error {
	out := app.render()
	out.InstallationsCount = ptr(len(app.insts))
	return rq.ok(out)
}

func listInstallations(rq *request, app *App) error {
	return rq.ok(each(page(rq, app.insts), (*Installation).render))
}

func (rq *request) installation() (*Installation, error) {
	app, err := needApp(rq)
	if err != nil {
		return nil, err
	}
	return there(find(app.insts, func(in *Installation) bool { return in.id == rq.pathInt("id") }))
}

// postAccessToken issues a token for the whole installation, or for the repositories and
// permissions that the body names.
func postAccessToken(rq *request, in *Installation) error {
	var want struct {
		IDs         []int64  `json:"repository_ids"`
		Names       []string `json:"repositories"`
		Permissions map[string]string
	}
	if err := rq.read(&want); err != nil {
		return err
	}
	var repos []*Repo
	for _, r := range in.repos {
		if slices.Contains(want.IDs, r.id) || slices.Contains(want.Names, r.name) {
			repos = append(repos, r)
		}
	}
	if asked := len(want.IDs) + len(want.Names); len(repos) < asked {
		return &apiError{Status: 422, Message: "There is at least one repository that does not exist or is not accessible to the parent installation."}
	}
	for name, level := range want.Permissions {
		if has := in.app.opt.Permissions[name]; has != "write" && has != level {
			return &apiError{Status: 422, Message: "The permissions requested are not granted to this installation."}
		}
	}
	switch {
	case in.suspended():
		return in.refused()
	case in.account.closed:
		return in.account.closedTo()
	}
	t := in.issue(want.Permissions, repos)
	out := github.InstallationToken{Token: &t.value, ExpiresAt: when(t.expires), Permissions: permissions(t.perms)}
	return rq.reply(http.StatusCreated, with(out, map[string]any{"repository_selection": "selected"}))
}

func listInstallationRepos(rq *request) error {
	in := rq.actor.inst()
	if in == nil {
		return forbidden("Resource not accessible by personal access token")
	}
	all := slices.DeleteFunc(slices.Clone(in.repos), func(r *Repo) bool { return !rq.actor.reaches(r) })
	return rq.ok(map[string]any{"total_count": len(all), "repository_selection": "selected", "repositories": each(page(rq, all), (*Repo).render)})
}

func getRepoInstallation(rq *request, app *App) error {
	// A repository that does not exist has no installation.
	in, err := there(app.installationFor(rq.s.repo(rq.PathValue("owner"), rq.PathValue("repo"))))
	if err != nil {
		return err
	}
	return rq.ok(in.render())
}
