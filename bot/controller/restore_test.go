package controller_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/internal/long"
)

// A backup is restored on an empty host, whenever in a story it was made: after every event, while the bot works. GitHub has
// moved on since. The bot reads and publishes everything again, and every pull request ends with its right check and one
// comment. KERNELGATE_RESTORES=all restores every backup; otherwise some are.
func TestRestoreAtEveryMoment(t *testing.T) {
	long.Test(t)
	w := newWorld(t, worldOptions{})
	w.settle()
	backups := w.backUpAfterEveryEvent()

	faster := w.propose("faster", "// speed 2.0\n", embedded.PROptions{})
	w.concluded(faster.HeadSHA(), "success")
	slower := w.propose("slower", "// speed 0.5\n", embedded.PROptions{})
	w.concluded(slower.HeadSHA(), "failure")
	w.comment(slower, "walt", "/rebench")
	w.said(slower, "Measuring again")
	w.settle()
	granted := w.propose("granted", "// speed 0.6\n", embedded.PROptions{})
	w.concluded(granted.HeadSHA(), "failure")
	before := w.lastEvent()
	w.comment(granted, "mara", "/override it is worth it")
	w.concluded(granted.HeadSHA(), "success")
	after := w.lastEvent()
	words := w.propose("words", "// speed 1.0\n", embedded.PROptions{})
	w.settle()
	_, err := w.repo.Push("words", map[string]string{"README.md": "Fast kernels.\n"}, "Words")
	w.no(err)
	w.concluded(words.HeadSHA(), "success") // its kernel is the base's
	closed := w.propose("closed", "// speed 1.9\n", embedded.PROptions{})
	w.concluded(closed.HeadSHA(), "success")
	w.no(closed.Close("walt"))
	w.settle()
	all := backups()
	w.no(w.running.stop())
	if len(all) < 20 {
		t.Fatalf("%d backups of %d events", len(all), after)
	}

	step := max(1, len(all)/long.Times(2, 10))
	if os.Getenv("KERNELGATE_RESTORES") == "all" {
		step = 1
	}
	restored := 0
	for i := 0; i < len(all); i += step {
		w.restore(all[i].file)
		restored++
		for _, want := range []struct {
			pr          *embedded.PR
			conclusions string
		}{
			{faster, "success"}, {slower, "failure"}, {words, "success"},
			{granted, map[bool]string{true: "success", false: "failure"}[all[i].last >= after]},
		} {
			if want.pr == granted && all[i].last > before && all[i].last < after {
				continue // the command was in the journal, and may have been answered
			}
			w.rightAfterRestore(all[i].last, want.pr, want.conclusions)
		}
		w.no(w.running.stop())
	}
	t.Logf("%d of %d backups restored", restored, len(all))
}

// moment is a backup with the events up to one sequence.
type moment struct {
	last uint64
	file []byte
}

// backUpAfterEveryEvent makes backups of the running bot's journal until the returned function is called.
func (w *world) backUpAfterEveryEvent() func() []moment {
	j := w.running.journal
	stop := make(chan struct{})
	var all []moment
	var failed error
	var working sync.WaitGroup
	working.Go(func() {
		for failed == nil {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			last, err := j.LastSeq(w.ctx)
			if err == nil && (len(all) == 0 || all[len(all)-1].last < last) {
				var b bytes.Buffer
				var m journal.Manifest
				m, err = j.Backup(w.ctx, &b)
				all = append(all, moment{m.Last, b.Bytes()})
			}
			failed = err
		}
	})
	return func() []moment {
		close(stop)
		working.Wait()
		w.no(failed)
		return all
	}
}

func (w *world) lastEvent() uint64 {
	w.Helper()
	last, err := w.running.journal.LastSeq(w.ctx)
	w.no(err)
	return last
}

// restore starts a bot on an empty host with the journal of a backup, and waits until it has nothing left to do.
func (w *world) restore(backup []byte) {
	w.Helper()
	for _, name := range []string{"journal", "ledger.db", "ledger.db-wal", "ledger.db-shm", "mirrors", "runner"} {
		w.no(os.RemoveAll(filepath.Join(w.dir, name)))
	}
	_, err := journal.Restore(w.ctx, journal.Options{Dir: filepath.Join(w.dir, "journal")}, bytes.NewReader(backup))
	w.no(err)
	w.start()
	w.poll("everything is read again", func() bool {
		_, pending, err := w.running.journal.Restored(w.ctx)
		w.no(err)
		return !pending
	})
	w.settle()
}

func (w *world) rightAfterRestore(moment uint64, pr *embedded.PR, conclusion string) {
	w.Helper()
	w.until(fmt.Sprintf("%s of #%d after a restore of event %d", conclusion, pr.Number(), moment), func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Status == "completed" && c.Conclusion == conclusion
	})
	all := w.repo.Checks(pr.HeadSHA())
	for _, c := range all {
		if c.Status != "completed" {
			w.Errorf("event %d: check %s of #%d is %s", moment, c.Name, pr.Number(), c.Status)
			for _, c := range all {
				w.Logf("%d %s of %s: %s %s: %s", c.ID, c.Name, c.ExternalID, c.Status, c.Conclusion, c.Title)
			}
		}
	}
	tables := 0
	for _, c := range pr.Comments() {
		if strings.Contains(c.Author, "kernelgate") && strings.Contains(c.Body, "<!-- kernelgate:pr-") {
			tables++
		}
	}
	if tables > 1 {
		w.Errorf("event %d: #%d has %d reports", moment, pr.Number(), tables)
	}
}
