package pages

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/highwater"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/results"
)

// maxVerdict is the size of the largest verdict that is read. All verdicts are kept in memory.
const maxVerdict = 16 << 20

// A Folder is a Source without a bot. It reads evidence and verdicts that kernelgate check wrote to
// disk. It reads the folder again on every visit and writes nothing.
type Folder struct {
	dir     string
	judge   func(*gates.Evidence) *gates.Verdict
	lessons map[string]string

	mu      sync.Mutex
	results map[string]*storedRun // by their name in URLs
	skipped map[string]string     // reason, by path
}

// A storedRun is one run.
type storedRun struct {
	row      ledger.RunRow
	evidence string // path of the file
	verdict  []byte
	stamp    string // sizes and times of the files that it was read from
}

// repoID is the id of the only repository.
const repoID = 1

// OpenFolder reads a folder of results. judge may be nil; evidence without a verdict next to it is
// then shown without a verdict. lessons maps a variant to its lesson, for evidence that is too old
// to contain one.
func OpenFolder(dir string, judge func(*gates.Evidence) *gates.Verdict, lessons map[string]string) (*Folder, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the results: %w (kernelgate check writes them into results)", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("opening the results: %s is not a folder (name the folder that holds evidence.json, or one above it)", dir)
	}
	f := &Folder{dir: dir, judge: judge, lessons: lessons, results: map[string]*storedRun{}}
	if err := f.read(context.Background()); err != nil {
		return nil, err
	}
	if searches, err := f.Searches(context.Background(), SearchFilter{}); len(f.results) == 0 && (err != nil || len(searches) == 0) {
		why := ""
		for path, text := range f.skipped {
			why += "\n  " + path + ": " + text
		}
		return nil, fmt.Errorf("opening the results: there is no evidence in %s (kernelgate check writes some into results)%s", dir, why)
	}
	return f, nil
}

// Skipped returns the files that look like evidence but are not, with the reason.
func (f *Folder) Skipped() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.skipped
}

// Count returns the number of results.
func (f *Folder) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.results)
}

// read walks the folder and parses the files that are new.
func (f *Folder) read(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, skipped := map[string]*storedRun{}, map[string]string{}
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && path == f.dir:
			return err
		case err != nil:
			skipped[path] = err.Error()
			return nil
		case d.IsDir() && path != f.dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular() || filepath.Ext(path) != ".json" || d.Name() == "verdict.json":
			return nil
		}
		name := f.nameOf(path)
		stamp, err := stampOf(path, filepath.Join(filepath.Dir(path), "verdict.json"))
		if err == nil {
			if old := f.results[name]; old != nil && old.stamp == stamp {
				seen[name] = old
				return nil
			}
			var r *storedRun
			if r, err = f.parse(path, name, stamp); err == nil {
				seen[name] = r
				return nil
			}
		}
		skipped[path] = err.Error()
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the results: %w", err)
	}
	f.results, f.skipped = seen, skipped
	return nil
}

// nameOf returns a file's name in URLs: its path in one segment.
func (f *Folder) nameOf(path string) string {
	rel, err := filepath.Rel(f.dir, path)
	if err != nil {
		rel = path
	}
	rel = strings.TrimSuffix(filepath.ToSlash(rel), ".json")
	if rel = strings.TrimSuffix(rel, "/evidence"); rel == "evidence" {
		rel = "result"
	}
	// The escapes are unambiguous: no two paths have the same name.
	return strings.NewReplacer("~", "~0", "/", "~1", "?", "~2", "#", "~3", "%", "~4", " ", "~5").Replace(rel)
}

func stampOf(paths ...string) (string, error) {
	text := ""
	for i, path := range paths {
		info, err := os.Lstat(path) // symbolic links are not followed
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("%d.%d.", info.ModTime().UnixNano(), info.Size())
	}
	return text, nil
}

