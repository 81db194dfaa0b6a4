package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/serve"
)

// The people of the story.
const (
	owner  = "olga"
	writer = "walt" // has write access
	reader = "rita" // has not
)

// The check that the branch protection asks for.
const required = "kernelgate"

// A world is everything that the story happens in.
type world struct {
	ctx      context.Context // ends with the caller's, and when the bot dies
	dir      string
	listen   string        // the bot's address
	patience time.Duration // for one verdict
	hub      *embedded.Server
	repo     *embedded.Repo
	app      *embedded.App
	bot      *serve.Server

	log    *os.File // of the bot and the runner, which write whole lines
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // of the bot
	ended  chan error
}

// newWorld brings up the hub, the repository and the bot, in the order of a real
// installation: the App, then the bot that is given its key, then the webhook.
func newWorld(ctx context.Context, dir string, opt Options, t *teller) (_ *world, err error) {
	w := &world{dir: dir, patience: opt.patience}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	if w.listen, err = freeAddress(w.ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	// Inside, the bot keeps its data to itself; the sandbox's user has to get to the
	// runner's part.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, fmt.Errorf("opening the scratch folder: %w", err)
	}
	if w.log, err = os.OpenFile(w.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, fmt.Errorf("making the bot's log: %w", err)
	}
	if err := w.openHub(opt); err != nil {
		return nil, err
	}
	t.note("GitHub      %s (embedded)", w.hub.URL())
	t.note("repository  %s: an FP8 attention kernel (stage 0, scalar) and a policy that asks for +10 %%", w.repo.FullName())
	t.note("protection  main takes what has passed the check %q of the App %s, and nothing else", required, w.app.Login())
	if err := w.openBot(opt, t); err != nil {
		return nil, err
	}
	t.note("bot         %s, with a runner of its own", w.bot.URL())
	return w, nil
}

func (w *world) logPath() string { return filepath.Join(w.dir, "bot.log") }
func (w *world) data() string    { return filepath.Join(w.dir, "data") }

func (w *world) openHub(opt Options) (err error) {
	if w.hub, err = embedded.New(embedded.Options{Dir: filepath.Join(w.dir, "hub"), Seed: opt.Seed}); err != nil {
		return err
	}
	if w.repo, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: owner, Name: "kernels"}); err != nil {
		return err
	}
	for login, role := range map[string]embedded.Role{writer: embedded.Write, reader: embedded.Read} {
		w.hub.CreateUser(login)
		if err := w.repo.Grant(login, role); err != nil {
			return err
		}
	}
	files := opt.files
	if files == nil {
		if files, err = firstCommit(); err != nil {
			return err
		}
	}
	if _, err := w.repo.Push("main", files, "FP8 attention for the CPU, scalar"); err != nil {
		return err
	}
	if w.app, err = w.hub.CreateApp(embedded.AppOptions{Slug: "kernelgate", Key: opt.key, Site: "http://" + w.listen}); err != nil {
		return err
	}
	if _, err := w.app.Install(w.repo); err != nil {
		return err
	}
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: required, AppID: w.app.ID()}}})
	return nil
}

func (w *world) openBot(opt Options, t *teller) (err error) {
	c := serve.Defaults(opt.Getenv)
	c.Data = w.data()
	c.Listen = w.listen
	c.URL, c.Pages.Public = "http://"+c.Listen, []string{w.repo.FullName()} // so that checks lead to its pages
	c.GitHub = serve.GitHub{AppID: w.app.ID(), APIURL: w.hub.URL(), GitURL: w.hub.URL()}
	c.Runner.Labels = []string{"cpu"}
	c.Log.Format = "json" // the runner's too: its progress is read from there
	secret := rand.Text()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.ctx))
	w.stop = stop
	w.bot, err = serve.Start(ctx, serve.Options{
		Config: c, Secrets: serve.Secrets{PrivateKey: w.app.PrivateKeyPEM(), Webhooks: [][]byte{[]byte(secret)}},
		Version: opt.Version, Stderr: &follower{log: w.log, live: t}, Log: slog.New(slog.NewJSONHandler(w.log, nil)), Now: opt.Now,
	})
	if err != nil {
		return fmt.Errorf("starting the bot: %w", err)
	}
	w.ended = make(chan error, 1)
	go func() {
		err := w.bot.Wait()
		w.cancel(fmt.Errorf("the bot has stopped: %w (see %s)", errors.Join(err, context.Canceled), w.logPath()))
		w.ended <- err
	}()
	ready, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	if err := w.bot.Ready(ready); err != nil {
		return fmt.Errorf("starting the bot: %w (see %s)", err, w.logPath())
	}
	w.app.SetHook(w.bot.URL()+"/webhook", secret)
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

// close stops the bot, which takes its runner with it, and then the hub.
func (w *world) close() error {
	var err error
	if w.stop != nil {
		w.stop()
	}
	if w.ended != nil {
		err = <-w.ended
	}
	if w.hub != nil {
		err = errors.Join(err, w.hub.Close())
	}
	if w.log != nil {
		err = errors.Join(err, w.log.Close())
	}
	w.cancel(nil)
	if err != nil {
		return fmt.Errorf("stopping the demo: %w", err)
	}
	return nil
}
