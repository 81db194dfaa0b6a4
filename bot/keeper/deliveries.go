package keeper

import (
	"context"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/facts"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// Store puts a webhook into the journal; it is what a webhook.Handler stores by.
func (k *Keeper) Store(ctx context.Context, d webhook.Delivery) error {
	fresh, err := k.Journal.Accept(ctx, journal.Delivery{ID: d.ID, Event: d.Event, Received: d.Received, Body: d.Body})
	if fresh {
		k.count(func(c *Counts) { c.Accepted++ })
	}
	return err
}

func (k *Keeper) deliveries(ctx context.Context) error {
	return k.Journal.Process(ctx, func(ctx context.Context, d journal.Delivery) error {
		err := k.handle(ctx, d)
		k.count(func(c *Counts) {
			c.Handled++
			if err != nil {
				c.Failed++
			}
		})
		if err != nil {
			k.Log.Warn("a delivery could not be handled", "delivery", d.ID, "event", d.Event, "err", err)
		}
		return err
	})
}

// handle writes down what a delivery says. Everything that follows from it is
// done afterwards, by whoever looks after the change.
func (k *Keeper) handle(ctx context.Context, d journal.Delivery) error {
	event, err := webhook.Decode(d.Event, d.Body)
	if err != nil {
		// Asking again would bring the same bytes.
		k.Log.Error("a delivery cannot be read and is left out", "delivery", d.ID, "event", d.Event, "err", err)
		return nil
	}
	k.Log.Debug("delivery", "delivery", d.ID, "event", d.Event)
	switch e := event.(type) {
	case webhook.PullRequest:
		return k.pullRequest(ctx, e)
	case webhook.IssueComment:
		return k.comment(ctx, e)
	case webhook.MergeGroup:
		return k.mergeGroup(ctx, e)
	case webhook.CheckRun:
		return k.checkRun(ctx, d.ID, e)
	case webhook.CheckSuite:
		return k.button(ctx, d.ID, e.Origin, e.HeadSHA, e.PullRequests, command.Rebench{})
	case webhook.Push:
		return k.push(ctx, e)
	case webhook.Installation:
		k.visit(ctx, e.Repositories)
	case webhook.InstallationRepositories:
		k.visit(ctx, e.Added)
	case webhook.Ping:
		k.Log.Info("GitHub says hello", "hook", e.HookID, "repo", e.Repository.FullName)
	}
	return nil
}

func (k *Keeper) watched(repo string) bool {
	if len(k.Repositories) == 0 {
		return true
	}
	for _, r := range k.Repositories {
		if strings.EqualFold(r, repo) {
			return true
		}
	}
	return false
}

func (k *Keeper) pullRequest(ctx context.Context, e webhook.PullRequest) error {
	if !k.watched(e.Repository.FullName) {
		return nil
	}
	id := change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}
	_, err := k.look(ctx, id, facts.OfEvent(e))
	return err
}

// comment notes a command. What is no command of ours, or comes from a program,
// changes nothing.
func (k *Keeper) comment(ctx context.Context, e webhook.IssueComment) error {
	if !k.watched(e.Repository.FullName) || e.Author.Bot || !e.Open {
		return nil
	}
	asked, ok := command.Parse(e.Body)
	if !ok {
		return nil
	}
	id := change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}
	s, err := k.states.load(ctx, id)
	if err != nil {
		return err
	}
	if s.Seq == 0 { // opened before the bot was there
		if _, err := k.refresh(ctx, id, e.Repository.FullName); err != nil {
			return err
		}
	}
	return k.ask(ctx, id, change.Asked{ID: "comment-" + strconv.FormatInt(e.ID, 10), Comment: e.ID, By: e.Author.Login, Request: asked})
}

// ask notes a command once.
func (k *Keeper) ask(ctx context.Context, id change.ID, a change.Asked) error {
	_, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Asked(a.ID) {
			return nil, nil
		}
		a.Head = now.Facts.Head
		return a, nil
	})
	k.tender.poke(id)
	return err
}

