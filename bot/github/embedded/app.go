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
	"slices"
	"time"

	"github.com/google/go-github/v60/github"
)

// AppOptions describe a GitHub App to be registered.
type AppOptions struct {
	Slug        string
	Name        string            // the slug unless given
	Owner       string            // the slug with -owner unless given
	Description string            // none unless given
	Site        string            // the App's home page; the hub unless given
	Key         *rsa.PrivateKey   // made unless given
	Permissions map[string]string // such as "checks": "write"; what a gatekeeper needs unless given
	Events      []string          // what a gatekeeper needs unless given
	HookURL     string            // none until SetHook unless given
	HookSecret  string
	TokenLife   time.Duration // one hour unless given
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
}

// An Installation is an App in one account.
type Installation struct {
	app     *App
	id      int64
	account *account
	repos   []*Repo
	created time.Time
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
	if opt.Permissions == nil {
		opt.Permissions = map[string]string{"checks": "write", "contents": "read", "issues": "write",
			"merge_queues": "read", "metadata": "read", "pull_requests": "write", "statuses": "write"}
	}
	if opt.Events == nil {
		opt.Events = []string{"check_run", "check_suite", "issue_comment", "merge_group", "pull_request", "push"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.register(opt), nil
}

func (s *Server) register(opt AppOptions) *App {
	opt.TokenLife = cmp.Or(opt.TokenLife, time.Hour)
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

// App finds an App by its slug; nil if there is none.
func (s *Server) App(slug string) *App {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.appNamed(slug)
}

func (s *Server) appNamed(slug string) *App {
	for _, a := range s.apps {
		if a.opt.Slug == slug {
			return a
		}
	}
	return nil
}

// ID is the App's number, a JWT's issuer.
func (a *App) ID() int64 { return a.id }

// Login is the name under which the App writes.
func (a *App) Login() string { return a.bot.login }

// PrivateKeyPEM is the key file that GitHub lets an App's owner download.
func (a *App) PrivateKeyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(a.opt.Key)})
}

// SetHook says where the App's webhooks go, and sends a ping there.
func (a *App) SetHook(url, secret string) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.setHook(url, secret)
}

func (a *App) setHook(url, secret string) {
	a.hook.url, a.hook.secret = url, secret
	a.hook.ping()
}

// Install puts the App into the account that owns the repositories.
func (a *App) Install(repos ...*Repo) (*Installation, error) {
	if len(repos) == 0 {
		return nil, fmt.Errorf("install app %s: no repository given", a.opt.Slug)
	}
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	in := &Installation{app: a, id: a.s.id(), account: repos[0].owner, created: a.s.now()}
	for _, r := range repos {
		if r.owner != in.account {
			return nil, fmt.Errorf("install app %s: %s and %s have different owners; install it once for each", a.opt.Slug, repos[0].fullName(), r.fullName())
		}
		in.repos = append(in.repos, r)
	}
	a.insts = append(a.insts, in)
	a.hook.send("installation", "created", nil, &github.InstallationEvent{
		Action: ptr("created"), Installation: in.render(), Sender: in.account.render(a.s.url),
		Repositories: slices.Collect(func(yield func(*github.Repository) bool) {
			for _, r := range in.repos {
				if !yield(r.renderShort()) {
					return
				}
			}
		}),
	})
	a.s.touch()
	return in, nil
}

// Uninstall takes the App out again; its tokens end.
func (in *Installation) Uninstall() {
	s := in.app.s
	s.mu.Lock()
	defer s.mu.Unlock()
	in.app.insts = slices.DeleteFunc(in.app.insts, func(other *Installation) bool { return other == in })
	maps.DeleteFunc(s.tokens, func(_ string, t *token) bool { return t.inst == in })
	in.app.hook.send("installation", "deleted", nil, &github.InstallationEvent{
		Action: ptr("deleted"), Installation: in.render(), Sender: in.account.render(s.url)})
	s.touch()
}

// ID is the installation's number.
func (in *Installation) ID() int64 { return in.id }

// Token makes an installation token without the detour over a JWT.
func (in *Installation) Token() string {
	in.app.s.mu.Lock()
	defer in.app.s.mu.Unlock()
	return in.issue(nil, nil).value
}

// issue makes a token; nil perms and repos mean all that the installation has.
func (in *Installation) issue(perms map[string]string, repos []*Repo) *token {
	s := in.app.s
	if perms == nil {
		perms = in.app.opt.Permissions
	}
	t := &token{value: s.secret("ghs_"), inst: in, user: in.app.bot, perms: perms, repos: repos,
		expires: s.now().Add(in.app.opt.TokenLife)}
	s.tokens[t.value] = t
	return t
}

func (a *App) installationFor(r *Repo) *Installation {
	for _, in := range a.insts {
		if slices.Contains(in.repos, r) {
			return in
		}
	}
	return nil
}

func permissions(m map[string]string) *github.InstallationPermissions {
	raw, _ := json.Marshal(m) // a map of strings always marshals
	p := &github.InstallationPermissions{}
	_ = json.Unmarshal(raw, p) // every field of p is a string
	return p
}
