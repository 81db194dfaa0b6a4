package controller

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
)

// A heldBack counts the keys of a queue that wait for a rate limit. It logs when the first one begins to wait, once per wait
// while some still do, and when none waits any more. Every new event of a change tries its work again, so a line for each
// attempt would fill the log while nothing changes. Its callers hold the lock of the queue.
type heldBack[K comparable] struct {
	name   string // of the queue
	log    *slog.Logger
	now    func() time.Time
	groups map[heldReason]*heldGroup[K]
	of     map[K]heldReason
	silent map[heldReason]time.Time // until when no line about a reason is logged, even if it ends and begins again
}

// A heldReason is what keys wait for. Each account has its own limits.
type heldReason struct {
	account string
	own     bool // the bot's own limit, which keeps GitHub's for verdicts
}

type heldGroup[K comparable] struct {
	keys     map[K]struct{}
	most     int
	attempts int
	logged   bool
}

// hold notes that a key waits because of an error with a time to try again.
func (h *heldBack[K]) hold(key K, why *client.Error, pause time.Duration) {
	account, _, _ := strings.Cut(strings.ToLower(why.Repo), "/")
	reason := heldReason{account, errors.Is(why, client.ErrShed)}
	if was, ok := h.of[key]; ok && was != reason {
		h.release(key)
	}
	if h.of == nil {
		h.of, h.groups, h.silent = map[K]heldReason{}, map[heldReason]*heldGroup[K]{}, map[heldReason]time.Time{}
	}
	g := h.groups[reason]
	if g == nil {
		g = &heldGroup[K]{keys: map[K]struct{}{}}
		h.groups[reason] = g
	}
	h.of[key], g.keys[key] = reason, struct{}{}
	g.attempts++
	g.most = max(g.most, len(g.keys))
	if now := h.now(); !now.Before(h.silent[reason]) {
		text := "work waits for a rate limit of GitHub"
		if reason.own {
			text = "work that is not urgent waits: the bot keeps the writes that GitHub allows for verdicts"
		}
		h.log.Info(text, "work", h.name, "account", account, "waiting", len(g.keys), "attempts", g.attempts, "again_in", pause.String(), "err", why)
		g.logged, h.silent[reason] = true, now.Add(max(pause, longestPause))
	}
}

// release notes that a key does not wait any more.
func (h *heldBack[K]) release(key K) {
	reason, ok := h.of[key]
	if !ok {
		return
	}
	delete(h.of, key)
	g := h.groups[reason]
	if delete(g.keys, key); len(g.keys) > 0 {
		return
	}
	delete(h.groups, reason)
	if g.logged {
		h.log.Info("no work waits for the rate limit any more", "work", h.name, "account", reason.account, "waited_at_most", g.most, "attempts", g.attempts)
	}
}

// reset forgets all keys: a different bot leads.
func (h *heldBack[K]) reset() { h.groups, h.of, h.silent = nil, nil, nil }

// waiting returns how many keys wait.
func (w *workQueue[K]) waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held.of)
}

// PublicationsWaiting returns how many changes wait for a rate limit until they are published.
func (k *Controller) PublicationsWaiting() int { return k.publishQueue.waiting() }
