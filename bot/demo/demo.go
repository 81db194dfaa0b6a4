// Package demo shows the gatekeeper at work on this machine. It starts an embedded GitHub with one
// repository, and the bot as in production, with its runner in a separate process. It then plays
// the people who open the stages of an FP8 attention kernel as pull requests. Builds, measurements
// and verdicts are real, and nothing leaves the loopback interface. The package decides nothing: it
// acts as users would and prints the results.
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

// Options configures the demo.
type Options struct {
	Once    bool // stop after the story instead of waiting for Ctrl-C
	Version string
	Seed    uint64 // for the embedded GitHub's tokens
	Now     func() time.Time
	Getenv  func(string) string

	Out    io.Writer
	Live   local.Live
	Render func(*gates.Verdict) string

	patience time.Duration     // for one verdict; defaults to five minutes
	key      *rsa.PrivateKey   // the App's key; generated if nil
	files    map[string]string // of the first commit; default to the story's
}

// Run plays the story and reports whether every verdict was the expected one. It removes everything
// afterwards, but keeps the scratch folder if something went wrong.
func Run(ctx context.Context, opt Options) (right bool, err error) {
	opt.patience = cmp.Or(opt.patience, 5*time.Minute)
	t := local.NewTeller(opt.Out, opt.Live, opt.Now)
	return local.InScratch(ctx, "kernelgate-demo-", t, func(dir string) (bool, error) { return tell(ctx, dir, opt, t) })
}

// tell plays the story in a folder.
func tell(ctx context.Context, dir string, opt Options, t *local.Teller) (right bool, err error) {
	t.Say("An embedded GitHub, the bot and its runner on this machine: no account, no GPU.\n\n")
	w, err := newWorld(ctx, dir, opt, t)
	if err != nil {
		return false, err
	}
	// An error of the bot after its stop cannot change the story.
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
