package serve_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/policies/strict"
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
	journal, earlier := filepath.Join(o.Data, "journal"), filepath.Join(t.TempDir(), "journal")
	w.no(os.CopyFS(earlier, os.DirFS(journal)))

	s, stop = w.start(o)
	w.no(s.Ready(w.ctx))
	w.app.SetHook(s.URL()+"/webhook", secret)
	_, err := w.repo.Push("change", map[string]string{"README.md": "Second.\n"}, "Once more")
	w.no(err)
	before := s.Ledger.Seq()
	w.no(w.hub.WaitFor(w.ctx, func() bool { return s.Ledger.Seq() > before }))
	w.no(stop())
	w.no(errors.Join(os.RemoveAll(journal), os.CopyFS(journal, os.DirFS(earlier))))

	_, err = serve.Start(w.ctx, o)
	var mistake strict.Mistake
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
