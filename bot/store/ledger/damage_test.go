package ledger

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func asJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// exec runs SQL on a file behind the ledger's back.
func exec(t *testing.T, file, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func rewrite(t *testing.T, file string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUselessFile(t *testing.T) {
	w := newWorld(8).run(80)
	want := built(t, w.events)
	for name, test := range map[string]struct {
		spoil func(t *testing.T, file string)
		says  string
		aside bool
	}{
		"garbage": {func(t *testing.T, file string) {
			rewrite(t, file, func(data []byte) []byte { return bytes.Repeat([]byte("garbage"), 999) })
		}, "moved_to", true},
		"cut off": {func(t *testing.T, file string) {
			rewrite(t, file, func(data []byte) []byte { return data[:5000] })
		}, "moved_to", true},
		"another version": {func(t *testing.T, file string) {
			exec(t, file, "PRAGMA user_version = 77")
		}, "a different version", false},
		"another program's": {func(t *testing.T, file string) {
			removeAll(file)
			exec(t, file, "CREATE TABLE recipes (title TEXT)")
		}, "not a ledger", true},
		"gone": {func(t *testing.T, file string) { removeAll(file) }, "", false},
		"empty": {func(t *testing.T, file string) {
			rewrite(t, file, func([]byte) []byte { return nil })
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ledger.db")
			l, _ := openLedger(t, file)
			catchUp(t, l, newMemory(w.events...))
			l.Close()
			test.spoil(t, file)
			l, log := openLedger(t, file)
			catchUp(t, l, newMemory(w.events...))
			same(t, want, dump(t, l))
			log.says(t, test.says)
			if _, err := os.Stat(file + ".bad"); (err == nil) != test.aside {
				t.Errorf("the old file: %v", err)
			}
		})
	}
}

// Damage that only a reader comes across is repaired as well.
func TestReaderFindsDamage(t *testing.T) {
	w := newWorld(9).run(80)
	for name, test := range map[string]struct {
		spoil func(t *testing.T, file string)
		read  func(t *testing.T, l *Ledger) error
	}{
		"page": {func(t *testing.T, file string) {
			root := rootOf(t, file, "runs")
			rewrite(t, file, func(data []byte) []byte {
				clear(data[(root-1)*4096 : root*4096])
				return data
			})
		}, func(t *testing.T, l *Ledger) error {
			_, err := l.Runs(t.Context(), RunFilter{})
			return err
		}},
		"state": {func(t *testing.T, file string) {
			exec(t, file, "UPDATE changes SET state = substr(state, 2)")
		}, func(t *testing.T, l *Ledger) error {
			_, err := l.Change(t.Context(), w.changes[0].ID)
			return err
		}},
		"name": {func(t *testing.T, file string) {
			exec(t, file, "UPDATE heads SET change = 'x' || change")
		}, func(t *testing.T, l *Ledger) error {
			_, err := l.ByHead(t.Context(), w.changes[0].ID.Repo, w.changes[0].Facts.Head)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ledger.db")
			l, _ := openLedger(t, file)
			catchUp(t, l, newMemory(w.events...))
			l.Close()
			test.spoil(t, file)
			l, log := openLedger(t, file)
			follow(t, l, newMemory(w.events...))
			if err := l.CaughtUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := test.read(t, l); err == nil {
				t.Fatal("the damage was not found")
			}
			if err := l.CaughtUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, built(t, w.events), dump(t, l))
			log.says(t, "a reader found the ledger damaged")
		})
	}
}

func rootOf(t *testing.T, file, table string) (page int) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_master WHERE name = ?", table).Scan(&page); err != nil {
		t.Fatal(err)
	}
	return page
}

func TestUnusablePlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), filepath.Join(file, "ledger.db"), Options{}); err == nil {
		t.Error("a ledger was made inside a file")
	}
}
