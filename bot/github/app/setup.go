// Package app creates the bot's GitHub App for an operator. It sends the operator's browser to
// GitHub with the App's manifest, exchanges the code that comes back for the App's secrets, and
// writes the secrets and a configuration to a folder. It does not install the App in repositories,
// change existing Apps or start the bot.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"

	"github.com/kernelgate/kernelgate/policies/usage"
)

// Options says which App to create, where, and for which bot. URL, Dir, GitHub, Out and Random are
// required.
type Options struct {
	URL    string // the bot's public URL
	Name   string // the App's name; defaults to one derived from URL
	Org    string // the organisation that owns the App; defaults to the user
	Dir    string // folder for the files
	GitHub string // https://github.com, or the URL of an Enterprise server
	Listen string // an address on the loopback; defaults to a free port of 127.0.0.1
	Code   string // a code from a browser elsewhere: no browser is needed here
	Force  bool   // overwrite existing files

	Open      func(address string) error // opens a browser; may be nil
	Host      string                     // this host's name, for ssh; defaults to HOST
	Out       io.Writer                  // receives instructions and results, never a secret
	Random    func() string              // returns an unguessable word
	Wait      time.Duration              // time limit for the browser; defaults to one hour
	TempDir   string                     // last resort for secrets; defaults to os.TempDir
	Transport http.RoundTripper          // defaults to Go's
}

// Run creates the App. A mistake in the options is a usage.Error, and is returned before any
// request to GitHub.
func Run(ctx context.Context, opt Options) error {
	j, err := newJob(opt)
	if err != nil {
		return err
	}
	if err := free(j.dir, j.opt.Force); err != nil {
		return err
	}
	if opt.Code == "" {
		return j.welcome(ctx)
	}
	made, err := j.exchange(ctx, opt.Code)
	switch {
	case errors.Is(err, errSpent):
		return usage.Errorf("--code: %w", err)
	case err != nil:
		return fmt.Errorf("%w; the code is good for an hour: try again", err)
	}
	return j.keep(made)
}

// Browser returns a function that opens a page in a browser on this host. It returns nil if the
// user would not see that browser: on a host without a screen, over ssh, and as root, which
// browsers refuse.
func Browser(uid int, getenv func(string) string) func(address string) error {
	if uid == 0 || getenv("SSH_CONNECTION") != "" || getenv("DISPLAY")+getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return func(address string) error {
		cmd := exec.Command("xdg-open", address)
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("opening a browser: %w", err)
		}
		go func() { _ = cmd.Wait() }() // it may run as long as the browser
		return nil
	}
}
