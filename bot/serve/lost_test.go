package serve_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// A bot whose journal was put back to an earlier state does not start: it would judge and publish again what it does not know
// of. It says what to do, and starts once it is told to.
func TestTruncatedJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	s, stop := w.start(o)
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	w.propose("README.md", "First.\n")
	settled := func(pulls int) {
		t.Helper()
		w.no(w.hub.WaitFor(w.ctx, func() bool {
			c, err := s.Ledger.Counts(w.ctx)
			return err == nil && c.Changes >= pulls && c.Unsettled == 0
		}))
	}
	settled(1)
	w.no(stop())
	folder, earlier := filepath.Join(o.Data, "journal"), filepath.Join(t.TempDir(), "journal")
	w.no(os.CopyFS(earlier, os.DirFS(folder)))

	s, stop = w.start(o)
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	_, err := w.repo.Push("change", map[string]string{"README.md": "Second.\n"}, "Once more")
	w.no(err)
	before := s.Ledger.Seq()
	w.no(w.hub.WaitFor(w.ctx, func() bool { return s.Ledger.Seq() > before }))
	w.no(stop())
	w.no(errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(earlier))))

	_, err = serve.Start(w.ctx, o)
	var mistake usage.Error
	if !errors.Is(err, ledger.ErrLost) || !errors.As(err, &mistake) || !strings.Contains(err.Error(), "--accept-loss") {
		t.Fatalf("with a journal that has lost events: %v", err)
	}
	o.AcceptLoss = true
	s, _ = w.start(o)
	w.no(s.Ready(w.ctx))
	if kept, err := filepath.Glob(filepath.Join(o.Data, "ledger.db.lost-*")); err != nil || len(kept) == 0 {
		t.Errorf("the old ledger is not kept: %v, %v", kept, err)
	}
}

// A backup of a running bot, asked for through its socket, is restored into an empty data folder. The check that GitHub shows
// in progress is concluded again: nobody else would.
func TestRestoreConcludesChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.Data = shortFolder(t)
	s, stop := w.start(o)
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	pr := w.propose("README.md", "First.\n")
	concluded := func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Conclusion == "success" && c.Status == "completed"
	}
	w.no(w.hub.WaitFor(w.ctx, concluded))
	w.no(w.hub.WaitFor(w.ctx, func() bool { c, err := s.Ledger.Counts(w.ctx); return err == nil && c.Unsettled == 0 }))
	var backup bytes.Buffer
	w.no(serve.AskForBackup(w.ctx, o.Data, &backup))
	if r, err := serve.AskToVerify(w.ctx, o.Data); err != nil || r.Err() != nil || r.Events == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	check, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
	_, err := s.Client.CreateCheck(w.ctx, w.repo.FullName(), client.Check{Name: check.Name, HeadSHA: pr.HeadSHA(), ExternalID: check.ExternalID, Status: "in_progress"})
	w.no(err) // as for /rebench
	w.no(stop())
	if err := serve.AskForBackup(w.ctx, o.Data, &backup); !errors.Is(err, serve.ErrNoBot) {
		t.Errorf("after the end: %v", err)
	}
	o.Data = shortFolder(t)
	if _, err := serve.RestoreJournal(w.ctx, o.Config, "", bytes.NewReader(backup.Bytes()), nil); err != nil {
		t.Fatal(err)
	}
	s, _ = w.start(o)
	w.no(s.Ready(w.ctx))
	w.no(w.hub.WaitFor(w.ctx, concluded))
}

// shortFolder is a data folder whose path leaves room for a socket.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Flipped bytes in an event end the bot with a mistake that names the event, and not with a second verdict. With --accept-loss
// it continues, and the next start needs no flag.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	s, stop := w.start(o)
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	pr := w.propose("README.md", "First.\n")
	settled := func() bool {
		c, err := s.Ledger.Counts(w.ctx)
		return err == nil && c.Changes > 0 && c.Unsettled == 0
	}
	w.no(w.hub.WaitFor(w.ctx, settled))
	w.no(stop())
	block := filepath.Join(o.Data, "journal", "jetstream", "$G", "streams", "EVENTS", "msgs", "1.blk")
	data, err := os.ReadFile(block)
	w.no(err)
	at := bytes.Index(data, []byte(`"head":"`+pr.HeadSHA()))
	if at < 0 {
		t.Fatal("no event has the head")
	}
	for i := range 8 {
		data[at+8+i] ^= 0xff
	}
	w.no(os.WriteFile(block, data, 0o600))

	s, err = serve.Start(w.ctx, o)
	if err == nil {
		err = s.Wait()
	}
	var mistake usage.Error
	if !errors.Is(err, journal.ErrDamaged) || !errors.As(err, &mistake) || !strings.Contains(err.Error(), "kernelgate restore") || !strings.Contains(err.Error(), "is missing") {
		t.Fatalf("with a damaged event: %v", err)
	}
	o.AcceptLoss = true
	s, stop = w.start(o)
	w.no(s.Ready(w.ctx))
	w.no(w.hub.WaitFor(w.ctx, settled))
	w.no(stop())
	o.AcceptLoss = false
	s, _ = w.start(o)
	w.no(s.Ready(w.ctx))
	w.no(w.hub.WaitFor(w.ctx, settled))
	if c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate"); c.Conclusion != "success" {
		t.Errorf("the check is %+v", c)
	}
	if n := len(w.repo.Checks(pr.HeadSHA())); n != 1 {
		t.Errorf("%d checks", n)
	}
}
