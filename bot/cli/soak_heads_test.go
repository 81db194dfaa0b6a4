package cli

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A headBook knows which commits may pass, and every check that was written. A check that was green for a moment only is
// seen, too.
type headBook struct {
	mu     sync.Mutex
	heads  map[string]*soakHead
	passes []passed // not judged yet
	judged int
}

type soakHead struct {
	pushed    time.Time
	measured  bool          // its kernels pass
	since     time.Time     // when the required check may first pass; zero for never
	concluded time.Duration // from the push to the first conclusion; 0 if there is none
}

type passed struct {
	sha, name, title string
	at               time.Time
}

func newHeadBook() *headBook { return &headBook{heads: map[string]*soakHead{}} }

// add records a new head.
func (b *headBook) add(sha string, pushed time.Time, passes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := &soakHead{pushed: pushed, measured: passes}
	if passes {
		h.since = pushed
	}
	b.heads[sha] = h
}

// allow lets the required check of a head pass from now on, and not those of its kernels.
func (b *headBook) allow(sha string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heads[sha].since = time.Now()
}

// allowAll lets the kernels of a head pass, too.
func (b *headBook) allowAll(sha string) {
	b.allow(sha)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heads[sha].measured = true
}

// written is called by GitHub for each write of a check.
func (b *headBook) written(sha string, c embedded.Check) {
	if c.Status != "completed" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if slices.Contains([]string{"success", "neutral", "skipped"}, c.Conclusion) {
		b.passes = append(b.passes, passed{sha, c.Name, c.Title, now})
	}
	if h := b.heads[sha]; h != nil && h.concluded == 0 && c.Name == "kernelgate" {
		h.concluded = now.Sub(h.pushed)
	}
}

// judge looks at the passes since the last time. Heads that nobody has added are merges into a branch.
func (b *headBook) judge(s *soak) {
	b.mu.Lock()
	all := b.passes
	b.passes = nil
	b.judged += len(all)
	var wrong []string
	for _, p := range all {
		h := b.heads[p.sha]
		switch {
		case h == nil:
		case p.name == "kernelgate" && (h.since.IsZero() || p.at.Before(h.since)), p.name != "kernelgate" && !h.measured:
			wrong = append(wrong, fmt.Sprintf("the check %q of %.12s passed at %s, and must not: %s", p.name, p.sha, p.at.UTC().Format(time.TimeOnly), p.title))
		}
	}
	b.mu.Unlock()
	for _, text := range wrong {
		s.fail("%s", text)
	}
}

// delays returns the times from push to verdict, sorted.
func (b *headBook) delays() (all []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.heads {
		if h.concluded > 0 {
			all = append(all, h.concluded)
		}
	}
	slices.Sort(all)
	return all
}
