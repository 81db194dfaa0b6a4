// Package notify tells people's other tools of verdicts and of regressions on the
// default branch: an HTTP POST to each address that the operator named, in Slack's form
// or as plain JSON with a signature. It follows the journal behind the bot's back, so
// that nobody waits for it; it asks nothing and decides nothing.
package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
)

// The two kinds of news.
const (
	Verdict    = "verdict"    // of a pull request or a merge group
	Regression = "regression" // of the default branch: proven wrong or slower
)

// A Hook is an address that is told.
type Hook struct {
	Name         string
	URL          string // often the secret itself: it is never logged
	Slack        bool   // in Slack's form, else plain
	Secret       []byte // signs the plain form, where there is one
	On           []string
	Repositories []string // all of them unless some are named
}

func (h Hook) wants(n *News) bool {
	named := func(repo string) bool { return strings.EqualFold(repo, n.Repo) }
	return (len(h.On) == 0 || slices.Contains(h.On, n.Event)) && (len(h.Repositories) == 0 || slices.ContainsFunc(h.Repositories, named))
}

// A Journal is what is followed.
type Journal interface {
	Follow(ctx context.Context, after uint64, apply func(journal.Event) error) error
}

// A Ledger knows more of a run than its last event says.
type Ledger interface {
	CaughtUp(ctx context.Context) error
	WaitFor(ctx context.Context, seq uint64) error
	Seq() uint64
	Run(ctx context.Context, job string) (ledger.RunRow, error)
}

// A Teller tells all hooks. Its fields are set before Run is called.
type Teller struct {
	Hooks   []Hook
	Journal Journal
	Ledger  Ledger
	Dir     string                                     // where it remembers how far each hook was told
	Page    func(repo string, job string) string       // where people can look; "" where they cannot
	Leads   func() bool                                // of several bots with the same hooks, the one that tells; nil where it is alone
	Pause   func(context.Context, time.Duration) error // between two tries; the clock's unless given
	Now     func() time.Time
	Log     *slog.Logger

	client *http.Client
}

// Run tells until ctx ends. Each hook goes its own way: one that is slow or gone holds
// up nobody else.
func (t *Teller) Run(ctx context.Context) error {
	if t.Log == nil {
		t.Log = slog.New(slog.DiscardHandler)
	}
	if t.Pause == nil {
		t.Pause = pause
	}
	t.client = &http.Client{
		Timeout: timeout,
		// The operator named one address, not whatever that leads to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer t.client.CloseIdleConnections()
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of notifications: %w", err)
	}
	if err := t.Ledger.CaughtUp(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("waiting for the ledger: %w", err)
	}
	var all sync.WaitGroup
	failed := make([]error, len(t.Hooks))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, h := range t.Hooks {
		all.Go(func() {
			if err := t.tell(ctx, h); err != nil && ctx.Err() == nil {
				failed[i] = fmt.Errorf("telling %s: %w", h.Name, err)
				cancel()
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// tell follows the journal for one hook, and remembers how far it got: what was not
// told before a restart is told after it.
func (t *Teller) tell(ctx context.Context, h Hook) error {
	after, err := t.begin(h)
	if err != nil {
		return err
	}
	return t.Journal.Follow(ctx, after, func(e journal.Event) error {
		if e.Kind != change.KindOf(change.Finished{}) {
			return nil
		}
		news, err := t.news(ctx, e)
		if err != nil {
			return err
		}
		if news != nil && h.wants(news) && t.Now().Sub(news.At) < tooOld && t.mine(ctx, news) {
			t.send(ctx, h, news)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return t.remember(h, e.Seq)
	})
}

// tooOld is when news are none any more.
const tooOld = 24 * time.Hour

// told is when the bot that leads has told its news for sure, unless the hook did not answer for as long. Whoever leads
// after it tells what is younger, twice at the worst.
const told = 5 * time.Minute

// mine waits until it is clear who tells.
func (t *Teller) mine(ctx context.Context, n *News) bool {
	for t.Leads != nil && !t.Leads() {
		if t.Now().Sub(n.At) >= told || t.Pause(ctx, time.Second) != nil {
			return false
		}
	}
	return true
}

func (t *Teller) file(h Hook) string { return filepath.Join(t.Dir, h.Name+".told") }

// begin is the event behind which a hook is told. A new one hears nothing of what was
// before it.
func (t *Teller) begin(h Hook) (uint64, error) {
	last := t.Ledger.Seq()
	text, err := os.ReadFile(t.file(h))
	if errors.Is(err, os.ErrNotExist) {
		return last, t.remember(h, last)
	}
	if err != nil {
		return 0, fmt.Errorf("reading how far it was told: %w", err)
	}
	seq, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || seq > last { // damaged, or of another journal
		t.Log.Warn("how far a hook was told is not known; it begins here", "hook", h.Name)
		return last, t.remember(h, last)
	}
	return seq, nil
}

func (t *Teller) remember(h Hook, seq uint64) error {
	file := t.file(h)
	err := os.WriteFile(file+".new", []byte(strconv.FormatUint(seq, 10)+"\n"), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("keeping how far it was told: %w", err)
	}
	return nil
}

// news is what a finished run tells, or nil.
func (t *Teller) news(ctx context.Context, e journal.Event) (*News, error) {
	event, err := change.Decode(e.Kind, e.Data)
	if err != nil {
		t.Log.Warn("an event cannot be told", "seq", e.Seq, "err", err)
		return nil, nil
	}
	f, ok := event.(change.Finished)
	if !ok {
		return nil, nil
	}
	if err := t.Ledger.WaitFor(ctx, e.Seq); err != nil {
		return nil, err
	}
	row, err := t.Ledger.Run(ctx, f.Job)
	if ledger.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := &News{
		ID: fmt.Sprint(e.Seq), Event: Verdict, Repo: row.Repo, Kernel: row.Kernel, Folder: row.Folder, Change: row.Change.String(), Pull: row.Change.Number,
		Title: row.Title, Head: row.Head, Attempt: row.Attempt, Outcome: row.Outcome, Reason: row.Reason, Line: row.Line, Device: row.Device, Job: row.Job, At: e.At,
	}
	if t.Page != nil {
		n.Page = t.Page(row.Repo, row.Job)
	}
	switch {
	case row.Extra || row.Outcome == "":
		return nil, nil // it decides nothing
	case row.Change.Kind.OnMain() && (row.Outcome != gates.Defer || !row.Reason.ProvenWrong()):
		return nil, nil
	case row.Change.Kind.OnMain():
		n.Event = Regression
	}
	return n, nil
}

// pause ends early, with an error, where ctx does.
func pause(ctx context.Context, d time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-wait.Done()
	return ctx.Err()
}