// parse reads evidence with the verdict next to it. Without one it judges the evidence, if there is
// a judge.
func (f *Folder) parse(path, name, stamp string) (*storedRun, error) {
	data, err := results.Read(path)
	if err != nil {
		return nil, err
	}
	e, err := gates.ParseEvidence(filepath.Base(path), data)
	if err != nil {
		return nil, err
	}
	r := &storedRun{evidence: path, stamp: stamp}
	var v *gates.Verdict
	if at := &e.Provenance.Head; at.Lesson == "" {
		at.Lesson = f.lessons[at.Variant]
	}
	if f.judge != nil {
		v = f.judge(e)
		r.verdict, err = json.Marshal(v)
	} else if filepath.Base(path) == "evidence.json" {
		v = &gates.Verdict{}
		if r.verdict, err = results.ReadAtMost(filepath.Join(filepath.Dir(path), "verdict.json"), maxVerdict); err == nil {
			err = json.Unmarshal(r.verdict, v)
		}
		if errors.Is(err, fs.ErrNotExist) {
			v, err = nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("its verdict: %w", err)
	}
	r.row = ledger.RunRow{
		Job: name, Change: change.ID{Repo: repoID}, Kernel: e.Kernel, Folder: e.Kernel, Attempt: 1, Head: e.Provenance.Head.SHA, Title: titleOf(e, name),
		Phase: change.Done, Device: e.Device.Name, Runner: e.Provenance.Host, Ended: e.Provenance.Time, Evidence: "evidence " + name + " " + stamp,
	}
	if v != nil {
		known := change.NewResult(v)
		r.row.Outcome, r.row.Reason, r.row.Line, r.row.Rule = known.Outcome, known.Reason, known.Line, known.Rule
		r.row.P50, r.row.Speedups, r.row.Verdict = known.P50, known.Speedups, "verdict "+name+" "+stamp
		if v.Measuring != nil {
			r.row.Attempt = max(1, v.Measuring.Attempts)
		}
	}
	return r, nil
}

func titleOf(e *gates.Evidence, name string) string {
	text := strings.NewReplacer("~1", "/", "~5", " ", "~0", "~").Replace(name)
	if v := e.Provenance.Head.Variant; v != "" && !strings.HasSuffix(text, v) {
		text += ": " + v
	}
	return text
}

// RepoNames reads the folder again and returns it as the only repository.
func (f *Folder) RepoNames(ctx context.Context) ([]ledger.RepoName, error) {
	if err := f.read(ctx); err != nil {
		return nil, err
	}
	name := filepath.Base(f.dir)
	if abs, err := filepath.Abs(f.dir); err == nil {
		name = filepath.Base(abs)
	}
	return []ledger.RepoName{{ID: repoID, Name: "results/" + strings.NewReplacer("/", "-", "?", "-", "#", "-", "%", "-").Replace(name)}}, nil
}

// all returns the runs that keep accepts, newest first.
func (f *Folder) all(keep func(ledger.RunRow) bool) []ledger.RunRow {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rows []ledger.RunRow
	for _, r := range f.results {
		rows = append(rows, r.row)
	}
	slices.SortFunc(rows, func(a, b ledger.RunRow) int {
		return cmp.Or(b.Ended.Compare(a.Ended), strings.Compare(b.Job, a.Job))
	})
	for i := range rows {
		rows[i].N = int64(len(rows) - i)
	}
	return slices.DeleteFunc(rows, func(r ledger.RunRow) bool { return !keep(r) })
}

// Kernels returns the kernels that have evidence.
func (f *Folder) Kernels(context.Context, int64) ([]string, error) {
	var names []string
	for _, r := range f.all(func(ledger.RunRow) bool { return true }) {
		names = append(names, r.Kernel)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Latest returns a kernel's results.
func (f *Folder) Latest(_ context.Context, _ int64, folder string, limit int) ([]ledger.RunRow, error) {
	rows := f.all(func(r ledger.RunRow) bool { return r.Folder == folder })
	return rows[:min(len(rows), limit)], nil
}

// Runs returns one page of results.
func (f *Folder) Runs(_ context.Context, filter ledger.RunFilter) ([]ledger.RunRow, error) {
	rows := f.all(func(r ledger.RunRow) bool { return filter.Folder == "" || r.Folder == filter.Folder })
	if filter.Before > 0 {
		rows = slices.DeleteFunc(rows, func(r ledger.RunRow) bool { return r.N >= filter.Before })
	}
	return rows[:min(len(rows), filter.Limit)], nil
}

// Run returns one result.
func (f *Folder) Run(_ context.Context, job string) (ledger.RunRow, error) {
	rows := f.all(func(r ledger.RunRow) bool { return r.Job == job })
	if len(rows) == 0 {
		return ledger.RunRow{}, ErrNotFound
	}
	return rows[0], nil
}

// AtHead returns the results of a commit.
func (f *Folder) AtHead(_ context.Context, prefix string, limit int) ([]ledger.RunRow, error) {
	rows := f.all(func(r ledger.RunRow) bool { return strings.HasPrefix(r.Head, prefix) })
	return rows[:min(len(rows), limit)], nil
}

// Blob returns the content of a file.
func (f *Folder) Blob(_ context.Context, name string) ([]byte, error) {
	what, rest, _ := strings.Cut(name, " ")
	job, stamp, _ := strings.Cut(rest, " ")
	f.mu.Lock()
	r := f.results[job]
	f.mu.Unlock()
	switch {
	case r == nil || r.stamp != stamp:
		return nil, ErrNotFound
	case what == "verdict":
		return r.verdict, nil
	}
	return results.Read(r.evidence)
}

// A folder has no default branch, no changes, no commands and no runners.

// Merges returns an empty history: a folder of results has no branches.
func (f *Folder) Merges(context.Context, int64, string) (highwater.History, error) {
	return highwater.History{}, nil
}

// Watched returns nothing: a folder of results has no default branch.
func (f *Folder) Watched(context.Context, int64) ([]*watch.State, error) { return nil, nil }

func (f *Folder) OnMain(context.Context, int64, string, int) ([]ledger.RunRow, error) {
	return nil, nil
}
func (f *Folder) FindChanges(context.Context, int64, string, int) ([]ledger.ChangeRow, error) {
	return nil, nil
}
func (f *Folder) Unfinished(context.Context) ([]ledger.RunRow, error)          { return nil, nil }
func (f *Folder) Attempts(context.Context, change.ID) ([]ledger.RunRow, error) { return nil, nil }
func (f *Folder) Change(context.Context, change.ID) (*change.State, error) {
	return nil, ErrNotFound
}
func (f *Folder) Audit(context.Context, change.ID, int) ([]ledger.Entry, error) { return nil, nil }
func (f *Folder) Runners() []Runner                                             { return nil }
func (f *Folder) Places() map[string]scheduler.Position                         { return nil }
func (f *Folder) Said(string) []runners.LogEntry                                { return nil }
