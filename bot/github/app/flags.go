package app

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// A job holds the parsed options.
type job struct {
	opt      Options
	site     string   // the bot's URL, without a slash at the end
	web, api *url.URL // GitHub's pages and its API; the API's URL ends with a slash
	dir      string   // absolute
}

var (
	orgPattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,38}$`)
	codePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)
)

// maxName is GitHub's limit for an App's name.
const maxName = 34

func newJob(opt Options) (*job, error) {
	j := &job{opt: opt}
	site, err := parseSite(opt.URL)
	if err != nil {
		return nil, err
	}
	j.site = site.String()
	if j.web, j.api, err = addresses(opt.GitHub); err != nil {
		return nil, err
	}
	j.opt.Name = cmp.Or(opt.Name, defaultName(site.Hostname()))
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if n := utf8.RuneCountInString(j.opt.Name); n > maxName || strings.TrimSpace(j.opt.Name) != j.opt.Name || strings.ContainsFunc(j.opt.Name, odd) {
		return nil, usage.Errorf("--name: %q is not a name for an App (write at most %d letters, digits and '-'; names are unique on GitHub)", j.opt.Name, maxName)
	}
	if opt.Org != "" && !orgPattern.MatchString(opt.Org) {
		return nil, usage.Errorf("--org: %q is not an organisation (write its name in GitHub's addresses)", opt.Org)
	}
	if opt.Code != "" && !codePattern.MatchString(opt.Code) {
		return nil, usage.Errorf("--code: that is not a code (write the value of code= in the address, up to the next &)")
	}
	j.opt.Listen = cmp.Or(opt.Listen, "127.0.0.1:0")
	if host, _, err := net.SplitHostPort(j.opt.Listen); err != nil || !client.Loopback(host) {
		return nil, usage.Errorf("--listen: %q is not an address on the loopback (write e.g. 127.0.0.1:8765; for a browser on a different machine, forward the port with ssh -L)", opt.Listen)
	}
	if opt.Dir == "" {
		return nil, usage.Errorf("--dir: is empty (write a folder, e.g. /etc/kernelgate)")
	}
	if j.dir, err = filepath.Abs(opt.Dir); err != nil {
		return nil, fmt.Errorf("the folder %s: %w", opt.Dir, err)
	}
	j.opt.Host = cmp.Or(opt.Host, "HOST")
	j.opt.Wait = cmp.Or(opt.Wait, time.Hour)
	j.opt.TempDir = cmp.Or(opt.TempDir, os.TempDir())
	if j.opt.Transport == nil {
		j.opt.Transport = http.DefaultTransport
	}
	return j, nil
}

func parseSite(text string) (*url.URL, error) {
	if text == "" {
		return nil, usage.Errorf("--url: is required: GitHub sends webhooks there (write the bot's public address, e.g. https://gate.example.com)")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, usage.Errorf("--url: %q is not a plain web address (write e.g. https://gate.example.com)", text)
	case u.Scheme == "http" && !client.Loopback(u.Hostname()):
		return nil, usage.Errorf("--url: %q is not https: webhooks would be sent unencrypted (put a reverse proxy with TLS in front of the bot)", text)
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

// defaultName contains the bot's host, because names of Apps are unique at GitHub and a plain one
// is taken.
func defaultName(host string) string {
	name := "kernelgate-" + strings.NewReplacer(".", "-", ":", "-").Replace(strings.ToLower(host))
	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}

// addresses derives the URLs of GitHub's pages and of its API from either.
func addresses(text string) (web, api *url.URL, err error) {
	api, pages, err := client.Addresses(text, "")
	if err != nil {
		return nil, nil, usage.Errorf("--github: %w", err)
	}
	if web, err = url.Parse(pages); err != nil {
		return nil, nil, usage.Errorf("--github: %w", err)
	}
	if web.Scheme == "http" && !client.Loopback(web.Hostname()) {
		return nil, nil, usage.Errorf("--github: %q is not https: the key of the App would be sent unencrypted", text)
	}
	return web, api, nil
}
