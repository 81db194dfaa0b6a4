// Package local runs the bot on this machine against an embedded GitHub with one
// repository, as in production: the bot has a runner in a process of its own, and
// everything talks over real HTTP and git on the loopback. The demo and kernelgate
// try say what is in the repository and what happens to it.
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

// Required is the check that the branch protection asks for.
const Required = "kernelgate"

// Options say what to run. Everything below Getenv may be left out.
type Options struct {
	Dir      string // an empty folder for repositories, data and log
	Repo     embedded.RepoOptions
	Fill     func(*embedded.Repo) error // puts the first commits into the repository
	Labels   []string                   // kinds of jobs that the runner takes
	Progress runners.Progress           // is told what the runner does
	Version  string
	Seed     uint64 // of the embedded GitHub's tokens
	Now      func() time.Time
	Getenv   func(string) string

	Key        *rsa.PrivateKey   // the App's, made unless given
	Includes   map[string]string // as serve.LocalRunner has them
	Toolchains []string          // as serve.LocalRunner has them
	RunnerEnv  []string          // as serve.Options has it
}

// A World is a GitHub, a repository on it and a bot that watches it.
type World struct {
	Ctx  context.Context // ends with the caller's, and when the bot dies
	Hub  *embedded.Server
	Repo *embedded.Repo
	App  *embedded.App
	Bot  *serve.Server // nil before StartBot

	opt    Options
	listen string // the bot's address

	log    *os.File // of the bot and the runner, which write whole lines
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // of the bot
	ended  chan error
}

// Open starts the hub, with a repository whose default branch takes only what has
// passed the check of the App. Close ends it all, StartBot brings it to life.
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
	// Inside, the bot keeps its data to itself; the sandbox's user has to get to the
	// runner's part.
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

// install makes the App and protects the default branch by its check.
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

// Dir is the folder of everything.
func (w *World) Dir() string { return w.opt.Dir }

// LogPath is the log of the bot and its runner.
func (w *World) LogPath() string { return filepath.Join(w.opt.Dir, "bot.log") }

// Data is the bot's folder.
func (w *World) Data() string { return filepath.Join(w.opt.Dir, "data") }

// StartBot starts the bot, and then connects the App's webhook to it: the order of a
// real installation.
func (w *World) StartBot() (err error) {
	c := serve.Defaults(w.opt.Getenv)
	c.Data = w.Data()
	c.Listen = w.listen
	c.URL, c.Pages.Public = "http://"+c.Listen, []string{w.Repo.FullName()} // so that checks lead to its pages
	c.GitHub = serve.GitHub{AppID: w.App.ID(), APIURL: w.Hub.URL(), GitURL: w.Hub.URL()}
	c.Runner.Labels, c.Runner.Includes, c.Runner.Toolchains = w.opt.Labels, w.opt.Includes, w.opt.Toolchains
	c.Log.Format = "json" // the runner's too: its progress is read from there
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

// freeAddress is one that nobody listens on: the bot must know its own before it begins.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free address: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Close stops the bot, which takes its runner with it, and then the hub.
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
