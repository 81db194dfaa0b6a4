// Package local runs the bot on this machine against an embedded GitHub with one repository. As in
// production, the bot has a runner in a separate process, and everything communicates over real
// HTTP and git, on the loopback interface. It serves the packages demo and try, which decide what
// the repository contains and what happens to it.
package local

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/runners"
)

// Required is the check that the branch protection requires.
const Required = "kernelgate"

// Options configures a world. The fields below Getenv are optional.
type Options struct {
	Dir      string // an empty folder for repositories, data and log
	Repo     embedded.RepoOptions
	Fill     func(*embedded.Repo) error // creates the first commits of the repository
	Labels   []string                   // the runner's labels
	Progress runners.Progress           // receives the runner's progress
	Version  string
	Seed     uint64 // for the embedded GitHub's tokens
	Now      func() time.Time
	Getenv   func(string) string

	Key        *rsa.PrivateKey   // the App's key; generated if nil
	Includes   map[string]string // as in serve.LocalRunner
	Toolchains []string          // as in serve.LocalRunner
	RunnerEnv  []string          // as in serve.Options
}

// A World is a GitHub with one repository, and a bot that watches it.
type World struct {
	Ctx  context.Context // ends with the caller's context, or when the bot dies
	Hub  *embedded.Server
	Repo *embedded.Repo
	App  *embedded.App
	Bot  *serve.Server // nil before StartBot

	opt    Options
	listen string // the bot's address

	log    *os.File // of the bot and the runner, which write whole lines
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // stops the bot
	ended  chan error
}

// Open starts the hub, with a repository whose default branch accepts only changes that passed the
// App's check. StartBot starts the bot, Close ends everything.
func Open(ctx context.Context, opt Options) (_ *World, err error) {
	w := &World{opt: opt}
	w.Ctx, w.cancel = context.WithCancelCause(ctx)
	if w.listen, err = freeAddress(w.Ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	// The bot protects its own data in the folder. The sandbox's user needs access to the runner's
	// part.
	if err := os.Chmod(opt.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("opening the scratch folder: %w", err)
	}
	if w.log, err = os.OpenFile(w.LogPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, fmt.Errorf("making the bot's log: %w", err)
	}
	if w.Hub, err = embedded.New(embedded.Options{Dir: filepath.Join(opt.Dir, "hub"), Seed: opt.Seed}); err != nil {
		return nil, err
	}
	if w.Repo, err = w.Hub.CreateRepo(opt.Repo); err != nil {
		return nil, err
	}
	if err := opt.Fill(w.Repo); err != nil {
		return nil, err
	}
	return w, w.install()
}

// install creates the App and requires its check on the default branch.
func (w *World) install() (err error) {
	if w.App, err = w.Hub.CreateApp(embedded.AppOptions{Slug: "kernelgate", Key: w.opt.Key, Site: "http://" + w.listen}); err != nil {
		return err
	}
	if _, err := w.App.Install(w.Repo); err != nil {
		return err
	}
	w.Repo.ProtectBranch(w.Repo.DefaultBranch(), embedded.Protection{Checks: []embedded.RequiredCheck{{Context: Required, AppID: w.App.ID()}}})
	return nil
}

// Dir returns the folder that contains everything.
func (w *World) Dir() string { return w.opt.Dir }

// LogPath returns the path of the log of the bot and its runner.
func (w *World) LogPath() string { return filepath.Join(w.opt.Dir, "bot.log") }

// Data returns the bot's data folder.
func (w *World) Data() string { return filepath.Join(w.opt.Dir, "data") }

// StartBot starts the bot, and then connects the App's webhook to it, in the order of a real
// installation.
func (w *World) StartBot() (err error) {
	c := serve.Defaults(w.opt.Getenv)
	c.Data = w.Data()
	c.Listen = w.listen
	c.URL, c.Pages.Public = "http://"+c.Listen, []string{w.Repo.FullName()} // so that checks link to its pages
	c.GitHub = serve.GitHub{AppID: w.App.ID(), APIURL: w.Hub.URL(), GitURL: w.Hub.URL()}
	c.Runner.Labels, c.Runner.Includes, c.Runner.Toolchains = w.opt.Labels, w.opt.Includes, w.opt.Toolchains
	c.Log.Format = "json" // also for the runner, whose progress is read from the log
	secret := rand.Text()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.Ctx))
	w.stop = stop
	w.Bot, err = serve.Start(ctx, serve.Options{
		Config: c, Secrets: serve.Secrets{PrivateKey: w.App.PrivateKeyPEM(), Webhooks: [][]byte{[]byte(secret)}},
		Version: w.opt.Version, Stderr: &follower{log: w.log, live: w.opt.Progress}, Log: slog.New(slog.NewJSONHandler(w.log, nil)), Now: w.opt.Now,
		RunnerEnv: w.opt.RunnerEnv,
	})
	if err != nil {
		return fmt.Errorf("starting the bot: %w", err)
	}
	w.ended = make(chan error, 1)
	go func() {
		err := w.Bot.Wait()
		w.cancel(fmt.Errorf("the bot has stopped: %w (see %s)", errors.Join(err, context.Canceled), w.LogPath()))
		w.ended <- err
	}()
	ready, cancel := context.WithTimeout(w.Ctx, time.Minute)
	defer cancel()
	if err := w.Bot.Ready(ready); err != nil {
		return fmt.Errorf("starting the bot: %w (see %s)", err, w.LogPath())
	}
	w.App.SetHook(w.Bot.URL()+"/webhook", secret)
	return nil
}

// freeAddress returns an unused address, because the bot must know its own before it starts.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free address: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Close stops the bot, which stops its runner, and then the hub.
func (w *World) Close() error {
	var err error
	if w.stop != nil {
		w.stop()
	}
	if w.ended != nil {
		err = <-w.ended
	}
	if w.Hub != nil {
		err = errors.Join(err, w.Hub.Close())
	}
	if w.log != nil {
		err = errors.Join(err, w.log.Close())
	}
	w.cancel(nil)
	if err != nil {
		return fmt.Errorf("stopping the bot: %w", err)
	}
	return nil
}
