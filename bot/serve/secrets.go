package serve

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/nats-io/nats.go"
)

// Secrets is what the bot proves itself with, and others to it.
type Secrets struct {
	PrivateKey []byte
	Token      string
	Webhooks   [][]byte          // any of them is good
	Runners    map[string]string // tokens by the name of a remote runner

	Operator     string // token of whoever sees to the fleet
	Pages        string // token that lets its bearer read all pages
	ClientSecret string // of the App, to log people in

	Notify    map[string]NotifySecret // by the name of who is told
	Telemetry http.Header             // that a collector of traces wants
}

// Names of secrets in the environment, for hosts that hand them over that way.
const (
	envPrivateKey    = envPrefix + "GITHUB_PRIVATE_KEY"
	envToken         = envPrefix + "GITHUB_TOKEN"
	envWebhookSecret = envPrefix + "GITHUB_WEBHOOK_SECRET"
)

// minSecret is the shortest secret that is not guessed.
const minSecret = 16

// ReadSecrets reads the files that the configuration names, and the environment.
// It warns of files that others can read.
func (c Config) ReadSecrets(getenv func(string) string, warn func(text string)) (Secrets, error) {
	r := secretReader{warn: warn}
	var s Secrets
	g := c.GitHub
	if g.AppID != 0 {
		s.PrivateKey = []byte(getenv(envPrivateKey))
		if g.PrivateKeyFile != "" {
			s.PrivateKey = r.file("github.private_key_file", g.PrivateKeyFile, 0)
		}
	} else {
		s.Token = getenv(envToken)
		if g.TokenFile != "" {
			s.Token = string(r.file("github.token_file", g.TokenFile, 0))
		}
	}
	if secret := getenv(envWebhookSecret); secret != "" {
		s.Webhooks = append(s.Webhooks, r.long(envWebhookSecret, []byte(secret), minSecret))
	}
	for _, file := range g.WebhookSecretFile {
		s.Webhooks = append(s.Webhooks, r.file("github.webhook_secret_file", file, minSecret))
	}
	s.Runners = map[string]string{}
	for i, runner := range c.Runners {
		s.Runners[runner.Name] = r.token(fmt.Sprintf("runners[%d].token_file", i), runner.TokenFile)
	}
	if c.Operator != "" {
		s.Operator = r.token("operator_token_file", c.Operator)
	}
	if file := c.Pages.TokenFile; file != "" {
		s.Pages = r.token("pages.token_file", file)
	}
	if file := c.Pages.ClientSecretFile; file != "" {
		s.ClientSecret = string(r.file("pages.client_secret_file", file, 0))
	}
	for i, n := range c.Notify {
		if s.Notify == nil {
			s.Notify = map[string]NotifySecret{}
		}
		s.Notify[n.Name] = r.readNotify(fmt.Sprintf("notify[%d]", i), n)
	}
	if file := c.Telemetry.HeadersFile; file != "" {
		s.Telemetry = r.readHeaders("telemetry.headers_file", file)
	}
	return s, r.problems.err()
}

type secretReader struct {
	warn     func(string)
	problems problems
	tokens   map[string]string // where each was read first
}

// token reads a secret that proves who its bearer is, and so belongs to one alone.
func (r *secretReader) token(key, name string) string {
	token := string(r.file(key, name, minSecret))
	if other, ok := r.tokens[token]; ok && token != "" {
		r.problems.add("%s: is the same token as that of %s, so the bot cannot distinguish the two (create one for each with: openssl rand -hex 32)", key, other)
	}
	if r.tokens == nil {
		r.tokens = map[string]string{}
	}
	r.tokens[token] = key
	return token
}

// file reads a secret without the line's end that an editor puts behind it.
func (r *secretReader) file(key, name string, least int) []byte {
	data, err := os.ReadFile(name)
	if err != nil {
		r.problems.add("%s: reading it: %v (the bot's user must be able to)", key, err)
		return nil
	}
	if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 {
		r.warn(fmt.Sprintf("%s: other users may read %s (chmod 600 it)", key, name))
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		r.problems.add("%s: %s is empty (write the secret into it)", key, name)
		return nil
	}
	return r.long(key, data, least)
}

func (r *secretReader) long(key string, secret []byte, least int) []byte {
	if len(secret) < least {
		r.problems.add("%s: the secret is shorter than %d characters (make one with: openssl rand -hex 32)", key, least)
	}
	return secret
}

// newToken is a token that nobody knows before.
func newToken() string { return rand.Text() + rand.Text() }

func natsOptions(c Config) []nats.Option {
	var all []nats.Option
	if c.NATSCreds != "" {
		all = append(all, nats.UserCredentials(c.NATSCreds))
	}
	if c.NATSRoots != "" {
		all = append(all, nats.RootCAs(c.NATSRoots))
	}
	if c.NATSCert != "" {
		all = append(all, nats.ClientCert(c.NATSCert, c.NATSKey))
	}
	return all
}

// withoutPassword is an address for people.
func withoutPassword(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		return u.Redacted()
	}
	return address
}
