package journal

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Blobs holds large things by name.
type Blobs struct {
	name  string
	store jetstream.ObjectStore
}

// blobPatience bounds the way of one blob where the caller sets no bound: a bundle of 256 MiB on a slow line. (The client's
// own bound is five seconds for the whole.)
const blobPatience = 30 * time.Minute

// Put stores what r yields under name, in place of what was there, and returns its SHA-256 in hex.
func (b *Blobs) Put(ctx context.Context, name string, r io.Reader) (digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, blobPatience)
	defer cancel()
	info, err := b.store.Put(ctx, jetstream.ObjectMeta{Name: name}, wholeReads{r})
	if err != nil {
		return "", fmt.Errorf("store %s in %s: %w", name, b.name, err)
	}
	return hexDigest(info.Digest)
}

// Get opens the blob. Its reader verifies: at the end, instead of io.EOF, it returns an error if what was read is not what
// was stored. Do not act on the content before.
func (b *Blobs) Get(ctx context.Context, name string) (r io.ReadCloser, digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, blobPatience)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	result, err := b.store.Get(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, "", fmt.Errorf("%s in %s: %w", name, b.name, ErrNotFound)
	}
	if err != nil {
		return nil, "", fmt.Errorf("open %s in %s: %w", name, b.name, err)
	}
	info, err := result.Info()
	if err == nil {
		digest, err = hexDigest(info.Digest)
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("open %s in %s: %w", name, b.name, err), result.Close())
	}
	return blob{result, cancel}, digest, nil
}

// Read is the whole blob.
func (b *Blobs) Read(ctx context.Context, name string) ([]byte, error) {
	r, _, err := b.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// A blob that is closed lets go of its deadline.
type blob struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b blob) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// wholeReads fills every read as far as the content goes. The store makes a message of each read and lets 4,000 be under
// way: an HTTP body, which comes in small pieces, overruns that and is refused.
type wholeReads struct{ from io.Reader }

func (r wholeReads) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.from.Read(p[n:])
		n += more
	}
	return n, err
}

// Delete removes the blob; one that is not there is no error.
func (b *Blobs) Delete(ctx context.Context, name string) error {
	if err := b.store.Delete(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("delete %s from %s: %w", name, b.name, err)
	}
	return nil
}

// hexDigest turns the object store's notation into the one that sha256sum prints.
func hexDigest(s string) (string, error) {
	sum, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(s, "SHA-256="))
	if err != nil || len(sum) != 32 {
		return "", fmt.Errorf("digest %q is not a SHA-256", s)
	}
	return hex.EncodeToString(sum), nil
}
