package journal_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// landed is what the program said that wrote the journal in testdata.
type landed struct {
	Events []struct {
		Seq       uint64
		Run, Kind string
		SHA256    string
	}
	States     map[string]*change.State
	Deliveries []string // handled: event and id
}

// unpackLanded lays out the journal of before; testdata/landed.md says how it was made.
func unpackLanded(t *testing.T) (dir string, facts landed) {
	t.Helper()
	root := t.TempDir()
	f, err := os.Open("testdata/landed.tar.gz")
	must(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	must(t, err)
	for files := tar.NewReader(zip); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		if !filepath.IsLocal(h.Name) {
			t.Fatalf("the archive has %s", h.Name)
		}
		name := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			must(t, os.MkdirAll(name, 0o700))
			continue
		}
		data, err := io.ReadAll(files)
		must(t, err)
		must(t, os.WriteFile(name, data, 0o600))
	}
	data, err := os.ReadFile(filepath.Join(root, "facts.json"))
	must(t, err)
	must(t, json.Unmarshal(data, &facts))
	return filepath.Join(root, "journal"), facts
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A journal that was written before there were clusters, classes of jobs and several bots opens with nothing
// lost: every event, change, blob, job and lease is there, and the work that was queued goes on.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, was := unpackLanded(t)
	packed := 0
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "EVENTS", "msgs", "*.blk"))
	must(t, err)
	for _, file := range blocks {
		data, err := os.ReadFile(file)
		must(t, err)
		var meta server.CompressionInfo
		if n, err := meta.UnmarshalMetadata(data); n > 0 && err == nil {
			packed++
		}
	}
	if packed < 2 || len(was.Events) < 100 || len(was.States) < 5 || len(was.Deliveries) < 20 {
		t.Fatalf("the journal of before has %d packed blocks, %d events, %d changes and %d deliveries: too little to show anything", packed, len(was.Events), len(was.States), len(was.Deliveries))
	}

	j, err := journal.Open(ctx, journal.Options{Dir: dir})
	must(t, err)
	defer func() { must(t, j.Close()) }()
	states := map[string]*change.State{}
	n := 0
	last, err := j.Replay(ctx, 0, func(e journal.Event) error {
		sum := sha256.Sum256(e.Data)
		if n >= len(was.Events) {
			t.Fatalf("event %d was not there", e.Seq)
		}
		if w := was.Events[n]; w.Seq != e.Seq || w.Run != e.Run || w.Kind != e.Kind || w.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("event %d is %s of %s, and was event %d, %s of %s", e.Seq, e.Kind, e.Run, w.Seq, w.Kind, w.Run)
		}
		n++
		id, err := change.ParseID(e.Run)
		if err != nil {
			return nil // of a machine code, or padding
		}
		if states[e.Run] == nil {
			states[e.Run] = change.New(id)
		}
		event, err := change.Decode(e.Kind, e.Data)
		if err == nil {
			states[e.Run].Apply(e.Seq, e.At, event)
		}
		return err
	})
	if err != nil || n != len(was.Events) || last != was.Events[n-1].Seq {
		t.Fatalf("%d of %d events, up to %d: %v", n, len(was.Events), last, err)
	}
	sameStates(t, was.States, states)
	keptBlobs(ctx, t, j, states)
	workGoesOn(ctx, t, j, states)
	deliveriesGoOn(ctx, t, j, was.Deliveries)
	inTheLedger(ctx, t, j, states)
}

// sameStates: what the events add up to is what it was.
func sameStates(t *testing.T, was, is map[string]*change.State) {
	t.Helper()
	if len(is) != len(was) {
		t.Errorf("%d changes, and there were %d", len(is), len(was))
	}
	for run, before := range was {
		now := is[run]
		if now == nil {
			t.Errorf("%s is gone", run)
			continue
		}
		// Times of events are the bot's own in the one and the journal's in the other.
		for _, s := range []*change.State{before, now} {
			s.First = time.Time{}
			for i := range s.Runs {
				s.Runs[i].Asked, s.Runs[i].Begun, s.Runs[i].Ended = time.Time{}, time.Time{}, time.Time{}
			}
			for i := range s.Commands {
				s.Commands[i].When = time.Time{}
			}
		}
		a, err := json.Marshal(before)
		must(t, err)
		b, err := json.Marshal(now)
		must(t, err)
		if string(a) != string(b) {
			t.Errorf("%s is\n%s\nand was\n%s", run, b, a)
		}
	}
}

