package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/observed"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/present"
)

// Store puts a webhook into the journal, unless nothing can follow from it. A webhook.Handler calls
// it.
func (k *Controller) Store(ctx context.Context, d webhook.Delivery) error {
	if !webhook.Used(d.Event) { // the name comes from the network, and the journal also holds internal events
		return fmt.Errorf("storing delivery %s: there is no event %.64q of GitHub's here", d.ID, d.Event)
	}
	// Store what cannot be decoded: the reader of the journal reports it.
	if event, err := webhook.Decode(d.Event, d.Body); err == nil && k.unused(event) {
		return webhook.ErrNotUsed
	}
	fresh, err := k.Journal.Accept(ctx, d)
	if fresh {
		k.count(func(c *Counts) { c.Accepted++ })
	}
	return err
}

// unused reports whether nothing can follow from an event. An App that subscribes to check runs
// receives those of every other App, a busy repository has hundreds of them for each of ours, and
// few comments are commands.
func (k *Controller) unused(event webhook.Event) bool {
	switch e := event.(type) {
	case webhook.Ignored:
		return true
	case webhook.CheckRun:
		return !k.GitHub.Ours(e.AppID)
	case webhook.CheckSuite:
		return !k.GitHub.Ours(e.AppID)
	case webhook.IssueComment:
		return !commands(e.Remark)
	case webhook.ReviewComment:
		return !commands(e.Remark)
	}
	return false
}

// commands reports whether a person wrote a command.
func commands(r webhook.Remark) bool {
	_, ok := grammar.Parse(r.Body)
	return ok && !r.Author.Bot
}

func (k *Controller) deliveryLoop(ctx context.Context) error {
	return k.Journal.Process(ctx, func(ctx context.Context, d webhook.Delivery) error {
		err := k.handleDelivery(ctx, d)
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

// recordTimeout is plenty for the journal, and recording asks nothing else.
const recordTimeout = time.Minute

// handleDelivery records what a delivery says. Workers do the rest afterwards, so a delivery waits
// for neither GitHub nor git.
func (k *Controller) handleDelivery(ctx context.Context, d webhook.Delivery) error {
	ctx, cancel := context.WithTimeout(received(ctx, d.Received), recordTimeout)
	defer cancel()
	if d.Event == inFlightEvent {
		return k.recordInFlight(ctx, d.Body)
	}
	event, err := webhook.Decode(d.Event, d.Body)
	if err != nil {
		// A redelivery would have the same bytes.
		k.Log.Error("a delivery cannot be read and is left out", "delivery", d.ID, "event", d.Event, "err", err)
		return nil
	}
	k.Log.Debug("delivery", "delivery", d.ID, "event", d.Event)
	switch e := event.(type) {
	case webhook.PullRequest:
		return k.recordPull(ctx, e)
	case webhook.IssueComment, webhook.ReviewComment:
		return k.recordComment(ctx, e)
	case webhook.Review:
		return errors.Join(k.recordComment(ctx, e), k.recordReview(ctx, e))
	case webhook.MergeGroup:
		return k.recordGroup(ctx, e)
	case webhook.CheckRun:
		if k.GitHub.Ours(e.AppID) {
			return k.recordCheckRun(ctx, d.ID, e)
		}
	case webhook.CheckSuite:
		if k.GitHub.Ours(e.AppID) {
			return k.recordButton(ctx, d.ID, e.Origin, e.HeadSHA, e.PullRequests, grammar.Rebench{})
		}
	case webhook.Push:
		return k.recordPush(ctx, e)
	case webhook.Installation:
		return k.recordInstallation(ctx, e)
	case webhook.InstallationRepositories:
		k.addRepositories(e.Added)
		return k.removeRepositories(ctx, e.Removed, change.AppRemoved)
	case webhook.InstallationTarget:
		return k.recordAccount(ctx, e)
	case webhook.RepositoryChange:
		return k.recordRepository(ctx, e)
	case webhook.Ping:
		k.Log.Info("GitHub says hello", "hook", e.HookID, "repo", e.Repository.FullName)
	}
	return nil
}

func (k *Controller) recordPull(ctx context.Context, e webhook.PullRequest) error {
	if !k.repos.Observe(e.Repository) {
		return nil
	}
	id := change.ID{Kind: change.Pull, Repo: e.Repository.ID, Number: e.Number}
	told := observed.OfEvent(e)
	told.Repo = k.repos.Name(e.Repository.ID)
	s, err := k.states.load(ctx, id)
	// Only GitHub knows which of two deliveries of the same second is the later.
	if err == nil && (s.Seq == 0 || told.Updated.After(s.Facts.Updated)) {
		s, _, err = k.recordFacts(ctx, id, told)
	}
	if err != nil || s.Seq == 0 {
		return err
	}
	k.accepted(ctx, s)
	k.markStale(id, told)
	k.enqueueChange(id)
	return nil
}

// recordComment records a command from a comment on a pull request. A comment without a command
// changes nothing.
func (k *Controller) recordComment(ctx context.Context, e webhook.Event) error {
	said, a, ok := observed.OfRemark(e)
	if !ok || !said.Open || said.Author.Bot || !k.repos.Observe(said.Repository) {
		return nil
	}
	if a.Request, ok = grammar.Parse(said.Body); !ok {
		return nil
	}
	id := change.ID{Kind: change.Pull, Repo: said.Repository.ID, Number: said.Number}
	_, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Seq > 0 {
			return nil, nil
		}
		// It was opened before the bot was installed. The worker asks GitHub for the rest.
		return change.Seen{Facts: change.Facts{Repo: k.repos.Name(said.Repository.ID), DefaultBranch: said.Repository.DefaultBranch, Open: true}}, nil
	})
	if err != nil {
		return err
	}
	return k.recordCommand(ctx, id, a)
}

// recordCommand records a command once. The command is about the recorded head, unless GitHub says
// which head its author saw.
func (k *Controller) recordCommand(ctx context.Context, id change.ID, a change.Asked) error {
	s, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Asked(a) {
			return nil, nil
		}
		told := a
		told.Head, told.Base = cmp.Or(a.Head, now.Facts.Head), now.Facts.Base
		if seen, known := now.Scope(); known {
			told.Rules = seen.Rules
		}
		return told, nil
	})
	k.accepted(ctx, s)
	k.enqueueChange(id)
	return err
}

