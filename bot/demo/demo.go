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
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// Options say how to run the demo.
type Options struct {
	Once    bool // stop after the story instead of waiting to be interrupted
	Version string
	Seed    uint64 // of the embedded GitHub's tokens
	Now     func() time.Time
	Getenv  func(string) string

	Out    io.Writer
	Live   Live
	Render func(*gates.Verdict) string

	patience time.Duration     // for one verdict; five minutes unless given
	key      *rsa.PrivateKey   // the App's, made unless given
	files    map[string]string // of the first commit, the story's unless given
}

// Live shows what the runner is at. It can be taken away before something else is
// printed.
type Live interface {
	runners.Progress
	Clear()
}

// Run tells the story and says whether every verdict was the expected one. It
// leaves nothing behind but, where something went wrong, the scratch folder.
func Run(ctx context.Context, opt Options) (right bool, err error) {
	opt.patience = cmp.Or(opt.patience, 5*time.Minute)
	dir, err := os.MkdirTemp("", "kernelgate-demo-")
	if err != nil {
		return false, fmt.Errorf("making a scratch folder: %w (set TMPDIR to a folder with space)", err)
	}
	t := &teller{out: opt.Out, live: opt.Live, now: opt.Now, begun: opt.Now()}
	defer func() {
		if ctx.Err() == nil && (err != nil || !right) {
			t.say("\nThe bot's log, its data and the repositories are kept: %s\n", dir)
			return
		}
		if gone := os.RemoveAll(dir); gone != nil {
			err = errors.Join(err, fmt.Errorf("removing the scratch folder: %w (remove it yourself)", gone))
		}
	}()
	t.say("A GitHub, the bot and its runner on this machine: no account, no GPU.\n\n")
	w, err := newWorld(ctx, dir, opt, t)
	if err != nil {
		return false, err
	}
	// What the bot does once it is told to stop cannot change the story.
	defer func() {
		if stopped := w.close(); stopped != nil && ctx.Err() == nil {
			err = errors.Join(err, stopped)
		}
	}()
	s := &story{world: w, teller: t, opt: opt}
	if err := s.tell(); err != nil {
		return false, err
	}
	right = s.end()
	if !opt.Once {
		s.linger(ctx)
	}
	return right, nil
}
