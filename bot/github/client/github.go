// Package client is the bot's client of GitHub. It writes checks, statuses, comments and reactions,
// and it reads pull requests, roles, repositories, merge queues and failed deliveries. It authenticates as an App
// or with a token. A stack of HTTP transports keeps to GitHub's rate limits, retries faults where
// that is safe, and caches answers. The package decides nothing, renders no texts and receives no
// webhooks.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/oauth2"
)

// A GitHub is a client of one App or one token. Its methods may be called concurrently.
//
// A write that was sent but not answered returns an error that is ErrUnknown. Read the current
// state before you write again.
type GitHub struct {
	opt   Options
	api   *url.URL // ends with a slash
	git   string   // without a slash at the end
	stats *counters
	cache *store

	app  *app    // nil if there is a token
	solo *client // the token's client, or the App's, which authenticates with a JWT

	mu     sync.Mutex
	insts  map[string]int64  // lower-case repository to installation
	bots   map[int64]*client // by installation
	clones map[string]clone  // by lower-case repository
	me     string
}

// NewApp returns the client of a GitHub App. The key is the PEM file that GitHub gives to the App's
// owner.
func NewApp(appID int64, keyPEM []byte, opt Options) (*GitHub, error) {
	h, err := open(opt)
	if err != nil {
		return nil, err
	}
	if h.app, err = newApp(appID, keyPEM, h.opt.Now); err != nil {
		return nil, err
	}
	h.solo = h.client(fmt.Sprintf("app %d", appID), h.app, false)
	return h, nil
}

// NewToken returns the client of a personal access token or, with Options.Checks, of the token that
// GitHub Actions gives to a job.
func NewToken(token string, opt Options) (*GitHub, error) {
	if token = strings.TrimSpace(token); token == "" {
		return nil, errors.New("the GitHub token is empty; make one at Settings, Developer settings, Personal access tokens")
	}
	if strings.ContainsAny(token, " \t\r\n") {
		return nil, errors.New("the GitHub token contains white space; copy it again")
	}
	h, err := open(opt)
	if err != nil {
		return nil, err
	}
	h.solo = h.client("token", fixed{oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})}, true)
	return h, nil
}

func open(opt Options) (*GitHub, error) {
	opt = opt.withDefaults()
	api, git, err := Addresses(opt.BaseURL, opt.GitURL)
	if err != nil {
		return nil, err
	}
	if api.Scheme == "http" && !Loopback(api.Hostname()) {
		opt.Log.Warn("GitHub is reached without TLS: anyone on the network can read the token", "url", api.String())
	}
	return &GitHub{opt: opt, api: api, git: git, stats: newCounters(), cache: newStore(opt.CacheBytes),
		insts: map[string]int64{}, bots: map[int64]*client{}, clones: map[string]clone{}}, nil
}

// UsesChecks reports whether verdicts go into check runs. Only an App can create them, and GitHub
// Actions is an App. With a personal token, verdicts go into commit statuses.
func (h *GitHub) UsesChecks() bool { return !h.opt.Statuses && (h.app != nil || h.opt.Checks) }

// Me returns the login under which the client writes. With a workflow's token it is empty until the
// client has written something, because GitHub names the login only in its answers to writes.
func (h *GitHub) Me(ctx context.Context) (string, error) {
	me := h.knownLogin()
	if me != "" {
		return me, nil
	}
	var err error
	if h.app != nil {
		me, err = h.appLogin(ctx)
	} else {
		me, err = h.userLogin(ctx)
	}
	if err != nil {
		return "", err
	}
	h.learn(me)
	return me, nil
}

// Check asks GitHub whether it accepts the credentials now.
func (h *GitHub) Check(ctx context.Context) error {
	var err error
	if h.app != nil {
		_, err = h.appLogin(ctx)
	} else {
		_, err = h.userLogin(ctx)
	}
	return err
}

// knownLogin returns the login under which the client writes, or an empty string if it is not known
// yet.
func (h *GitHub) knownLogin() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.me
}

// learn records the author of an object that this client has written.
func (h *GitHub) learn(me string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if me != "" {
		h.me = me
	}
}

// Stats returns a copy of the counters.
func (h *GitHub) Stats() Stats {
	s := h.stats.read()
	s.CacheBytes = h.cache.size()
	return s
}