// recordCheckRun handles the buttons of a check. A button is a command by the user who pressed it.
func (k *Controller) recordCheckRun(ctx context.Context, delivery string, e webhook.CheckRun) error {
	_, key, err := present.ParseExternalID(e.ExternalID)
	if err != nil {
		return nil // not our check
	}
	again := grammar.Rebench{}
	if key.Folder != "" {
		again.Kernels, again.Device = []string{key.Folder}, key.Device
	}
	var c grammar.Command = again
	if e.Action == "requested_action" {
		switch e.Button {
		case "rebench":
		case "explain":
			c = grammar.Explain{}
		case "cancel":
			c = grammar.Cancel{}
		default:
			return nil
		}
	}
	return k.recordButton(ctx, delivery, e.Origin, e.HeadSHA, e.PullRequests, c)
}

// recordButton records a command that came without a comment. For a fork GitHub does not say which
// pull request it is about, so the ledger finds it by its head.
func (k *Controller) recordButton(ctx context.Context, delivery string, o webhook.Origin, head string, pulls []int, c grammar.Command) error {
	if !k.repos.Observe(o.Repository) {
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
			continue // the commit of the button is no longer a head
		}
		if err := k.recordCommand(ctx, id, change.Asked{ID: "button-" + delivery, By: o.Sender.Login, Request: grammar.Request{Command: c}}); err != nil {
			return err
		}
	}
	return nil
}

// recordGroup starts a gate for a merge group, on the commit of the group.
func (k *Controller) recordGroup(ctx context.Context, e webhook.MergeGroup) error {
	if !k.repos.Observe(e.Repository) {
		return nil
	}
	f := observed.OfGroup(e)
	f.Repo = k.repos.Name(e.Repository.ID)
	return k.recordGroupFacts(ctx, change.ID{Kind: change.Group, Repo: e.Repository.ID, SHA: e.HeadSHA}, f)
}

func (k *Controller) recordGroupFacts(ctx context.Context, id change.ID, f change.Facts) error {
	s, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Seq > 0 && (!now.Facts.Open || f.Open) {
			return nil, nil // recorded already; a destroyed group stays destroyed
		}
		f.Title, f.Author, f.Labels, f.Members = now.Facts.Title, now.Facts.Author, now.Facts.Labels, now.Facts.Members
		return change.Seen{Facts: f}, nil
	})
	k.accepted(ctx, s)
	k.enqueueChange(id)
	return err
}

// recordPush compares open pull requests with the rules of the pushed branch, which may be gone. A
// push to the default branch is also measured, for the history.
func (k *Controller) recordPush(ctx context.Context, e webhook.Push) error {
	if !k.repos.Observe(e.Repository) {
		return nil
	}
	at := resyncTarget{repo: e.Repository.ID, name: k.repos.Name(e.Repository.ID), branch: e.Branch}
	k.markPushed(at, e)
	k.resyncQueue.add(at)
	if !e.Default() || e.Made() || e.Deleted() {
		return nil
	}
	id := change.ID{Kind: change.Push, Repo: e.Repository.ID, SHA: e.After}
	s, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if now.Seq > 0 {
			return nil, nil
		}
		return change.Seen{Facts: change.Facts{
			Repo: k.repos.Name(e.Repository.ID), DefaultBranch: e.Repository.DefaultBranch, Title: e.Branch, Author: e.Sender.Login, Open: true,
			Head: e.After, Base: e.Branch, BaseSHA: e.Before,
		}}, nil
	})
	k.accepted(ctx, s)
	k.enqueueChange(id)
	return err
}

// ErrMovedOn says that a command is about a commit that is no longer a head.
var ErrMovedOn = errors.New("the change is closed, or has a different head by now")

// ErrNotLeader says that a different bot leads.
var ErrNotLeader = errors.New("this bot is on standby; a different one leads")

// SubmitCommand records a command from a button on a page. The page says who pressed it; the
// permission is checked as for a comment. Two submissions of one press are one command.
func (k *Controller) SubmitCommand(ctx context.Context, id change.ID, press, by, head string, c grammar.Command) error {
	s, err := k.states.load(ctx, id)
	if err != nil {
		return err
	}
	if s.Seq == 0 || !s.Facts.Open || s.Facts.Head != head {
		return ErrMovedOn
	}
	if !k.Journal.Leads() {
		return ErrNotLeader
	}
	return k.recordCommand(ctx, id, change.Asked{ID: "button-" + press, By: by, Request: grammar.Request{Command: c}, Head: head})
}
