// Package notify sends verdicts, and regressions on the default branch, to the tools of the
// operator's team. It makes an HTTP POST to each configured address, in Slack's format or as plain
// JSON with a signature. It follows the journal independently of the bot, so that nothing waits for
// it. It asks nothing and decides nothing.
package notify

import (
	"context"
	"encoding/json"
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
	"github.com/kernelgate/kernelgate/bot/compat"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
)

// The two kinds of events.
const (
	Verdict    = "verdict"    // on a pull request or a merge group
	Regression = "regression" // on the default branch: proven wrong or slower
)

// A Hook is an address that receives events.
type Hook struct {
	Name         string
	URL          string // often a secret: it is never logged
	Slack        bool   // Slack's format instead of plain JSON
	Secret       []byte // signs the plain format, if set
	On           []string
	Repositories []string // defaults to all
}

func (h Hook) wants(n *News) bool {
	named := func(repo string) bool { return strings.EqualFold(repo, n.Repo) }
	return (len(h.On) == 0 || slices.Contains(h.On, n.Event)) && (len(h.Repositories) == 0 || slices.ContainsFunc(h.Repositories, named))
}

// A Journal can be followed.
type Journal interface {
	Follow(ctx context.Context, after uint64, apply func(journal.Event) error) error
}

// A Ledger knows more about a run than its last event.
type Ledger interface {
	CaughtUp(ctx context.Context) error
	WaitFor(ctx context.Context, seq uint64) error
	Seq() uint64
	Run(ctx context.Context, job string) (ledger.RunRow, error)
}

// A Teller sends events to all hooks. Set its fields before calling Run.
type Teller struct {
	Hooks   []Hook
	Journal Journal
	Ledger  Ledger
	Dir     string                                                 // stores the last event sent to each hook
	Page    func(repo string, job string) string                   // returns the run's page; empty if there is none
	Blob    func(ctx context.Context, name string) ([]byte, error) // reads stored verdicts and evidence; nil sends what the ledger knows
	Leads   func() bool                                            // reports whether this bot leads; only the leader sends. nil if there is only one bot
	// Pause waits between two attempts. It defaults to the clock.
	Pause func(context.Context, time.Duration) error
	Now   func() time.Time
	Log   *slog.Logger

	client *http.Client
}

// Run sends until ctx ends. The hooks are independent: one that is slow or gone delays no other.
func (t *Teller) Run(ctx context.Context) error {
	if t.Log == nil {
		t.Log = slog.New(slog.DiscardHandler)
	}
	if t.Pause == nil {
		t.Pause = pause
	}
	t.client = &http.Client{
		Timeout: timeout,
		// The operator configured this one address, so do not follow redirects.
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

// tell follows the journal for one hook and stores its position: what was not sent before a restart
// is sent after it.
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

// tooOld is the age after which an event is no longer sent.
const tooOld = 24 * time.Hour

// told is the age after which an event counts as sent by the leader, unless the hook did not answer
// for as long. A new leader sends younger events, in the worst case a second time.
const told = 5 * time.Minute

// mine waits until it is clear whether this bot sends the event, and reports it.
func (t *Teller) mine(ctx context.Context, n *News) bool {
	for t.Leads != nil && !t.Leads() {
		if t.Now().Sub(n.At) >= told || t.Pause(ctx, time.Second) != nil {
			return false
		}
	}
	return true
}

func (t *Teller) file(h Hook) string { return filepath.Join(t.Dir, h.Name+".told") }

// begin returns the event after which a hook starts. A new hook receives nothing from before its
// creation.
func (t *Teller) begin(h Hook) (uint64, error) {
	last := t.Ledger.Seq()
	text, err := os.ReadFile(t.file(h))
	if errors.Is(err, os.ErrNotExist) {
		return last, t.remember(h, last)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the position of a notification: %w", err)
	}
	seq, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || seq > last { // damaged, or from a different journal
		t.Log.Warn("the position of a notification is unknown; it starts here", "hook", h.Name)
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
		return fmt.Errorf("storing the position of a notification: %w", err)
	}
	return nil
}

// news returns what to send about a finished run, or nil.
func (t *Teller) news(ctx context.Context, e journal.Event) (*News, error) {
	event, err := change.DecodeFrom(e.Writer, e.Kind, e.Data)
	if compat.IsUnknown(err) {
		return nil, err // a newer bot sends it
	}
	if err != nil {
		t.Log.Warn("an event cannot be sent as a notification", "seq", e.Seq, "err", err)
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
		ID: fmt.Sprint(e.Seq), Event: Verdict, Repo: row.Repo, Folder: row.Folder, Change: row.Change.String(), Pull: row.Change.Number,
		Title: row.Title, Attempt: row.Attempt, Job: row.Job, At: e.At, line: row.Line, head: row.Head,
	}
	if t.Page != nil {
		n.Page = t.Page(row.Repo, row.Job)
	}
	switch {
	case row.Extra || row.Outcome == "":
		return nil, nil // it decides nothing
	case row.Change.Kind == change.Watch:
		return nil, nil // its slowdowns are issues
	case row.Change.Kind.OnMain() && (row.Outcome != gates.Defer || !row.Reason.ProvenWrong()):
		return nil, nil
	case row.Change.Kind.OnMain():
		n.Event = Regression
	}
	n.Result = t.result(ctx, row)
	if n.Page != "" && row.Evidence != "" {
		n.Result.Evidence = n.Page + "/evidence.json"
	}
	return n, nil
}

// result returns the result of a run. Without its verdict it has what the ledger knows.
func (t *Teller) result(ctx context.Context, row ledger.RunRow) *result.Result {
	known := &result.Result{
		Schema: result.Schema, Kernel: row.Kernel, Outcome: row.Outcome, Reason: row.Reason, Summary: row.Line, Blocks: row.Outcome != gates.Pass, Head: row.Head,
	}
	if t.Blob == nil || row.Verdict == "" {
		return known
	}
	var v gates.Verdict
	data, err := t.Blob(ctx, row.Verdict)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Log.Warn("a stored verdict cannot be sent in full", "job", row.Job, "err", err)
		return known
	}
	var e *gates.Evidence
	if data, err := t.Blob(ctx, row.Evidence); row.Evidence != "" && err == nil {
		e, _ = gates.ParseEvidence("evidence", data) // without it, cases have no classes
	}
	return result.Of(&v, e)
}

// pause waits for d. It ends early with an error if ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-wait.Done()
	return ctx.Err()
}
