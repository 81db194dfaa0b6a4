package client

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/kernelgate/kernelgate/policies/ident"
)

// Addresses derives the API's URL and the root URL of the repositories from base, which may be the
// address of the API or of GitHub's pages, whichever a user copies from a browser. The root of the
// repositories is also that of GitHub's pages, unless git names a different one.
func Addresses(base, git string) (api *url.URL, gitRoot string, err error) {
	base = cmp.Or(strings.TrimSpace(base), "https://api.github.com")
	if !strings.Contains(base, "://") {
		base = "https://" + base
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, "", fmt.Errorf("GitHub's address %q: %w; give one such as https://github.example.com", base, err)
	}
	path := strings.TrimRight(u.Path, "/")
	switch {
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, "", fmt.Errorf("GitHub's address %q is not a plain web address; give one such as https://github.example.com", u.Redacted())
	case path != "" && path != "/api/v3":
		return nil, "", fmt.Errorf("GitHub's address %q has the path %s; give the host alone, or with /api/v3", base, path)
	}
	web := &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}
	api = &url.URL{Scheme: u.Scheme, Host: web.Host, Path: "/"}
	switch host := web.Hostname(); {
	case path == "/api/v3": // Enterprise Server, explicitly
		api.Path = "/api/v3/"
	case host == "github.com" || host == "www.github.com":
		web.Host, api.Host = "github.com", "api.github.com"
	case strings.HasPrefix(host, "api."):
		web.Host = strings.TrimPrefix(web.Host, "api.")
	case strings.HasSuffix(host, ".ghe.com"): // Enterprise Cloud with data residency
		api.Host = "api." + web.Host
	default:
		api.Path = "/api/v3/"
	}
	return api, strings.TrimRight(cmp.Or(git, web.String()), "/"), nil
}

// Loopback reports whether a host is this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// CloneURL returns the HTTPS URL of a repository for git.
func (h *GitHub) CloneURL(repo string) string { return h.git + "/" + repo + ".git" }

// splitRepo splits owner/name. It refuses every text that would change the path of a request.
func splitRepo(repo string) (owner, name string, err error) {
	if !ident.IsRepository(repo) {
		return "", "", fmt.Errorf("%q is not a repository; write it as owner/name", repo)
	}
	owner, name, _ = strings.Cut(repo, "/")
	return owner, name, nil
}
