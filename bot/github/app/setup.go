// Package app makes the bot's GitHub App: it sends a person's browser to GitHub
// with the App's manifest, exchanges the code that comes back for the App's
// secrets, and writes these and a configuration into a folder. It does not
// install the App on repositories, changes no App that is there, and does not
// start the bot.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"time"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Options say which App is made, where, and for which bot. URL, Dir, GitHub, Out
// and Random are required.
type Options struct {
	URL    string // the bot's public address
	Name   string // the App's name; follows from URL unless given
	Org    string // the organisation that owns the App; the person unless given
	Dir    string // where the files go
	GitHub string // https://github.com, or an Enterprise's address
	Listen string // an address on the loopback; a free port of 127.0.0.1 unless given
	Code   string // a code that came back elsewhere: no browser is needed
	Force  bool   // overwrite files that are there

	Open      func(address string) error // opens a browser; nil does not
	Host      string                     // this host's name, for ssh; HOST unless given
	Out       io.Writer                  // told what to do, and what was done; never a secret
	Random    func() string              // what nobody can guess
	Wait      time.Duration              // for the browser to come back, one hour unless given
	TempDir   string                     // the last resort for secrets, os.TempDir unless given
	Transport http.RoundTripper          // Go's own unless given
}

// Run makes the App. A mistake in the options is a strict.Mistake and is told
// before GitHub is asked anything.
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
		return strict.Mistakef("--code: %w", err)
	case err != nil:
		return fmt.Errorf("%w; the code is good for an hour: try again", err)
	}
	return j.keep(made)
}

// Browser is how to open a page in a browser of this host's; nil where none would
// show up before the person who asked: on a host without a screen, at the other
// end of ssh, and as root, whom browsers refuse.
func Browser(uid int, getenv func(string) string) func(address string) error {
	if uid == 0 || getenv("SSH_CONNECTION") != "" || getenv("DISPLAY")+getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return func(address string) error {
		cmd := exec.Command("xdg-open", address)
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("opening a browser: %w", err)
		}
		go func() { _ = cmd.Wait() }() // it may live as long as the browser
		return nil
	}
}
