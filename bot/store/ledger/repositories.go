package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/repos"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// A RepoName is a repository with today's name. Only the ID identifies it: GitHub gives a name that becomes free to whoever
// asks first.
type RepoName struct {
	ID      int64
	Name    string
	Removed string   // why the bot cannot reach the repository; "" if it can
	Public  []string // names in the configuration that meant this repository, in lower case
}

// RepoNames is the repositories of all changes. It jumps from one to the next in the index
// rather than looking at all changes.
func (l *Ledger) RepoNames(ctx context.Context) ([]RepoName, error) {
	const query = `WITH RECURSIVE repos (which) AS (
		SELECT min(repo_id) FROM changes
		UNION ALL SELECT (SELECT min(repo_id) FROM changes WHERE repo_id > which) FROM repos WHERE which IS NOT NULL)
		SELECT which FROM repos WHERE which IS NOT NULL`
	return l.repoNames(ctx, query)
}

// RepoName is one repository, if a change or an event of the repository named it.
func (l *Ledger) RepoName(ctx context.Context, id int64) (RepoName, error) {
	found, err := l.repoNames(ctx, "SELECT repo_id AS which FROM (SELECT repo_id FROM changes WHERE repo_id = ?1 LIMIT 1) UNION SELECT id FROM repositories WHERE id = ?1", id)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("repository %d: %w", id, errNotFound)
	}
	if err != nil {
		return RepoName{}, err
	}
	return found[0], nil
}

// repoNames names the repositories that a query returns. The name of a change is the one of its time, so it counts only if
// no event of the repository says a name.
func (l *Ledger) repoNames(ctx context.Context, which string, args ...any) ([]RepoName, error) {
	query := `SELECT w.which, coalesce(nullif(p.name, ''), (SELECT c.repo FROM changes c WHERE c.repo_id = w.which ORDER BY c.seq DESC LIMIT 1), ''), coalesce(p.removed, '')
		FROM (` + which + `) w LEFT JOIN repositories p ON p.id = w.which`
	list, err := all(ctx, l, "the repositories", query, args, func(rows *sql.Rows) (r RepoName, err error) {
		return r, rows.Scan(&r.ID, &r.Name, &r.Removed)
	})
	if err != nil {
		return nil, err
	}
	public, err := l.Public(ctx)
	for _, p := range public {
		if at := slices.IndexFunc(list, func(r RepoName) bool { return r.ID == p.Repo }); at >= 0 {
			list[at].Public = append(list[at].Public, p.Name)
		}
	}
	return list, err
}

// Named finds a repository by name, owner/name. Several have one name while the bot has not learned the new name of all but
// one of them: one that the bot can reach counts before one that it cannot, and then the newest.
func Named(all []RepoName, name string) (RepoName, bool) {
	var found RepoName
	ok := false
	for _, r := range all {
		if !strings.EqualFold(r.Name, name) {
			continue
		}
		if better := (r.Removed == "") != (found.Removed == ""); !ok || better && r.Removed == "" || !better && r.ID > found.ID {
			found, ok = r, true
		}
	}
	return found, ok
}

// Public is which repository each name of the configuration's public pages meant, by name.
func (l *Ledger) Public(ctx context.Context) ([]repos.MadePublic, error) {
	return all(ctx, l, "the public repositories", "SELECT repo_id, name FROM public ORDER BY name", nil, func(rows *sql.Rows) (p repos.MadePublic, err error) {
		return p, rows.Scan(&p.Repo, &p.Name)
	})
}

// addRepository notes an event of a repository.
func (b *batch) addRepository(e journal.Event) error {
	event, err := repos.Decode(e.Writer, e.Kind, e.Data)
	if err != nil {
		return err
	}
	b.count(e)
	b.repos = append(b.repos, event)
	return nil
}

func (b *batch) writeRepositories(ctx context.Context, tx *sql.Tx) error {
	for _, event := range b.repos {
		var err error
		switch e := event.(type) {
		case repos.Named:
			_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO repositories (id, name, removed) VALUES (?, ?, '')", e.Repo, e.Name)
		case repos.Removed:
			_, err = tx.ExecContext(ctx, "INSERT INTO repositories (id, name, removed) VALUES (?1, '', ?2) ON CONFLICT (id) DO UPDATE SET removed = ?2", e.Repo, e.Why)
		case repos.MadePublic:
			_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO public (name, repo_id) VALUES (?, ?)", e.Name, e.Repo)
		case repos.MadePrivate:
			_, err = tx.ExecContext(ctx, "DELETE FROM public WHERE name = ?", e.Name)
		}
		if err != nil {
			return fmt.Errorf("event %s of a repository: %w", repos.KindOf(event), err)
		}
	}
	return nil
}
