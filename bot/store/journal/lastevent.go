package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// lastFile names the last event of an embedded journal, beside the files of the server. If the server finds a damaged block, it
// may cut off everything after the damage, and nothing that is left would show it.
const lastFile = "last-event.json"

// saveLastEvery is how often the file is written while there are new events.
const saveLastEvery = time.Second

// lastEvent writes lastFile soon after each event.
type lastEvent struct {
	mu    sync.Mutex
	now   endRecord
	timer *time.Timer // is set while the file is older than now
}

// endRecord is the content of lastFile.
type endRecord struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

func (j *Journal) wroteEvent(seq uint64, hash string) {
	if j.external() || j.opt.ReadOnly {
		return
	}
	l := &j.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq <= l.now.Seq {
		return
	}
	l.now = endRecord{seq, hash}
	if l.timer == nil {
		l.timer = time.AfterFunc(saveLastEvery, j.saveLast)
	}
}

// saveLast writes the file, if there were events since the last time. An old file is still true, so a full disk does no harm.
func (j *Journal) saveLast() {
	l := &j.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		return
	}
	l.timer.Stop()
	l.timer = nil
	if err := l.now.write(filepath.Join(j.opt.Dir, lastFile)); err != nil {
		j.opt.Log.Warn("cannot note the last event beside the journal", "error", err)
	}
}

func (r endRecord) write(file string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// CheckEnd returns ErrDamaged if an embedded journal ends before an event that was written to it, or has a different one in its
// place.
func (j *Journal) CheckEnd(ctx context.Context) error {
	if j.external() {
		return nil
	}
	file := filepath.Join(j.opt.Dir, lastFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading which event is the last: %w", err)
	}
	var was endRecord
	if json.Unmarshal(text, &was) != nil || was.Seq == 0 {
		return nil // a power cut may leave an empty file
	}
	m, err := j.message(ctx, j.events, was.Seq)
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("reading event %d: %w", was.Seq, err)
	}
	if err == nil {
		if _, own, intact := storedOf(m).hashes(); intact && own == was.Hash || j.accepted.Load().seqs[was.Seq] {
			return nil
		}
		return fmt.Errorf("%w: event %d is not the one that %s names", ErrDamaged, was.Seq, file)
	}
	if j.accepted.Load().seqs[was.Seq] {
		return nil
	}
	return fmt.Errorf("%w: event %d is missing, which %s names as the last", ErrDamaged, was.Seq, file)
}

// forgetEnd removes the file after a loss was accepted.
func (j *Journal) forgetEnd() error {
	if j.external() {
		return nil
	}
	if err := os.Remove(filepath.Join(j.opt.Dir, lastFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
