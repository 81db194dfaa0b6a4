package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// A backup of a journal in use is restored on an empty host: with the embedded server, on an external one, and from one kind to
// the other.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"embedded", "external"} {
		for _, to := range []string{"embedded", "external"} {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				ctx := testContext(t)
				options := func(kind string) Options {
					if kind == "external" {
						return Options{URL: external(t).ClientURL()}
					}
					return Options{Dir: filepath.Join(t.TempDir(), "journal")}
				}
				j := open(t, options(from))
				fill(t, ctx, j)
				big := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // several pieces
				for i := range big {
					big[i] ^= byte(rand.Uint32())
				}
				if _, err := j.Artifacts.Put(ctx, "big", bytes.NewReader(big)); err != nil {
					t.Fatal(err)
				}
				var file bytes.Buffer
				m, err := j.Backup(ctx, &file)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := j.Append(ctx, "run1", 1, "later", 1); err != nil {
					t.Fatal(err)
				}
				o := options(to)
				got, err := Restore(ctx, o, bytes.NewReader(file.Bytes()))
				if err != nil {
					t.Fatal(err)
				}
				if got.Last != 1 || got.Hash != m.Hash || !got.At.Equal(m.At) || len(got.Streams) != len(order) {
					t.Errorf("%+v, made as %+v", got, m)
				}
				second := open(t, o)
				r, pending, err := second.Restored(ctx)
				if err != nil || !pending || !r.Since.Equal(m.At) || r.Last != 1 {
					t.Errorf("the mark: %+v, %v, %v", r, pending, err)
				}
				if err := errors.Join(second.CheckEnd(ctx), second.RestoreDone(ctx, r)); err != nil {
					t.Error(err)
				}
				if now, pending, err := second.Restored(ctx); err != nil || pending || !now.At.Equal(r.At) {
					t.Errorf("the mark after its end: %+v, %v, %v", now, pending, err)
				}
				verify(t, ctx, second)
				if data, err := second.Artifacts.Read(ctx, "big"); err != nil || !bytes.Equal(data, big) {
					t.Errorf("an artifact has %d bytes: %v", len(data), err)
				}
				if _, err := Restore(ctx, o, bytes.NewReader(file.Bytes())); !errors.Is(err, ErrNotEmpty) {
					t.Errorf("over a journal: %v", err)
				}
				verify(t, ctx, second)
				if _, err := second.Append(ctx, "run1", 1, "other", 1); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// backedUp returns a backup of a journal with one of everything.
func backedUp(t *testing.T) []byte {
	t.Helper()
	j := open(t, Options{})
	fill(t, testContext(t), j)
	var file bytes.Buffer
	if _, err := j.Backup(testContext(t), &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// A file that is not a whole backup is refused before anything is written, whatever is wrong with it.
func TestDamagedBackup(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	whole := backedUp(t)
	try := func(name string, data []byte) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "journal")
		if _, err := Restore(ctx, Options{Dir: dir}, bytes.NewReader(data)); !errors.Is(err, ErrBackup) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := filepath.Glob(dir + "*"); err != nil || len(left) > 0 {
			t.Errorf("%s: it leaves %v (%v)", name, left, err)
		}
	}
	try("empty", nil)
	try("text", []byte("version: 1\n"))
	for range 40 {
		n := rand.IntN(len(whole) - 2048) // the end of a tar file may be missing
		try(fmt.Sprint("cut after ", n), whole[:n])
	}
	flips := 0
	for flips < 40 {
		n := rand.IntN(len(whole))
		if whole[n] == 0 {
			continue // padding has no meaning
		}
		data := bytes.Clone(whole)
		data[n] ^= byte(1 + rand.IntN(255))
		if _, err := CheckBackup(bytes.NewReader(data)); err == nil && !paxTime(whole, n) {
			t.Errorf("byte %d flipped is not noticed: %q", n, whole[max(0, n-40):min(len(whole), n+40)])
		}
		flips++
	}
}

// paxTime reports whether a byte belongs to a header of the tar file: modes, times and owners of its members mean nothing.
func paxTime(whole []byte, n int) bool {
	block := whole[n/512*512:]
	return len(block) >= 512 && bytes.Contains(block[257:265], []byte("ustar"))
}

// If a restore onto a server fails, it removes the streams that it has made.
func TestRestoreLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	whole := backedUp(t)
	srv := external(t)
	o := Options{URL: srv.ClientURL(), Replicas: 3} // which one server cannot keep
	if _, err := Restore(ctx, o, bytes.NewReader(whole)); err == nil || !strings.Contains(err.Error(), "ask for fewer replicas") {
		t.Error(err)
	}
	o.Replicas = 0
	other, err := dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	// The last one to be restored is in the way.
	if _, err := other.js.CreateStream(ctx, jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"$O.ARTIFACTS.M.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(ctx, o, bytes.NewReader(whole)); err == nil {
		t.Error("restored beside a stream of the same subjects")
	}
	for name := range other.js.StreamNames(ctx).Name() {
		if name != "OTHER" {
			t.Errorf("it leaves the stream %s", name)
		}
	}
	if err := other.js.DeleteStream(ctx, "OTHER"); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(ctx, o, bytes.NewReader(whole)); err != nil {
		t.Error(err)
	}
}

func FuzzReadBackup(f *testing.F) {
	dir := f.TempDir()
	j, err := Open(f.Context(), Options{Dir: dir})
	if err != nil {
		f.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := j.Backup(f.Context(), &file); err != nil {
		f.Fatal(err)
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	_ = os.RemoveAll(dir)
	f.Add(file.Bytes())
	f.Add(file.Bytes()[:1000])
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := CheckBackup(bytes.NewReader(data))
		if err == nil && (m.Format != backupFormat || len(m.Streams) != len(backupOrder)) {
			t.Errorf("accepted %+v", m)
		}
		if err != nil && !errors.Is(err, ErrBackup) {
			t.Errorf("%v", err)
		}
	})
}
