// Package demo shows the gatekeeper at work on this machine: an embedded GitHub
// with one repository, the bot as it runs in production with its runner as a
// process of its own, and people who open the stages of an FP8 attention kernel
// as pull requests. Builds, measurements and verdicts are real; nothing leaves
// the loopback. It decides nothing: it acts as people would, and tells what came
// of it.
package demo

import (
	"cmp"
	"context"
	"crypto/rsa"
	"errors"
	"io"
	"time"

	"github.com/kernelgate/kernelgate/bot/local"
	"github.com/kernelgate/kernelgate/gates"
)

// Options say how to run the demo.
type Options struct {
	Once    bool // stop after the story instead of waiting to be interrupted
	Version string
	Seed    uint64 // of the embedded GitHub's tokens
	Now     func() time.Time
	Getenv  func(string) string

	Out    io.Writer
	Live   local.Live
	Render func(*gates.Verdict) string

	patience time.Duration     // for one verdict; five minutes unless given
	key      *rsa.PrivateKey   // the App's, made unless given
	files    map[string]string // of the first commit, the story's unless given
}

// Run tells the story and says whether every verdict was the expected one. It
// leaves nothing behind but, where something went wrong, the scratch folder.
func Run(ctx context.Context, opt Options) (right bool, err error) {
	opt.patience = cmp.Or(opt.patience, 5*time.Minute)
	t := local.NewTeller(opt.Out, opt.Live, opt.Now)
	return local.InScratch(ctx, "kernelgate-demo-", t, func(dir string) (bool, error) { return tell(ctx, dir, opt, t) })
}

// tell tells the story in a folder.
func tell(ctx context.Context, dir string, opt Options, t *local.Teller) (right bool, err error) {
	t.Say("A GitHub, the bot and its runner on this machine: no account, no GPU.\n\n")
	w, err := newWorld(ctx, dir, opt, t)
	if err != nil {
		return false, err
	}
	// What the bot does once it is told to stop cannot change the story.
	defer func() {
		if stopped := w.Close(); stopped != nil && ctx.Err() == nil {
			err = errors.Join(err, stopped)
		}
	}()
	s := &story{world: w, Teller: t, opt: opt}
	if err := s.tell(); err != nil {
		return false, err
	}
	right = s.end()
	if !opt.Once {
		s.linger(ctx)
	}
	return right, nil
}
