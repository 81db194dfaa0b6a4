package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// patience bounds a test that hangs; no test waits for it to pass.
const patience = 3 * time.Minute

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, o Options) *Journal {
	t.Helper()
	if o.Dir == "" && o.URL == "" {
		o.Dir = t.TempDir()
	}
	j, err := Open(testContext(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bare, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	bare.Start()
	t.Cleanup(func() { bare.Shutdown(); bare.WaitForShutdown() })
	if !bare.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	busy := t.TempDir()
	open(t, Options{Dir: busy})

	tests := []struct {
		name string
		opt  Options
		is   error
		says string
	}{
		{"neither folder nor URL", Options{}, nil, "give a folder"},
		{"both", Options{Dir: "a", URL: "b"}, nil, "not both"},
		{"folder open already", Options{Dir: busy}, errLocked, fmt.Sprintf("(process %d); stop that process", os.Getpid())},
		{"folder is a file", Options{Dir: file}, nil, "choose a folder that this user may write"},
		{"nobody listens", Options{URL: "nats://127.0.0.1:1", ledIn: time.Second}, nil, "check the address"},
		{"no JetStream there", Options{URL: bare.ClientURL()}, nil, "enable JetStream"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, err := Open(testContext(t), tt.opt)
			if err == nil {
				t.Fatal("opened", j.Close())
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error is %v, want %v", err, tt.is)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q does not say %q", err, tt.says)
			}
		})
	}
}

func TestServerVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"2.11.9": false, "2.12.0": true, "2.15.2": true, "v3.0.0-beta": true, "1.99": false} {
		if got, err := atLeast(version, 2, 12); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", version, got, err, want)
		}
	}
	if _, err := atLeast("unknown", 2, 12); err == nil {
		t.Error("a version that is none was read")
	}
}

func TestEverythingSurvivesReopening(t *testing.T) {
	t.Parallel()
	ctx, dir := testContext(t), t.TempDir()
	j := open(t, Options{Dir: dir})
	fill(t, ctx, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Accept(ctx, webhook.Delivery{ID: "late", Event: "ping"}); !errors.Is(err, errClosed) {
		t.Errorf("accepting on a closed journal: %v, want ErrClosed", err)
	}
	verify(t, ctx, open(t, Options{Dir: dir}))
}

func TestExternalServer(t *testing.T) {
	t.Parallel()
	srv := external(t)
	ctx := testContext(t)
	a := open(t, Options{URL: srv.ClientURL()})
	fill(t, ctx, a)
	verify(t, ctx, open(t, Options{URL: srv.ClientURL()}))

	// This server's limit is 1 MB.
	_, err := a.Accept(ctx, webhook.Delivery{ID: "big", Event: "push", Body: make([]byte, 2<<20)})
	if err == nil || !strings.Contains(err.Error(), "raise max_payload") {
		t.Errorf("a delivery too large for the server: %v", err)
	}
}

// fill writes one of everything; verify finds it again.
func fill(t *testing.T, ctx context.Context, j *Journal) {
	t.Helper()
	if isNew, err := j.Accept(ctx, webhook.Delivery{ID: "d1", Event: "push", Body: []byte("{}")}); err != nil || !isNew {
		t.Fatal(isNew, err)
	}
	if _, err := j.Append(ctx, "run1", 0, "queued", map[string]int{"pr": 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.PutJob(ctx, "l4", "j1", []byte("work")); err != nil {
		t.Fatal(err)
	}
	if _, err := j.WriteLease(ctx, "j1", map[string]string{"holder": "ann"}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Bundles.Put(ctx, "b1", strings.NewReader("source")); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, ctx context.Context, j *Journal) {
	t.Helper()
	if isNew, err := j.Accept(ctx, webhook.Delivery{ID: "d1", Event: "push", Body: []byte("{}")}); err != nil || isNew {
		t.Error("delivery:", isNew, err)
	}
	if e, err := j.Last(ctx, "run1"); err != nil || e.Kind != "queued" || string(e.Data) != `{"pr":7}` {
		t.Error("event:", e, err)
	}
	if job, err := j.StoredJob(ctx, "l4", "j1"); err != nil || string(job.Data) != "work" {
		t.Error("job:", job, err)
	}
	var rec map[string]string
	if revision, err := j.ReadLease(ctx, "j1", &rec); err != nil || revision == 0 || rec["holder"] != "ann" {
		t.Error("lease:", rec, err)
	}
	if r, _, err := j.Bundles.Get(ctx, "b1"); err != nil {
		t.Error("bundle:", err)
	} else if data, err := io.ReadAll(r); err != nil || string(data) != "source" {
		t.Error("bundle:", string(data), err)
	}
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	j := open(t, Options{})
	big := bytes.Repeat([]byte("0123456789abcdef"), 40_000) // several chunks
	digest, err := j.Artifacts.Put(ctx, "run1/ncu.rep", bytes.NewReader(big))
	if err != nil {
		t.Fatal(err)
	}
	r, got, err := j.Artifacts.Get(ctx, "run1/ncu.rep")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(data, big) || got != digest || len(digest) != 64 {
		t.Errorf("%d bytes with digest %s, %v; want %d with %s", len(data), got, err, len(big), digest)
	}
	if _, err := j.Artifacts.Put(ctx, "empty", strings.NewReader("")); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := j.Artifacts.Delete(ctx, "run1/ncu.rep"); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := j.Artifacts.Get(ctx, "run1/ncu.rep"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after its deletion: %v, want ErrNotFound", err)
	}
}

// A blob that comes in small pieces, as an HTTP body does, is not stored as small pieces, and one that is cut off is refused.
func TestBlobInPieces(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	j := open(t, Options{})
	big := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	if _, err := j.Artifacts.Put(ctx, "a", iotest.OneByteReader(bytes.NewReader(big))); err != nil {
		t.Fatal(err)
	}
	info, err := j.Artifacts.store.GetInfo(ctx, "a")
	if err != nil || info.Chunks > 4 || info.Size != uint64(len(big)) {
		t.Errorf("%+v, %v", info, err)
	}
	cut := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := j.Artifacts.Put(ctx, "b", cut); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a blob that is cut off: %v", err)
	}
}

// A caller without a deadline gets the blob's, not the few seconds of the client.
func TestBlobMayBeSlow(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	j := open(t, Options{})
	big := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	if _, err := j.Artifacts.Put(ctx, "a", bytes.NewReader(big)); err != nil {
		t.Fatal(err)
	}
	const client = 20 * time.Millisecond
	hasty, err := jetstream.New(j.nc, jetstream.WithDefaultTimeout(client))
	if err != nil {
		t.Fatal(err)
	}
	store, err := hasty.ObjectStore(ctx, "ARTIFACTS")
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := (&Blobs{name: "artifacts", store: store, j: j}).Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(3 * client)
	if data, err := io.ReadAll(r); err != nil || !bytes.Equal(data, big) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestCorruptBlobIsRefused(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	j := open(t, Options{})
	if _, err := j.Bundles.Put(ctx, "b", strings.NewReader("what was stored")); err != nil {
		t.Fatal(err)
	}
	store, err := j.js.Stream(ctx, "OBJ_BUNDLES")
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := store.GetMsg(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.DeleteMsg(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := j.js.Publish(ctx, chunk.Subject, []byte("what was altered")[:len(chunk.Data)]); err != nil {
		t.Fatal(err)
	}
	r, _, err := j.Bundles.Get(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err == nil {
		t.Errorf("read %q without an error", data)
	}
}
