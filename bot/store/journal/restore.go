package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Restored says that a journal does not have everything that its bot has done: it was restored from a backup, or a loss was
// accepted. The bot then reads every open pull request again, and publishes everything.
type Restored struct {
	At    time.Time `json:"at"`    // when it was restored
	Since time.Time `json:"since"` // the journal may lack what happened after this; zero if unknown
	Last  uint64    `json:"last"`  // the last event that was kept
	Done  bool      `json:"done,omitempty"`
}

const restoredKey = "restored"

// MarkRestored stores that the journal was restored.
func (j *Journal) MarkRestored(ctx context.Context, r Restored) error {
	return putRecord(ctx, j.marks, restoredKey, r)
}

// Restored returns the last restore; At is zero if there was none. It reports whether the bot has not read everything again
// yet.
func (j *Journal) Restored(ctx context.Context) (r Restored, pending bool, err error) {
	r, revision, err := getRecord[Restored](ctx, j.marks, restoredKey)
	return r, revision > 0 && !r.Done, err
}

// RestoreDone stores that the bot has read everything again after that restore.
func (j *Journal) RestoreDone(ctx context.Context, done Restored) error {
	now, revision, err := getRecord[Restored](ctx, j.marks, restoredKey)
	if err != nil || !now.At.Equal(done.At) {
		return err
	}
	now.Done = true
	_, err = writeRecord(ctx, j.marks, restoredKey, now, revision)
	return err
}

// ErrNotEmpty says that there is a journal in the place where one is to be restored.
var ErrNotEmpty = errors.New("there is a journal already")

// Restore makes a journal from a backup: in o.Dir, or on the server at o.URL. There must be none. If it fails, it leaves
// nothing behind. It reads the backup twice: all hashes are compared before the first byte is written.
func Restore(ctx context.Context, o Options, backup io.ReadSeeker) (m Manifest, err error) {
	if m, err = CheckBackup(backup); err != nil {
		return m, fmt.Errorf("restore: %w", err)
	}
	if _, err := backup.Seek(0, io.SeekStart); err != nil {
		return m, fmt.Errorf("restore: %w", err)
	}
	final := o.Dir
	if final != "" {
		if err := checkEmpty(final); err != nil {
			return m, fmt.Errorf("restore: %w", err)
		}
		o.Dir = final + ".restoring"
		if err := os.RemoveAll(o.Dir); err != nil {
			return m, fmt.Errorf("restore: %w", err)
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, os.RemoveAll(o.Dir))
			}
		}()
	}
	if err := restoreStreams(ctx, o, backup); err != nil {
		return m, fmt.Errorf("restore: %w", err)
	}
	if err := finishRestore(ctx, o, m); err != nil {
		if o.URL != "" {
			err = errors.Join(err, deleteStreams(ctx, o, order))
		}
		return m, fmt.Errorf("restore: %w", err)
	}
	if final == "" {
		return m, nil
	}
	if err := os.RemoveAll(final); err != nil { // it is empty
		return m, fmt.Errorf("restore: %w", err)
	}
	if err := os.Rename(o.Dir, final); err != nil {
		return m, fmt.Errorf("restore: %w", err)
	}
	return m, nil
}

// checkEmpty returns ErrNotEmpty if the folder has files other than those that an unsuccessful start leaves.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Name() != lockFile {
			return fmt.Errorf("%w: %s has %s", ErrNotEmpty, dir, e.Name())
		}
	}
	return nil
}