// keptBlobs: what verdicts are proven by is named by its hash, and so are bundles.
func keptBlobs(ctx context.Context, t *testing.T, j *journal.Journal, states map[string]*change.State) {
	t.Helper()
	read := func(from *journal.Blobs, name, sum string) {
		t.Helper()
		r, _, err := from.Get(ctx, name)
		must(t, err)
		defer r.Close()
		data, err := io.ReadAll(r)
		must(t, err)
		if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s is not what it was", name)
		}
	}
	blobs := 0
	for _, s := range states {
		for _, r := range s.Runs {
			if r.Unfinished() {
				read(j.Bundles, r.Bundle, r.Bundle)
			}
			if r.Result == nil {
				continue
			}
			for _, name := range []string{r.Result.Evidence, r.Result.Verdict, r.Result.Log} {
				_, sum, _ := strings.Cut(name, "-")
				read(j.Artifacts, name, sum)
				blobs++
			}
		}
	}
	if blobs < 6 {
		t.Errorf("%d blobs were looked at", blobs)
	}
}

// workGoesOn: the runner that has a job keeps it and ends it, and the one in the queue is the next one's.
func workGoesOn(ctx context.Context, t *testing.T, j *journal.Journal, states map[string]*change.State) {
	t.Helper()
	var at, queued change.Run
	for _, s := range states {
		for _, r := range s.Runs {
			switch r.Phase {
			case change.Running:
				at = r
			case change.Queued:
				queued = r
			}
		}
	}
	if q := j.Queues(); len(q) != 1 || q[0].Label != "cpu" || q[0].Waiting != 1 || q[0].Leased != 1 {
		t.Errorf("the queues are %+v", q)
	}
	held, err := j.Attach(ctx, at.Job, at.Token, at.Runner)
	must(t, err)
	must(t, held.Extend(ctx))
	next, err := j.Lease(ctx, "cpu2", "cpu")
	must(t, err)
	if next.ID != queued.Job || next.Bundle != queued.Bundle || next.Token != 1 {
		t.Errorf("the next runner gets %+v, and %s waits", next.Job, queued.Job)
	}
	must(t, held.Done(ctx))
	must(t, next.Done(ctx))
	if q := j.Queues(); len(q) != 0 {
		t.Errorf("when all is done the queues are %+v", q)
	}
}

// deliveriesGoOn: what was handled is not handled again, and what was not is.
func deliveriesGoOn(ctx context.Context, t *testing.T, j *journal.Journal, handled []string) {
	t.Helper()
	for _, d := range handled {
		event, id, _ := strings.Cut(d, " ")
		if fresh, err := j.Accept(ctx, journal.Delivery{ID: id, Event: event, Received: time.Now()}); fresh || err != nil {
			t.Errorf("a copy of the delivery %s is taken for a new one: %v", id, err)
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var got []string
	must(t, j.Process(ctx, func(_ context.Context, d journal.Delivery) error {
		got = append(got, d.ID)
		if d.ID == "unhandled" {
			stop()
		}
		return nil
	}))
	if !slices.Equal(got, []string{"unhandled"}) {
		t.Errorf("%v are handled now", got)
	}
}

// inTheLedger: a ledger is made from it.
func inTheLedger(ctx context.Context, t *testing.T, j *journal.Journal, states map[string]*change.State) {
	t.Helper()
	l, err := ledger.Open(ctx, filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{})
	must(t, err)
	following, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Follow(following, j) }()
	must(t, l.CaughtUp(ctx))
	counts, err := l.Counts(ctx)
	if err != nil || counts.Changes != len(states) {
		t.Errorf("the ledger has %d of %d changes: %v", counts.Changes, len(states), err)
	}
	stop()
	<-ended
	must(t, l.Close())
}
