package ledger

import (
	"encoding/json"
	"testing"

	"github.com/kernelgate/kernelgate/bot/repos"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// The last event of a repository says its name, whatever names later changes bear. A name of public pages
// belongs to the repository that it was bound to.
func TestRepositoryEvents(t *testing.T) {
	l, err := Open(t.Context(), t.TempDir()+"/ledger.db", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seq := uint64(0)
	write := func(events ...repos.Event) {
		t.Helper()
		b := l.newBatch()
		for _, e := range events {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			seq++
			if err := b.add(t.Context(), journal.Event{Seq: seq, Run: repos.Subject(7), Kind: repos.KindOf(e), Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.RepoName(t.Context(), 7); !IsNotFound(err) {
		t.Errorf("before any event: %v", err)
	}
	for _, c := range []struct {
		events []repos.Event
		want   RepoName
	}{
		{[]repos.Event{repos.Removed{Repo: 7, Why: "deleted"}}, RepoName{ID: 7, Removed: "deleted"}},
		{[]repos.Event{repos.Named{Repo: 7, Name: "o/a"}, repos.MadePublic{Repo: 7, Name: "o/a"}}, RepoName{ID: 7, Name: "o/a", Public: []string{"o/a"}}},
		{[]repos.Event{repos.Removed{Repo: 7, Why: "gone"}, repos.MadePublic{Repo: 8, Name: "o/b"}}, RepoName{ID: 7, Name: "o/a", Removed: "gone", Public: []string{"o/a"}}},
		{[]repos.Event{repos.Named{Repo: 7, Name: "o/b"}, repos.MadePrivate{Name: "o/a"}}, RepoName{ID: 7, Name: "o/b"}},
	} {
		write(c.events...)
		got, err := l.RepoName(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "repository", c.want, got)
	}
	public := must[[]repos.MadePublic](t)(l.Public(t.Context()))
	equal(t, "public", []repos.MadePublic{{Repo: 8, Name: "o/b"}}, public)
}

// Of several repositories with one name, one that the bot can reach counts, and then the newest.
func TestNamed(t *testing.T) {
	old, gone, held := RepoName{ID: 1, Name: "o/r"}, RepoName{ID: 3, Name: "O/R", Removed: "deleted"}, RepoName{ID: 2, Name: "o/R"}
	for name, c := range map[string]struct {
		all  []RepoName
		want int64
	}{
		"none": {nil, 0}, "another": {[]RepoName{{ID: 9, Name: "o/x"}}, 0}, "gone only": {[]RepoName{gone}, 3},
		"reachable": {[]RepoName{old, gone}, 1}, "reachable, other order": {[]RepoName{gone, old}, 1}, "newest": {[]RepoName{held, gone, old}, 2}, "newest, other order": {[]RepoName{old, held}, 2},
	} {
		if got, ok := Named(c.all, "o/r"); got.ID != c.want || ok != (c.want != 0) {
			t.Errorf("%s: %+v %v", name, got, ok)
		}
	}
}
