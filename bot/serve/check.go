package serve

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
)

// A checker tells every mistake at the place where it was made.
type checker struct {
	*reading
	node *strict.Node
}

// at reports a mistake about a field, such as github.app_id.
func (c *checker) at(path, format string, args ...any) {
	if origin := c.origin[path]; origin != "" {
		c.problems.add("%s: %s", origin, fmt.Sprintf(format, args...))
		return
	}
	c.node.Child(strings.Split(path, ".")...).Errorf(format, args...)
}

// item does the same about an element of a list.
func (c *checker) item(path string, i int, format string, args ...any) {
	items := c.node.Child(strings.Split(path, ".")...).Items()
	if c.origin[path] != "" || i >= len(items) {
		c.at(path, format, args...)
		return
	}
	items[i].Errorf(format, args...)
}

var userPattern = regexp.MustCompile(`^[a-z_][a-z0-9_.-]{0,31}$`)

func (c *checker) check() {
	c.checkAddresses()
	if !c.from.JournalOnly {
		c.checkAccount()
	}
	c.repositories("github.repositories", c.GitHub.Repositories)
	c.checkNATS()
	c.checkLocal()
	c.checkRemote()
	c.checkLimits()
	c.checkSweeps()
	c.checkPages()
	c.checkMCP()
	c.checkNotify()
	c.checkTelemetry()
	if every := time.Duration(c.Reconcile); every < 10*time.Second || every > 24*time.Hour {
		c.at("reconcile", "%v is not between 10s and 24h (write e.g. 5m)", every)
	}
	c.word("log.level", c.Config.Log.Level, "debug", "info", "warn", "error")
	c.word("log.format", c.Config.Log.Format, "text", "json")
}

func (c *checker) word(path, value string, words ...string) {
	if !slices.Contains(words, value) {
		c.at(path, "%q is not one of %s", value, strings.Join(words, ", "))
	}
}

func (c *checker) checkAddresses() {
	if c.Data == "" {
		c.at("data", "is empty (write a folder, e.g. /var/lib/kernelgate)")
	}
	_, port, err := net.SplitHostPort(c.Listen)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 && port != "0" {
		c.at("listen", "%q is not an address (write e.g. :8080 or 127.0.0.1:8080)", c.Listen)
	}
	c.web("url", c.URL, "https://kernelgate.example.com")
	c.web("advertise", c.Advertise, "http://10.0.0.3:8080")
	for _, address := range c.Monitors {
		c.web("nats_monitors", address, "http://n1:8222")
	}
	c.web("github.api_url", c.GitHub.APIURL, "https://github.example.com/api/v3")
	c.web("github.git_url", c.GitHub.GitURL, "https://github.example.com")
}

func (c *checker) web(path, text, example string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		c.at(path, "%q is not an address (write e.g. %s)", text, example)
	case u.User != nil:
		c.at(path, "a user or a password does not belong here (write e.g. %s)", example)
	case u.RawQuery != "" || u.Fragment != "":
		c.at(path, "%q has a query (write e.g. %s)", text, example)
	}
}

// checkAccount wants one identity and a webhook's secret.
func (c *checker) checkAccount() {
	g := c.GitHub
	env := func(name string) bool { return c.from.Getenv(name) != "" }
	app := g.AppID != 0 || g.PrivateKeyFile != ""
	token := g.TokenFile != ""
	if !app && !token { // the environment decides where nothing else does
		app, token = env(envPrivateKey), env(envToken)
	}
	switch {
	case app && token:
		c.at("github", "is an App and a token at once (delete app_id and private_key_file, or token_file)")
	case !app && !token:
		c.at("github", "names no account (write app_id and private_key_file for an App, or token_file and repositories for a token)")
	case app && g.AppID <= 0:
		c.at("github.app_id", "is required with a private key (write the number on the App's page, e.g. app_id: 123456)")
	case app && g.PrivateKeyFile == "" && !env(envPrivateKey):
		c.at("github.private_key_file", "is required for an App (write the file that GitHub let you download, or set %s)", envPrivateKey)
	case token && len(g.Repositories) == 0:
		c.at("github.repositories", "is required with a token, which cannot list what it is for (write e.g. repositories: [owner/name])")
	}
	if len(g.WebhookSecretFile) == 0 && !env(envWebhookSecret) {
		c.at("github.webhook_secret_file", "is required: without it anybody could send webhooks (make one with: openssl rand -hex 32, or set %s)", envWebhookSecret)
	}
	c.secretFile("github.private_key_file", g.PrivateKeyFile)
	c.secretFile("github.token_file", g.TokenFile)
	for _, file := range g.WebhookSecretFile {
		c.secretFile("github.webhook_secret_file", file)
	}
}

