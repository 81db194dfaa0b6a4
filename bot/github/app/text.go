package app

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/policies/shell"
)

// greeting says what to do in the browser.
func (j *job) greeting(address, port, target string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "A GitHub App for %s: %q, owned by %s.\n\n", j.site, j.opt.Name, j.owner())
	fmt.Fprintf(&b, "Open this page in a browser on this host, and press its button:\n\n  %s\n\n", address)
	fmt.Fprintf(&b, "If the browser is on a different machine, run this command there first:\n\n  ssh -L %s:%s %s\n\n", port, target, j.opt.Host)
	if j.unreachable() {
		fmt.Fprintf(&b, "Warning: %s refuses an App with a webhook on a loopback address, and %s is one.\n\n", j.web.Host, j.site)
	}
	b.WriteString("Waiting for GitHub to send the browser back. Ctrl-C stops setup, and nothing is written.\n\n")
	return b.String()
}

// unreachable reports whether GitHub cannot send webhooks to the bot.
func (j *job) unreachable() bool {
	site, err := parseSite(j.site)
	return err == nil && client.Loopback(site.Hostname()) && !client.Loopback(j.web.Hostname())
}

func (j *job) owner() string {
	if j.opt.Org != "" {
		return "the organisation " + j.opt.Org
	}
	return "the user who is logged in at " + j.web.Host
}

// farewell says what was done, and the next steps.
func (j *job) farewell(made app) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The App %s is created (id %d). Its files are in %s:\n\n", made.HTMLURL, made.ID, j.dir)
	fmt.Fprintf(&b, "  %-16s the configuration, without secrets\n", configFile)
	fmt.Fprintf(&b, "  %-16s the key of the App: keep it secret\n", keyFile)
	fmt.Fprintf(&b, "  %-16s the webhook secret: keep it secret\n\nNext:\n\n", secretFile)
	for i, s := range j.next(made) {
		fmt.Fprintf(&b, "  %d. %s:\n     %s\n", i+1, s.What, s.How)
	}
	return b.String()
}

// A step is something that the operator has to do.
type step struct {
	What, How     string
	Link, Command bool // whether How is a link or a command
}

func (j *job) next(made app) []step {
	return []step{
		{What: "Start the bot", How: "kernelgate serve --config " + shell.Quote(filepath.Join(j.dir, configFile)), Command: true},
		{What: "Install the App on the repositories to gate", How: made.HTMLURL + "/installations/new", Link: true},
		{What: "Make the check required, after a pull request has it", How: "Settings → Branches (or Rules) → Require status checks → kernelgate"},
	}
}