// checkRun understands the buttons of a check. They are a command by whoever
// pressed them.
func (k *Keeper) checkRun(ctx context.Context, delivery string, e webhook.CheckRun) error {
	_, folder, err := present.ParseExternalID(e.ExternalID)
	if err != nil {
		return nil // no check of ours
	}
	again := command.Rebench{}
	if folder != "" {
		again.Kernels = []string{folder}
	}
	var c command.Command = again
	if e.Action == "requested_action" {
		switch e.Button {
		case "rebench":
		case "explain":
			c = command.Explain{}
		case "cancel":
			c = command.Cancel{}
		default:
			return nil
		}
	}
	return k.button(ctx, delivery, e.Origin, e.HeadSHA, e.PullRequests, c)
}

// button notes a command that came without a comment. For a fork GitHub does not
// say which pull request it is: the ledger knows the head.
func (k *Keeper) button(ctx context.Context, delivery string, o webhook.Origin, head string, pulls []int, c command.Command) error {
	if !k.watched(o.Repository.FullName) {
		return nil
	}
	var ids []change.ID
	for _, n := range pulls {
		ids = append(ids, change.ID{Kind: change.Pull, Repo: o.Repository.ID, Number: n})
	}
	if len(ids) == 0 {
		var err error
		if ids, err = k.Ledger.ByHead(ctx, o.Repository.ID, head); err != nil {
			return err
		}
	}
	for _, id := range ids {
		s, err := k.states.load(ctx, id)
		if err != nil {
			return err
		}
		if s.Seq == 0 || s.Facts.Head != head || !s.Facts.Open {
			continue // the button is on a commit that nobody waits for
		}
		if err := k.ask(ctx, id, change.Asked{ID: "button-" + delivery, By: o.Sender.Login, Request: command.Request{Command: c}}); err != nil {
			return err
		}
	}
	return nil
}

// mergeGroup gates what the merge queue wants to merge, on its own commit.
func (k *Keeper) mergeGroup(ctx context.Context, e webhook.MergeGroup) error {
	if !k.watched(e.Repository.FullName) {
		return nil
	}
	id := change.ID{Kind: change.Group, Repo: e.Repository.ID, SHA: e.HeadSHA}
	f := facts.OfGroup(e)
	var override *change.Override
	for _, n := range f.Pulls {
		pull, err := k.states.load(ctx, change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: n})
		if err != nil {
			return err
		}
		f.Title, f.Author, f.Labels = pull.Facts.Title, pull.Facts.Author, pull.Facts.Labels
		if o := pull.Override; o != nil {
			override = &change.Override{SHA: f.Head, By: o.By, Reason: o.Reason, At: o.At}
		}
	}
	_, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Seq > 0 && (!now.Facts.Open || f.Open) {
			return nil, nil // told already; a group that is gone stays so
		}
		return change.Seen{Facts: f, Override: override}, nil
	})
	k.tender.poke(id)
	return err
}

// push has open pull requests look at the rules of the branch again, and measures
// what reached the default branch, for the history.
func (k *Keeper) push(ctx context.Context, e webhook.Push) error {
	if !k.watched(e.Repository.FullName) || strings.Trim(e.After, "0") == "" {
		return nil
	}
	pulls, err := k.Ledger.OpenPulls(ctx, e.Repository.ID)
	if err != nil {
		return err
	}
	if err := k.rulesOf(ctx, e.Repository.FullName, e.Branch, pulls); err != nil {
		return err
	}
	if !e.Default() || strings.Trim(e.Before, "0") == "" {
		return nil
	}
	id := change.ID{Kind: change.Push, Repo: e.Repository.ID, SHA: e.After}
	_, err = k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Seq > 0 {
			return nil, nil
		}
		return change.Seen{Facts: change.Facts{
			Repo: e.Repository.FullName, DefaultBranch: e.Repository.DefaultBranch, Title: e.Branch, Author: e.Sender.Login, Open: true,
			Head: e.After, Base: e.Branch, BaseSHA: e.Before,
		}}, nil
	})
	k.tender.poke(id)
	return err
}