// secretFile refuses the secret itself, and does not repeat it.
func (c *checker) secretFile(path, file string) {
	if secretLike(file) {
		c.at(path, "is a secret, and should be the name of a file that holds it (everyone who can read this place has seen the secret: create a new one)")
	}
}

// repositories looks at a list of their names.
func (c *checker) repositories(path string, names []string) {
	seen := map[string]bool{}
	for i, repo := range names {
		switch key := strings.ToLower(repo); {
		case !ident.IsRepository(repo):
			c.item(path, i, "%q is not a repository (write owner/name)", repo)
		case seen[key]:
			c.item(path, i, "%q is named twice (delete one)", repo)
		default:
			seen[key] = true
		}
	}
}

func (c *checker) checkNATS() {
	if c.Replicas < 0 || c.Replicas > 5 {
		c.at("nats_replicas", "%d copies cannot be kept (write 0 to 5; 3 survive the loss of one server)", c.Replicas)
	}
	if len(c.NATS) == 0 {
		for path, set := range map[string]bool{"nats_credentials_file": c.NATSCreds != "", "nats_ca_file": c.NATSRoots != "", "nats_certificate_file": c.NATSCert != "", "nats_key_file": c.NATSKey != "", "nats_monitors": len(c.Monitors) > 0, "nats_replicas": c.Replicas > 1} {
			if set {
				c.at(path, "has no effect on the embedded server (delete it, or name a server: nats)")
			}
		}
		return
	}
	if (c.NATSCert == "") != (c.NATSKey == "") {
		path, other := "nats_certificate_file", "nats_key_file"
		if c.NATSCert == "" {
			path, other = other, path
		}
		c.at(path, "needs %s: a certificate and its key belong together", other)
	}
	for _, address := range c.NATS {
		u, err := url.Parse(address)
		switch {
		case err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) || strings.Contains(address, ","):
			c.at("nats", "is not a NATS server's address (write e.g. nats://nats.example.com:4222, or nothing for the embedded one)")
		case u.User != nil && !strings.HasPrefix(c.origin["nats"], envPrefix):
			c.at("nats", "a password does not belong here (use nats_credentials_file, or set %s)", envName("nats"))
		}
	}
}

func (c *checker) checkLocal() {
	r := c.Runner
	if !ident.IsName(r.Name) {
		c.at("runner.name", "%q is not a name (write letters, digits, '.', '_' and '-')", r.Name)
	}
	for i, label := range r.Labels {
		if !ident.IsLabel(label) {
			c.item("runner.labels", i, "%q is not a runner's label (write letters, digits, '_' and '-')", label)
		}
		if runners.IsBuildLabel(label) != r.Builds {
			c.item("runner.labels", i, "%q cannot be used with builds: %v (only a runner that builds takes build-nvcc and build-triton, and it takes no other labels)", label, r.Builds)
		}
	}
	for _, name := range measure.IncludeSets(r.Includes).Names() {
		if !manifest.IsIncludeSet(name) {
			c.at("runner.includes", "%q is not a name for a set of headers (write letters, digits, '.', '_', '+' and '-')", name)
		} else if !filepath.IsAbs(r.Includes[name]) {
			c.at("runner.includes", "%s: %q is not an absolute path (write e.g. /opt/%[1]s/include)", name, r.Includes[name])
		}
	}
	for i, path := range r.Toolchains {
		if !filepath.IsAbs(path) || strings.Contains(path, ",") {
			c.item("runner.toolchains", i, "%q is not an absolute path without commas (write e.g. /usr/local/cuda-12.9)", path)
		}
	}
	if r.Socket != "" && !filepath.IsAbs(r.Socket) {
		c.at("runner.socket", "%q is not an absolute path (write e.g. /run/kernelgate/runner.sock)", r.Socket)
	}
	if r.User != "" && !userPattern.MatchString(r.User) {
		c.at("runner.user", "%q is not a user's name (write e.g. kernelgate-runner)", r.User)
	}
}

