package bot

import (
	"context"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/facts"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/bot/journal"
	"github.com/kernelgate/kernelgate/bot/webhook"
)

// Store puts a webhook into the journal; it is what a webhook.Handler stores by.
func (b *Bot) Store(ctx context.Context, d webhook.Delivery) error {
	fresh, err := b.Journal.Accept(ctx, journal.Delivery{ID: d.ID, Event: d.Event, Received: d.Received, Body: d.Body})
	if fresh {
		b.count(func(c *Counts) { c.Accepted++ })
	}
	return err
}

func (b *Bot) deliveries(ctx context.Context) error {
	return b.Journal.Process(ctx, func(ctx context.Context, d journal.Delivery) error {
		err := b.handle(ctx, d)
		b.count(func(c *Counts) {
			c.Handled++
			if err != nil {
				c.Failed++
			}
		})
		if err != nil {
			b.Log.Warn("a delivery could not be handled", "delivery", d.ID, "event", d.Event, "err", err)
		}
		return err
	})
}

// handle writes down what a delivery says. Everything that follows from it is
// done afterwards, by whoever looks after the change.
func (b *Bot) handle(ctx context.Context, d journal.Delivery) error {
	event, err := webhook.Decode(d.Event, d.Body)
	if err != nil {
		// Asking again would bring the same bytes.
		b.Log.Error("a delivery cannot be read and is left out", "delivery", d.ID, "event", d.Event, "err", err)
		return nil
	}
	b.Log.Debug("delivery", "delivery", d.ID, "event", d.Event)
	switch e := event.(type) {
	case webhook.PullRequest:
		return b.pullRequest(ctx, e)
	case webhook.IssueComment:
		return b.comment(ctx, e)
	case webhook.MergeGroup:
		return b.mergeGroup(ctx, e)
	case webhook.CheckRun:
		return b.checkRun(ctx, d.ID, e)
	case webhook.CheckSuite:
		return b.button(ctx, d.ID, e.Origin, e.HeadSHA, e.PullRequests, command.Rebench{})
	case webhook.Push:
		return b.push(ctx, e)
	case webhook.Installation:
		b.visit(ctx, e.Repositories)
	case webhook.InstallationRepositories:
		b.visit(ctx, e.Added)
	case webhook.Ping:
		b.Log.Info("GitHub says hello", "hook", e.HookID, "repo", e.Repository.FullName)
	}
	return nil
}

func (b *Bot) watched(repo string) bool {
	if len(b.Repositories) == 0 {
		return true
	}
	for _, r := range b.Repositories {
		if strings.EqualFold(r, repo) {
			return true
		}
	}
	return false
}

func (b *Bot) pullRequest(ctx context.Context, e webhook.PullRequest) error {
	if !b.watched(e.Repository.FullName) {
		return nil
	}
	id := change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}
	_, err := b.look(ctx, id, facts.OfEvent(e))
	return err
}

// comment notes a command. What is no command of ours, or comes from a program,
// changes nothing.
func (b *Bot) comment(ctx context.Context, e webhook.IssueComment) error {
	if !b.watched(e.Repository.FullName) || e.Author.Bot || !e.Open {
		return nil
	}
	text := e.Body
	switch parsed, ok, err := command.Parse(e.Body); {
	case err == nil && !ok:
		return nil
	case err == nil:
		text = parsed.String() // what stands around it is nobody's business
	}
	id := change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}
	s, err := b.states.load(ctx, id)
	if err != nil {
		return err
	}
	if s.Seq == 0 { // opened before the bot was there
		if _, err := b.refresh(ctx, id, e.Repository.FullName); err != nil {
			return err
		}
	}
	return b.ask(ctx, id, change.Asked{ID: "comment-" + strconv.FormatInt(e.ID, 10), Comment: e.ID, By: e.Author.Login, Text: text})
}

