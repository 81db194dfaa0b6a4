package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A packed blob takes less space, and both an embedded and an external server return the original data. A blob that was
// stored without Pack also comes back unchanged, even if it is a gzip file.
func TestPackedBlob(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, `{"round":%d,"us":%d.5},`, i, 1000+i%17)
	}
	for name, j := range map[string]*Journal{"embedded": open(t, Options{}), "external": open(t, Options{URL: external(t).ClientURL()})} {
		ctx := testContext(t)
		if err := j.Artifacts.Pack(ctx, "evidence", []byte(text.String())); err != nil {
			t.Fatal(err)
		}
		if got, err := j.Artifacts.Read(ctx, "evidence"); err != nil || string(got) != text.String() {
			t.Errorf("%s: %d bytes came back of %d: %v", name, len(got), text.Len(), err)
		}
		is, err := j.Artifacts.Stat(ctx, "evidence")
		if err != nil || is.Bytes > uint64(text.Len()/4) {
			t.Errorf("%s: %d bytes are stored as %d: %v", name, text.Len(), is.Bytes, err)
		}
		const looks = "\x1f\x8b, and no gzip file"
		if _, err := j.Artifacts.Put(ctx, "log", strings.NewReader(looks)); err != nil {
			t.Fatal(err)
		}
		if got, err := j.Artifacts.Read(ctx, "log"); err != nil || string(got) != looks {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// If the content of a packed blob differs from the stored content, reading returns an error at the end of the blob.
func TestCorruptPackedBlobIsRefused(t *testing.T) {
	t.Parallel()
	j := open(t, Options{URL: external(t).ClientURL()})
	ctx := testContext(t)
	for _, content := range []string{"one text", "another text"} {
		if err := j.Artifacts.Pack(ctx, content, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	one, err := j.Artifacts.store.GetInfo(ctx, "one text")
	if err != nil {
		t.Fatal(err)
	}
	other, err := j.Artifacts.store.GetInfo(ctx, "another text")
	if err != nil {
		t.Fatal(err)
	}
	// The content of one with the digest of the other.
	file := &chunks{ctx: ctx, of: j.Artifacts, info: &jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: "mixed", Headers: nats.Header{headerEncoding: {"gzip"}}}, Bucket: one.Bucket, NUID: one.NUID, Chunks: one.Chunks, Digest: other.Digest,
	}, sum: sha256.New()}
	plain, err := unpack(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(plain); !errors.Is(err, jetstream.ErrDigestMismatch) {
		t.Errorf("%q, %v", got, err)
	}
}