func (c *checker) checkRemote() {
	names := map[string]bool{}
	if c.Runner.Local {
		names[c.Runner.Name] = true
	}
	for i, r := range c.Runners {
		switch {
		case r.Name == "": // told by the decoder
		case !ident.IsName(r.Name):
			c.item("runners", i, "%q is not a name (write letters, digits, '.', '_' and '-')", r.Name)
		case names[r.Name]:
			c.item("runners", i, "another runner also has the name %q (choose a different name)", r.Name)
		}
		names[r.Name] = true
		if r.Labels != nil && len(r.Labels) == 0 {
			c.item("runners", i, "the runner has no labels, so it can take no jobs (write e.g. labels: [l4])")
		}
		for _, label := range r.Labels {
			if !ident.IsLabel(label) {
				c.item("runners", i, "%q is not a runner's label (write letters, digits, '_' and '-')", label)
			}
		}
		if secretLike(r.TokenFile) {
			c.item("runners", i, "token_file is a token, and should be the name of a file that holds it (make a new token)")
		}
	}
}

// checkSweeps looks at when what is measured without being asked for.
func (c *checker) checkSweeps() {
	seen := map[string]bool{}
	for i, s := range c.Sweeps {
		c.checkSchedule("sweeps", i, s, seen)
	}
	seen = map[string]bool{}
	for i, w := range c.Watch {
		c.checkSchedule("watch", i, w.schedule(), seen)
		if w.Against != "" && w.Against != string(watch.Release) && w.Against != string(watch.Best) {
			c.item("watch", i, "against: %q is not something to compare with (write release or best)", w.Against)
		}
		if slower := float64(w.Slower); w.Slower != 0 && (slower < 0.001 || slower > 0.5) {
			c.item("watch", i, "slower: %v is not between 0.1%% and 50%% (write e.g. slower: 1%%)", w.Slower)
		}
	}
}

func (c *checker) checkSchedule(list string, i int, s Sweep, seen map[string]bool) {
	key := strings.ToLower(s.Repository)
	_, errAt := s.at()
	switch every := time.Duration(s.Every); {
	case s.Repository == "": // told by the decoder
	case s.Repository != "*" && !ident.IsRepository(s.Repository):
		c.item(list, i, "%q is not a repository (write owner/name, or \"*\" for every repository that has no entry)", s.Repository)
	case seen[key]:
		c.item(list, i, "%q is named twice (delete one)", s.Repository)
	case errAt != nil:
		c.item(list, i, "at: %q is not a time of day (write e.g. 02:30, which is UTC)", s.At)
	case s.Every != 0 && (every < time.Hour || every > 7*24*time.Hour):
		c.item(list, i, "every: %v is not between 1h and 168h (write e.g. every: 24h)", every)
	}
	for _, pattern := range s.Kernels {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			c.item(list, i, "kernels: %q is not a pattern of folders (write e.g. kernels/attention/*)", pattern)
		}
	}
	seen[key] = true
}

// at is the time since midnight.
func (s Sweep) at() (time.Duration, error) {
	at, err := time.Parse("15:04", cmp.Or(s.At, "00:00"))
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, err
}

// every is how long it is from one sweep to the next.
func (s Sweep) every() time.Duration { return cmp.Or(time.Duration(s.Every), 24*time.Hour) }

// schedule returns the fields of the watch that a sweep has, too.
func (w Watch) schedule() Sweep {
	return Sweep{Repository: w.Repository, At: w.At, Every: w.Every, Kernels: w.Kernels}
}

func (w Watch) against() watch.Against { return cmp.Or(watch.Against(w.Against), watch.Release) }

func (w Watch) slower() quantity.Percent { return cmp.Or(w.Slower, 0.01) }

// checkLimits looks at what bounds the use of runners, and who may see to them.
func (c *checker) checkLimits() {
	c.secretFile("operator_token_file", c.Operator)
	seen := map[string]bool{}
	for i, l := range c.Limits {
		key := strings.ToLower(l.Repository)
		switch {
		case l.Repository == "": // told by the decoder
		case l.Repository != "*" && !ident.IsRepository(l.Repository):
			c.item("limits", i, "%q is not a repository (write owner/name, or \"*\" for every repository that has no entry)", l.Repository)
		case seen[key]:
			c.item("limits", i, "%q is named twice (delete one)", l.Repository)
		case l.GPUMinutes < 0 || l.Jobs < 0:
			c.item("limits", i, "a limit is a number above 0 (write e.g. gpu_minutes: 600, or remove it for no limit)")
		}
		seen[key] = true
	}
}