// ask notes a command once.
func (b *Bot) ask(ctx context.Context, id change.ID, a change.Asked) error {
	_, err := b.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Asked(a.ID) {
			return nil, nil
		}
		a.Head = now.Facts.Head
		return a, nil
	})
	b.tender.poke(id)
	return err
}

// checkRun understands the buttons of a check. They are a command by whoever
// pressed them.
func (b *Bot) checkRun(ctx context.Context, delivery string, e webhook.CheckRun) error {
	kernel := ""
	if _, name, ok := strings.Cut(e.Name, " / "); ok {
		kernel = name
	}
	again := command.Rebench{}
	if kernel != "" {
		again.Kernels = []string{kernel}
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
	return b.button(ctx, delivery, e.Origin, e.HeadSHA, e.PullRequests, c)
}

// button notes a command that came without a comment. For a fork GitHub does not
// say which pull request it is: the ledger knows the head.
func (b *Bot) button(ctx context.Context, delivery string, o webhook.Origin, head string, pulls []int, c command.Command) error {
	if !b.watched(o.Repository.FullName) {
		return nil
	}
	var ids []change.ID
	for _, n := range pulls {
		ids = append(ids, change.ID{Kind: change.Pull, Repo: o.Repository.ID, Number: n})
	}
	if len(ids) == 0 {
		var err error
		if ids, err = b.Ledger.ByHead(ctx, o.Repository.ID, head); err != nil {
			return err
		}
	}
	for _, id := range ids {
		s, err := b.states.load(ctx, id)
		if err != nil {
			return err
		}
		if s.Seq == 0 || s.Facts.Head != head || !s.Facts.Open {
			continue // the button is on a commit that nobody waits for
		}
		if err := b.ask(ctx, id, change.Asked{ID: "button-" + delivery, By: o.Sender.Login, Text: c.String()}); err != nil {
			return err
		}
	}
	return nil
}

// mergeGroup gates what the merge queue wants to merge, on its own commit.
func (b *Bot) mergeGroup(ctx context.Context, e webhook.MergeGroup) error {
	if !b.watched(e.Repository.FullName) {
		return nil
	}
	id := change.ID{Kind: change.Group, Repo: e.Repository.ID, SHA: e.HeadSHA}
	f := facts.OfGroup(e)
	var override *change.Override
	for _, n := range f.Pulls {
		pull, err := b.states.load(ctx, change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: n})
		if err != nil {
			return err
		}
		f.Title, f.Author, f.Labels = pull.Facts.Title, pull.Facts.Author, pull.Facts.Labels
		if o := pull.Override; o != nil {
			override = &change.Override{SHA: f.Head, By: o.By, Reason: o.Reason, At: o.At}
		}
	}
	_, err := b.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Seq > 0 && (!now.Facts.Open || f.Open) {
			return nil, nil // told already; a group that is gone stays so
		}
		return change.Seen{Facts: f, Override: override}, nil
	})
	b.tender.poke(id)
	return err
}

// push has open pull requests look at the rules of the branch again, and measures
// what reached the default branch, for the history.
func (b *Bot) push(ctx context.Context, e webhook.Push) error {
	if !b.watched(e.Repository.FullName) || strings.Trim(e.After, "0") == "" {
		return nil
	}
	pulls, err := b.Ledger.OpenPulls(ctx, e.Repository.ID)
	if err != nil {
		return err
	}
	if err := b.rulesOf(ctx, e.Repository.FullName, e.Branch, pulls); err != nil {
		return err
	}
	if !e.Default() || strings.Trim(e.Before, "0") == "" {
		return nil
	}
	id := change.ID{Kind: change.Push, Repo: e.Repository.ID, SHA: e.After}
	_, err = b.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Seq > 0 {
			return nil, nil
		}
		return change.Seen{Facts: change.Facts{
			Repo: e.Repository.FullName, DefaultBranch: e.Repository.DefaultBranch, Title: e.Branch, Author: e.Sender.Login, Open: true,
			Head: e.After, Base: e.Branch, BaseSHA: e.Before,
		}}, nil
	})
	b.tender.poke(id)
	return err
}
