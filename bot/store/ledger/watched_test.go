package ledger

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/watch"
)

// The state of a watched kernel is the sum of its events, with or without a restart between them.
func TestWatched(t *testing.T) {
	m := newMemory()
	want := map[string]*watch.State{}
	write := func(repo int64, folder string, e watch.Event) {
		name := watch.Subject(repo, folder, "")
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		seq := uint64(len(m.events) + 1)
		m.add(journal.Event{Seq: seq, Run: name, Kind: watch.KindOf(e), At: epoch, Data: data})
		if want[name] == nil {
			want[name] = &watch.State{}
		}
		want[name].Apply(seq, e)
	}
	look := func(day int, speed float64) watch.Look {
		return watch.Look{Change: fmt.Sprint("watch ", day), Due: time.Date(2026, 5, day, 2, 0, 0, 0, time.UTC), Base: "b", Head: "h", Slower: 0.01, Shapes: []watch.Shape{{Name: "a", Speed: speed, Lower: speed, Upper: speed, Baseline: 10}}}
	}
	file := t.TempDir() + "/ledger.db"
	compare := func() {
		t.Helper()
		l, _ := openLedger(t, file)
		catchUp(t, l, m)
		for repo, folders := range map[int64][]string{1: {"kernels/a", "kernels/b"}, 2: {"kernels/a"}, 3: nil} {
			got, err := l.Watched(t.Context(), repo)
			if err != nil || len(got) != len(folders) {
				t.Fatalf("repository %d has %d watched kernels (%v), want %d", repo, len(got), err, len(folders))
			}
			for i, folder := range folders {
				has, _ := json.Marshal(got[i])
				wants, _ := json.Marshal(want[watch.Subject(repo, folder, "")])
				if string(has) != string(wants) {
					t.Errorf("%s of %d:\n%s, want\n%s", folder, repo, has, wants)
				}
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(1, "kernels/b", watch.Looked{Repo: 1, Folder: "kernels/b", Look: look(1, 1)})
	write(1, "kernels/a", watch.Looked{Repo: 1, Folder: "kernels/a", Look: look(1, 0.9)})
	write(1, "kernels/a", watch.IssueWritten{Number: 3, Digest: "x"})
	write(2, "kernels/a", watch.Looked{Repo: 2, Folder: "kernels/a", Look: look(1, 0.9)})
	compare()
	write(1, "kernels/a", watch.Looked{Repo: 1, Folder: "kernels/a", Look: look(2, 1)})
	write(1, "kernels/a", watch.IssueClosed{})
	write(2, "kernels/a", watch.IssueRefused{Status: 403, Change: "watch 1"})
	compare()
	file = t.TempDir() + "/ledger.db"
	compare()
}
