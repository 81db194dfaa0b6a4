package demo

import (
	"context"
	"errors"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/local"
)

// The users of the story.
const (
	owner  = "olga"
	writer = "walt" // has write access
	reader = "rita" // has no write access
)

// A world holds the servers and the repository of the story.
type world struct {
	*local.World
	patience time.Duration // for one verdict
}

// newWorld starts the hub, the repository and the bot.
func newWorld(ctx context.Context, dir string, opt Options, t *local.Teller) (_ *world, err error) {
	w := &world{patience: opt.patience}
	w.World, err = local.Open(ctx, local.Options{
		Dir: dir, Repo: embedded.RepoOptions{Owner: owner, Name: "kernels"}, Labels: []string{"cpu"}, Progress: t,
		Version: opt.Version, Seed: opt.Seed, Now: opt.Now, Getenv: opt.Getenv, Key: opt.key,
		Fill: func(repo *embedded.Repo) error { return fill(repo, opt.files) },
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	t.Note("GitHub      %s (embedded)", w.Hub.URL())
	t.Note("repository  %s: an FP8 attention kernel (stage 0, scalar) and a policy that asks for +10 %%", w.Repo.FullName())
	t.Note("protection  main accepts only what has passed the check %q of the App %s", local.Required, w.App.Login())
	if err := w.StartBot(); err != nil {
		return nil, err
	}
	t.Note("bot         %s, with a local runner", w.Bot.URL())
	return w, nil
}

// fill creates the users and the first commit, which is the story's unless files are given.
func fill(repo *embedded.Repo, files map[string]string) (err error) {
	for login, role := range map[string]embedded.Role{writer: embedded.Write, reader: embedded.Read} {
		if err := repo.Grant(login, role); err != nil {
			return err
		}
	}
	if files == nil {
		if files, err = firstCommit(); err != nil {
			return err
		}
	}
	_, err = repo.Push("main", files, "FP8 attention for the CPU, scalar")
	return err
}
