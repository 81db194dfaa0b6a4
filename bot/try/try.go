// Package try shows what kernelgate would do on GitHub with a repository that exists only on this
// machine. It copies the repository to an embedded GitHub and opens its branches as pull requests;
// the bot and a runner judge them. It writes nothing to the user's repository and decides nothing
// itself.
package try

import (
	"cmp"
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/local"
)

// Options says what to try.
type Options struct {
	Dir  string // folder in the repository; empty for the current folder
	Base string // the branch that pull requests target; detected if empty
	// Branches are opened as pull requests. The default is all that are ahead of the base.
	Branches []string
	Labels   []string // labels of every pull request, for the policy's rules
	Once     bool     // stop when all verdicts are there

	Devices    []string          // what this machine is, by the policies' names of devices: cpu, gpu, l4
	Includes   map[string]string // sets of headers, as in serve.LocalRunner
	Toolchains []string          // additional compilers, as in serve.LocalRunner

	Version string
	Seed    uint64 // for the embedded GitHub's tokens
	Now     func() time.Time
	Getenv  func(string) string
	Out     io.Writer
	Live    local.Live

	key  *rsa.PrivateKey // the App's key; generated if nil
	poll time.Duration   // polling interval of the user's branches; defaults to two seconds
}

// you is the account that owns the repository on the embedded GitHub and opens the pull requests.
const you = "you"

// rebench is the command that users are invited to try.
const rebench = "/rebench rounds=12"

// Run opens the pull requests and reports whether all of them pass. It removes everything
// afterwards, but keeps the scratch folder if something went wrong. A mistake in the options or the
// repository is a usage.Error.
func Run(ctx context.Context, opt Options) (passed bool, err error) {
	from, err := openSource(ctx, opt.Dir, opt.Base, opt.Branches)
	if err != nil {
		return false, err
	}
	t := local.NewTeller(opt.Out, opt.Live, opt.Now)
	_, err = local.InScratch(ctx, "kernelgate-try-", t, func(dir string) (bool, error) {
		passed, err = try(ctx, dir, from, opt, t)
		return err == nil, err // DEFER is a result, not an error
	})
	return passed, err
}

// try judges the branches in a scratch folder.
func try(ctx context.Context, dir string, from *source, opt Options, t *local.Teller) (passed bool, err error) {
	t.Say("An embedded GitHub, the bot and a runner on this machine. Your repository is only read.\n\n")
	w, err := local.Open(ctx, local.Options{
		Dir: dir, Repo: embedded.RepoOptions{Owner: you, Name: from.name, DefaultBranch: from.base.name}, Labels: opt.Devices, Progress: t,
		Version: opt.Version, Seed: opt.Seed, Now: opt.Now, Getenv: opt.Getenv, Key: opt.key,
		Includes: opt.Includes, Toolchains: opt.Toolchains, RunnerEnv: cacheOf(opt.Getenv),
		Fill: func(repo *embedded.Repo) error {
			return from.copyTo(ctx, repo, dir, append([]branch{from.base}, from.branches...)...)
		},
	})
	if err != nil {
		return false, err
	}
	defer func() {
		// After an interrupt the end of the bot is expected.
		if stopped := w.Close(); stopped != nil && ctx.Err() == nil {
			err = errors.Join(err, stopped)
		}
	}()
	t.Note("GitHub      %s (embedded)", w.Hub.URL())
	t.Note("repository  %s, a copy; %s accepts only what has passed the check %q", w.Repo.FullName(), from.base.name, local.Required)
	if err := w.StartBot(); err != nil {
		return false, err
	}
	t.Note("bot         %s, with a runner for %s", w.Bot.URL(), strings.Join(opt.Devices, ", "))
	tr := &trial{World: w, Teller: t, from: from, opt: opt, shown: map[int]string{}}
	if err := tr.propose(); err != nil {
		return false, err
	}
	t.Say("\nOpen %s/%s/pulls in a browser.\n\n", w.Hub.URL(), w.Repo.FullName())
	if err := tr.wait(); err != nil {
		return false, err
	}
	if tr.end(); !opt.Once {
		tr.linger(ctx)
	}
	return tr.passed(), nil
}

// cacheOf lets the runner use this user's cache of compilers and builds from kernelgate check. The
// runner's home folder is new and empty.
func cacheOf(getenv func(string) string) []string {
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return []string{"XDG_CACHE_HOME=" + dir}
	}
	if home := getenv("HOME"); home != "" {
		return []string{"XDG_CACHE_HOME=" + filepath.Join(home, ".cache")}
	}
	return nil
}

// copyTo copies branches to the repository on the embedded GitHub.
func (s *source) copyTo(ctx context.Context, repo *embedded.Repo, scratch string, branches ...branch) error {
	file := filepath.Join(scratch, "branches.bundle")
	if err := s.bundle(ctx, file, branches...); err != nil {
		return err
	}
	refs := map[string]string{}
	for _, b := range branches {
		refs[b.name] = b.ref
	}
	return errors.Join(repo.Import(file, refs), os.Remove(file))
}

// propose opens the pull requests.
func (t *trial) propose() error {
	for _, b := range t.from.branches {
		title, body, err := t.from.words(t.Ctx, b)
		if err != nil {
			return err
		}
		pr, err := t.Repo.OpenPR(embedded.PROptions{Author: you, Title: title, Body: body, Head: b.name, Labels: t.opt.Labels})
		if err != nil {
			return err
		}
		t.pulls = append(t.pulls, pull{pr, b.name})
		t.Note("%-11s %s: %s", fmt.Sprintf("#%d", pr.Number()), b.name, title)
	}
	return nil
}

func (o Options) every() time.Duration { return cmp.Or(o.poll, 2*time.Second) }
