package controller_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A crier lets nobody have a head before so many are announced.
type crier struct {
	planner.Mirrors
	mu    sync.Mutex
	heads map[string]bool
	want  int
	all   chan struct{}
}

func (c *crier) Soon(repo, head, ref string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heads[head] = true; len(c.heads) == c.want {
		close(c.all)
		c.want = 0
	}
	c.Mirrors.Soon(repo, head, ref)
}

func (c *crier) FetchHead(ctx context.Context, repo, head string, refs ...string) (*checkout.Repo, error) {
	select {
	case <-c.all:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c.Mirrors.FetchHead(ctx, repo, head, refs...)
}

// More pull requests than an account has slots are all announced before the first of
// them is fetched: one fetch can bring them.
func TestWhoWaitsIsAnnounced(t *testing.T) {
	const pulls = 20 // with sixteen slots
	c := &crier{heads: map[string]bool{}, want: pulls, all: make(chan struct{})}
	w := newWorld(t, worldOptions{retold: true, absent: true, look: func(m planner.Mirrors) planner.Mirrors {
		c.Mirrors = m
		return c
	}})
	for i := range pulls {
		w.propose(fmt.Sprintf("branch%d", i), fmt.Sprintf("// speed 1.%d\n", i+1), embedded.PROptions{})
	}
	w.poll("all to be queued", func() bool {
		n := 0
		for _, q := range w.running.jobs.Backlogs() {
			n += q.Waiting
		}
		return n == pulls
	})
}
