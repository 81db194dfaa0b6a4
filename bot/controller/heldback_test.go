package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
)

// A logged text is written and read by several goroutines.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The log has a line when work begins to wait for a limit, one for each wait, and one when it is over, however many changes
// wait and however often their events try them again.
func TestLimitsAreLoggedOnce(t *testing.T) {
	text := &logged{}
	var until atomic.Pointer[time.Time]
	wait := func(d time.Duration) { end := time.Now().Add(d); until.Store(&end) }
	lines := func(word string) int { return strings.Count(text.String(), word) }
	do := func(_ context.Context, key string, n int) error {
		if until := *until.Load(); time.Now().Before(until) {
			e := &client.Error{Op: "create a check run", Repo: strings.Replace(key, "/", "/kernels", 1), RetryAt: until, Err: client.ErrShed}
			if strings.HasPrefix(key, "b/") {
				e.Err = client.ErrLimited
			}
			return fmt.Errorf("publishing: %w", e)
		}
		if strings.HasSuffix(key, "/7") && n < 100 {
			return errors.New("not yet")
		}
		return nil
	}
	in(t, do, func(c *crew) {
		c.log = slog.New(slog.NewTextHandler(text, nil))
		c.held.log = c.log
		wait(20 * time.Minute)
		for range 50 {
			for i := range 30 {
				c.add(fmt.Sprintf("a/%d", i))
			}
			synctest.Wait()
		}
		if own := lines("keeps the writes that GitHub allows for verdicts"); own != 1 || c.waiting() != 30 {
			t.Errorf("%d lines about %d that wait:\n%s", own, c.waiting(), text)
		}
		c.add("b/1")
		synctest.Wait()
		if lines("waits for a rate limit of GitHub") != 1 || !strings.Contains(text.String(), "account=b waiting=1") {
			t.Errorf("a limit of a different account:\n%s", text)
		}

		wait(40 * time.Minute) // it goes on
		time.Sleep(21 * time.Minute)
		synctest.Wait()
		if own := lines("keeps the writes"); own != 2 || !strings.Contains(text.String(), "waiting=30") {
			t.Errorf("a second wait, %d lines:\n%s", own, text)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if ended := lines("no work waits"); ended != 2 || !strings.Contains(text.String(), "waited_at_most=30") || c.waiting() != 0 {
			t.Errorf("%d waits ended, %d wait:\n%s", ended, c.waiting(), text)
		}
	})
}

// A change that meets one limit after the other does not fill the log either.
func TestLimitsThatAlternateAreLoggedOnce(t *testing.T) {
	text := &logged{}
	do := func(_ context.Context, key string, n int) error {
		return &client.Error{Op: "test", Repo: "a/b", RetryAt: time.Now().Add(time.Hour), Err: []error{client.ErrShed, client.ErrLimited}[n%2]}
	}
	in(t, do, func(c *crew) {
		c.held.log = slog.New(slog.NewTextHandler(text, nil))
		for range 100 {
			c.add("a/1")
			synctest.Wait()
		}
		if lines := strings.Count(text.String(), "\n"); lines > 4 {
			t.Errorf("%d lines:\n%s", lines, text)
		}
	})
}
