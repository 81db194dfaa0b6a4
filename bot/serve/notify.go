package serve

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/notify"
	"github.com/kernelgate/kernelgate/policies/ident"
)

// A Notify is an address that is told of verdicts.
type Notify struct {
	Name         string       `yaml:"name" required:"true" eg:"team" doc:"Name of this receiver in the log."`
	Form         string       `yaml:"form" eg:"slack" default:"(plain)" doc:"Format: slack, which many chats accept, or plain, which is JSON with a signature."`
	URLFile      string       `yaml:"url_file" required:"true" eg:"/etc/kernelgate/slack.url" doc:"File with the address. The address of a chat is itself a secret. The bot follows no redirects."`
	SecretFile   string       `yaml:"secret_file" eg:"/etc/kernelgate/notify.secret" doc:"For plain: file with the key of the HMAC-SHA256 in X-Kernelgate-Signature-256."`
	On           []string     `yaml:"on" eg:"[regression]" default:"(both)" doc:"Events to send. verdict: each verdict on a pull request or merge group. regression: a kernel of the default branch is proven wrong or slower."`
	Repositories []string     `yaml:"repositories" eg:"[owner/name]" default:"(all)" doc:"Repositories to send events about."`
	URL          inlineSecret `yaml:"url" doc:"Refused: use url_file."`
	Secret       inlineSecret `yaml:"secret" doc:"Refused: use secret_file."`
}

// A NotifySecret is what the files of a Notify hold.
type NotifySecret struct {
	URL    string
	Secret []byte
}

func (c *checker) checkNotify() {
	names := map[string]bool{}
	for i, n := range c.Notify {
		switch {
		case n.Name == "": // told by the decoder
		case !ident.IsName(n.Name):
			c.item("notify", i, "%q is not a name (write letters, digits, '.', '_' and '-')", n.Name)
		case names[n.Name]:
			c.item("notify", i, "another entry also has the name %q (choose a different name)", n.Name)
		}
		names[n.Name] = true
		if !slices.Contains([]string{"", "plain", "slack"}, n.Form) {
			c.item("notify", i, "form: %q is not one of plain, slack", n.Form)
		}
		if n.Form == "slack" && n.SecretFile != "" {
			c.item("notify", i, "secret_file has no effect with slack, which checks no signature (delete it)")
		}
		for _, on := range n.On {
			if on != notify.Verdict && on != notify.Regression {
				c.item("notify", i, "on: %q is not one of verdict, regression", on)
			}
		}
		for _, repo := range n.Repositories {
			if !ident.IsRepository(repo) {
				c.item("notify", i, "repositories: %q is not a repository (write owner/name)", repo)
			}
		}
		if strings.Contains(n.URLFile, "://") {
			c.item("notify", i, "url_file is an address, and should be the name of a file that holds it (everyone who knows the address of a chat may write to it)")
		}
		if secretLike(n.SecretFile) {
			c.item("notify", i, "secret_file is a secret, and should be the name of a file that holds it (make a new one)")
		}
	}
}

// readNotify reads the files of a Notify.
func (r *secretReader) readNotify(key string, n Notify) NotifySecret {
	s := NotifySecret{URL: string(r.file(key+".url_file", n.URLFile, 0))}
	if n.SecretFile != "" {
		s.Secret = r.file(key+".secret_file", n.SecretFile, minSecret)
	}
	if u, err := url.Parse(s.URL); s.URL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		r.problems.add("%s.url_file: %s does not hold an address (write e.g. https://chat.example.com/hooks/1)", key, n.URLFile)
	}
	return s
}

// teller is what the hooks are told by, or nil where there are none.
func (s *Server) teller() *notify.Teller {
	if len(s.opt.Notify) == 0 {
		return nil
	}
	t := &notify.Teller{
		Journal: s.Journal, Ledger: s.Ledger, Dir: filepath.Join(s.opt.Data, "notify"), Page: s.pageOfRun, Now: s.opt.Now, Log: s.log,
		Blob:  s.Journal.Artifacts.Read,
		Leads: s.Journal.Leads,
	}
	for _, n := range s.opt.Notify {
		secret := s.opt.Secrets.Notify[n.Name]
		t.Hooks = append(t.Hooks, notify.Hook{
			Name: n.Name, URL: secret.URL, Slack: n.Form == "slack", Secret: secret.Secret, On: n.On, Repositories: n.Repositories,
		})
	}
	return t
}
