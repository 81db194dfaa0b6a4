package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var (
	errOtherVersion = errors.New("it was written by another version")
	errBroken       = errors.New("a reader found the ledger damaged")
	errNonsense     = errors.New("what the ledger holds makes no sense") // to SQLite it is all the same
)

// A store is an open file: one connection that writes, some that read.
type store struct {
	write *sql.DB
	read  *sql.DB

	mu      sync.Mutex
	queries map[string]*sql.Stmt // of the readers
}

// openStore opens the file, and makes the tables in a new one.
func openStore(ctx context.Context, file string) (_ *store, err error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	dsn := func(more ...string) string {
		// Rows come back from the journal: what a power cut takes from the end is no loss, so NORMAL is enough.
		pragmas := append([]string{"busy_timeout(5000)", "synchronous(NORMAL)"}, more...)
		u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}.Encode()}
		return u.String()
	}
	s := &store{queries: map[string]*sql.Stmt{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.write, err = sql.Open("sqlite", dsn("journal_mode(WAL)", "cache_size(-16000)")); err != nil {
		return nil, err
	}
	s.write.SetMaxOpenConns(1)
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if s.read, err = sql.Open("sqlite", dsn("query_only(1)")); err != nil {
		return nil, err
	}
	s.read.SetMaxOpenConns(4)
	s.read.SetMaxIdleConns(4) // a connection that is closed takes its parsed queries along
	return s, nil
}

// query asks a reader. Queries are few and asked again and again, and SQLite takes longer
// to parse one than to answer it: each is parsed once for every connection.
func (s *store) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.parsed(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (s *store) parsed(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt := s.queries[query]
	s.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := s.read.PrepareContext(ctx, query) // may wait for a connection
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.queries[query]; first != nil {
		stmt.Close()
		return first, nil
	}
	s.queries[query] = stmt
	return stmt, nil
}

func (s *store) prepare(ctx context.Context) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var app, user int32
	var things int
	for query, into := range map[string]any{
		"PRAGMA application_id": &app, "PRAGMA user_version": &user, "SELECT count(*) FROM sqlite_master": &things,
	} {
		if err := tx.QueryRowContext(ctx, query).Scan(into); err != nil {
			return err
		}
	}
	switch {
	case things == 0:
		_, err := tx.ExecContext(ctx, fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", schema, applicationID, version()))
		if err != nil {
			return fmt.Errorf("making the tables: %w", err)
		}
	case app != applicationID:
		return errors.New("it is not a ledger")
	case user != version():
		return errOtherVersion
	}
	var seq uint64
	if err := tx.QueryRowContext(ctx, "SELECT seq FROM progress").Scan(&seq); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *store) close() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// progress is the sequence and the print of the last event.
func (s *store) progress(ctx context.Context) (seq uint64, print string, err error) {
	if err := s.write.QueryRowContext(ctx, "SELECT seq, print FROM progress").Scan(&seq, &print); err != nil {
		return 0, "", fmt.Errorf("reading how far the ledger is: %w", err)
	}
	return seq, print, nil
}

// damaged tells whether the file itself is the trouble, which a new one cures.
func damaged(err error) bool {
	if errors.Is(err, errBroken) || errors.Is(err, errNonsense) {
		return true
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return true
		case sqlite3.SQLITE_IOERR:
			return e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ
		}
	}
	return false
}

// unwritable tells whether the disk does not take what is written, which passes.
func unwritable(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_FULL || e.Code()&0xff == sqlite3.SQLITE_IOERR) && !damaged(err)
}

// busy tells whether another process has the file in use.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// setAside moves the file away, to where it is named.
func setAside(file, suffix string) (string, error) {
	aside := file + suffix
	for _, end := range []string{"", "-wal"} {
		if err := os.Rename(file+end, aside+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("moving the old ledger away: %w", err)
		}
	}
	return aside, removeAll(file)
}

// removeAll removes the file and what SQLite keeps beside it.
func removeAll(file string) error {
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(file + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the ledger: %w", err)
		}
	}
	return nil
}