func restoreStreams(ctx context.Context, o Options, backup io.Reader) (err error) {
	j, err := dial(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for _, name := range order {
		err := j.again(ctx, func(ctx context.Context) error { _, err := j.js.Stream(ctx, name); return err })
		if err == nil {
			return fmt.Errorf("%w: the NATS server has the stream %s", ErrNotEmpty, name)
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			return j.declareError("stream "+name, err)
		}
	}
	var made []string
	into := restoring{j: j}
	_, err = readBackup(backup, func(stream string, data []byte) error {
		if stream != into.name {
			if err := into.end(ctx); err != nil {
				return err
			}
			made = append(made, stream)
			return into.begin(ctx, stream, data)
		}
		return into.add(ctx, data)
	})
	if err == nil {
		err = into.end(ctx)
	}
	if err != nil && j.external() {
		err = errors.Join(err, j.remove(ctx, made))
	}
	return err
}

// restoring is the restore of one stream after the other.
type restoring struct {
	j    *Journal
	name string // "" before the first
	to   string // where the server expects the pieces
}

func (r *restoring) begin(ctx context.Context, name string, description []byte) error {
	var info snapshotInfo
	var config map[string]any
	if err := errors.Join(json.Unmarshal(description, &info), json.Unmarshal(info.Config, &config)); err != nil {
		return fmt.Errorf("%w: the description of %s: %w", ErrBackup, name, err)
	}
	config["num_replicas"] = max(r.j.opt.Replicas, 1)
	ask, err := json.Marshal(map[string]any{"config": config, "state": info.State})
	if err != nil {
		return err
	}
	answer, err := apiRequest[struct {
		To string `json:"deliver_subject"`
	}](ctx, r.j, "$JS.API.STREAM.RESTORE."+name, ask)
	if err != nil {
		return r.j.declareError("stream "+name, err)
	}
	r.name, r.to = name, answer.To
	return nil
}

func (r *restoring) add(ctx context.Context, piece []byte) error {
	ctx, cancel := context.WithTimeout(ctx, unanswered*r.j.opt.answerIn)
	defer cancel()
	m, err := r.j.nc.RequestWithContext(ctx, r.to, piece)
	if err != nil {
		return fmt.Errorf("stream %s: %w", r.name, err)
	}
	if len(m.Data) > 0 { // an acknowledgement is empty
		return fmt.Errorf("stream %s: the server answers %s", r.name, m.Data)
	}
	return nil
}

// end waits until the server has made the stream.
func (r *restoring) end(ctx context.Context) error {
	if r.name == "" {
		return nil
	}
	_, err := apiRequest[struct{}](ctx, r.j, r.to, nil)
	if err != nil && r.j.opt.Replicas > 1 {
		err = fmt.Errorf("%w (%s)", err, r.j.copiesNeed())
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", r.name, err)
	}
	return nil
}

// finishRestore verifies the new journal and marks it as restored.
func finishRestore(ctx context.Context, o Options, m Manifest) (err error) {
	j, err := Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	report, err := j.Verify(ctx)
	if err == nil {
		err = report.Err()
	}
	if err == nil && (report.Last != m.Last || report.LastHash != m.Hash) {
		err = fmt.Errorf("%w: the last event is %d (%s), and the manifest names %d (%s)", ErrDamaged, report.Last, report.LastHash, m.Last, m.Hash)
	}
	if err == nil {
		err = j.vacate(ctx)
	}
	if err == nil {
		err = j.MarkRestored(ctx, Restored{At: j.opt.Now().UTC(), Since: m.At, Last: m.Last})
	}
	if err == nil && o.Dir != "" && m.Last > 0 {
		err = endRecord{m.Last, m.Hash}.write(filepath.Join(o.Dir, lastFile))
	}
	return err
}

// vacate lets the next bot lead at once: the leader of the backup does not lead this journal.
func (j *Journal) vacate(ctx context.Context) error {
	rec, revision, err := getRecord[leadRecord](ctx, j.leases, leadKey)
	if err != nil || revision == 0 {
		return err
	}
	rec.Holder = ""
	_, err = writeRecord(ctx, j.leases, leadKey, rec, revision)
	return err
}

func deleteStreams(ctx context.Context, o Options, names []string) (err error) {
	j, err := dial(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return j.remove(ctx, names)
}

func (j *Journal) remove(ctx context.Context, names []string) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.opt.ledIn)
	defer cancel()
	for _, name := range names {
		if failed := j.js.DeleteStream(ctx, name); failed != nil && !errors.Is(failed, jetstream.ErrStreamNotFound) {
			err = errors.Join(err, fmt.Errorf("removing the unfinished stream %s: %w", name, failed))
		}
	}
	return err
}
