// Package client is the bot's GitHub: what it says there (checks, statuses, comments,
// reactions), what it asks there (pull requests, roles, repositories, failed
// deliveries), and how it proves who it is, as an App or with a token. It keeps
// to GitHub's limits and survives its faults, but decides nothing, renders nothing
// and receives no webhooks.
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

// A GitHub speaks for one App or one token. Its methods may be called concurrently.
//
// A write that was sent but not answered returns an error that is ErrUnknown;
// look at what is there before writing again.
type GitHub struct {
	opt   Options
	api   *url.URL // ends with a slash
	git   string   // ends without
	stats *counters
	cache *store

	app  *app    // nil with a token
	solo *client // the token's client, or the App's own, which speaks with a JWT

	mu     sync.Mutex
	insts  map[string]int64  // lower-case repository to installation
	bots   map[int64]*client // by installation
	clones map[string]source // by lower-case repository
	me     string
}

// NewApp returns the client of a GitHub App. The key is the PEM file that GitHub
// hands to the App's owner.
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

// NewToken returns the client of a personal access token or, with Options.Checks,
// of the token that GitHub Actions gives a job.
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
		opt.Log.Warn("GitHub is reached without TLS: whoever listens can read the token", "url", api.String())
	}
	return &GitHub{opt: opt, api: api, git: git, stats: newCounters(), cache: newStore(opt.CacheBytes),
		insts: map[string]int64{}, bots: map[int64]*client{}, clones: map[string]source{}}, nil
}

// UsesChecks says whether verdicts go into check runs. Only an App can make
// them, and Actions is one; with a personal token they go into statuses.
func (h *GitHub) UsesChecks() bool { return !h.opt.Statuses && (h.app != nil || h.opt.Checks) }

// Me is the login under which the client writes. It is empty with the token of a
// workflow that has written nothing yet: GitHub tells it with what was written.
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

// knownLogin is the login under which the client writes, as far as it is known by now.
func (h *GitHub) knownLogin() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.me
}

// learn notes the author of something that this client has written.
func (h *GitHub) learn(me string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if me != "" {
		h.me = me
	}
}

// Stats reads the counters.
func (h *GitHub) Stats() Stats {
	s := h.stats.read()
	s.CacheBytes = h.cache.size()
	return s
}
