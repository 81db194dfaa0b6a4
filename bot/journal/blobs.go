package journal

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Blobs holds large things by name.
type Blobs struct {
	name  string
	store jetstream.ObjectStore
}

// Put stores what r yields under name, in place of what was there, and returns its SHA-256 in hex.
func (b *Blobs) Put(ctx context.Context, name string, r io.Reader) (digest string, err error) {
	info, err := b.store.Put(ctx, jetstream.ObjectMeta{Name: name}, r)
	if err != nil {
		return "", fmt.Errorf("store %s in %s: %w", name, b.name, err)
	}
	return hexDigest(info.Digest)
}

// Get opens the blob. Its reader verifies: at the end, instead of io.EOF, it returns an error if what was read is not what
// was stored. Do not act on the content before.
func (b *Blobs) Get(ctx context.Context, name string) (r io.ReadCloser, digest string, err error) {
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
	return result, digest, nil
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
