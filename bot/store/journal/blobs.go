package journal

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Blobs stores large values by name.
type Blobs struct {
	name   string
	store  jetstream.ObjectStore
	j      *Journal
	stream jetstream.Stream
}

// blobPatience bounds the transfer of one blob if the caller sets no deadline: a bundle of 256 MiB
// on a slow line. (The client's default is five seconds for the whole transfer.)
const blobPatience = 30 * time.Minute

// Put stores the content of r under name, replaces an existing blob, and returns the SHA-256 in
// hex.
func (b *Blobs) Put(ctx context.Context, name string, r io.Reader) (digest string, err error) {
	return b.put(ctx, jetstream.ObjectMeta{Name: name}, r)
}

// Pack compresses data and stores it under name. Get and Read return the original data. Pack is for JSON,
// which shrinks to a quarter. (The server's own compression of streams is off: see declare.)
func (b *Blobs) Pack(ctx context.Context, name string, data []byte) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(data); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	_, err := b.put(ctx, jetstream.ObjectMeta{Name: name, Headers: nats.Header{headerEncoding: {"gzip"}}}, &packed)
	return err
}

const headerEncoding = "Kernelgate-Encoding"

func (b *Blobs) put(ctx context.Context, meta jetstream.ObjectMeta, r io.Reader) (digest string, err error) {
	name := meta.Name
	ctx, cancel := context.WithTimeout(ctx, blobPatience)
	defer cancel()
	whole := &wholeReads{from: r, within: unanswered * b.j.opt.answerIn}
	ctx, whole.stalled = context.WithCancelCause(ctx)
	defer whole.stalled(nil)
	info, err := b.store.Put(ctx, meta, whole)
	b.j.noteWrite(b.name, err)
	if whole.watch != nil {
		whole.watch.Stop()
	}
	if err != nil {
		return "", fmt.Errorf("store %s in %s: %w", name, b.name, cmp.Or(context.Cause(ctx), err))
	}
	return hexDigest(info.Digest)
}

// Get opens a blob. Its reader verifies the content: at the end it returns an error instead of
// io.EOF if the content differs from the stored content. Do not act on the content before that. The
// digest of a packed blob is the digest of its compressed form.
func (b *Blobs) Get(ctx context.Context, name string) (r io.ReadCloser, digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, blobPatience)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	info, content, err := b.open(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, "", fmt.Errorf("%s in %s: %w", name, b.name, ErrNotFound)
	}
	if err == nil {
		digest, err = hexDigest(info.Digest)
	}
	if err != nil {
		return nil, "", fmt.Errorf("open %s in %s: %w", name, b.name, err)
	}
	if info.Headers.Get(headerEncoding) == "gzip" {
		if content, err = unpack(content); err != nil {
			return nil, "", fmt.Errorf("unpack %s in %s: %w", name, b.name, err)
		}
	}
	return blob{content, cancel}, digest, nil
}

// unpack reads a compressed blob. After the end of the compressed data it reads once more, so that it
// gets the error of a damaged blob.
func unpack(content io.ReadCloser) (io.ReadCloser, error) {
	plain, err := gzip.NewReader(content)
	if err != nil {
		return nil, errors.Join(err, content.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{plain, content}, nil
}

// open reads the metadata of a blob from the leading server. The client would read the content by a
// consumer, which a cluster puts on any server with a copy: if that server lags, the read would
// never end.
func (b *Blobs) open(ctx context.Context, name string) (*jetstream.ObjectInfo, io.ReadCloser, error) {
	if !b.j.external() {
		result, err := b.store.Get(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		info, err := result.Info()
		return info, result, err
	}
	asking, cancel := context.WithTimeout(ctx, b.j.opt.answerIn)
	defer cancel()
	info, err := askUntilLed(asking, func(ctx context.Context) (*jetstream.ObjectInfo, error) { return b.store.GetInfo(ctx, name) })
	if err != nil {
		return nil, nil, err
	}
	return info, &chunks{ctx: ctx, of: b, info: info, sum: sha256.New()}, nil
}

// chunks reads a blob piece by piece from the leading server.
type chunks struct {
	ctx  context.Context
	of   *Blobs
	info *jetstream.ObjectInfo
	sum  hash.Hash
	seq  uint64 // of the last piece
	read uint32 // how many
	rest []byte // of the last one
}

func (c *chunks) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.read == c.info.Chunks {
			if got := "SHA-256=" + base64.URLEncoding.EncodeToString(c.sum.Sum(nil)); got != c.info.Digest {
				return 0, fmt.Errorf("read %s from %s: %w", c.info.Name, c.of.name, jetstream.ErrDigestMismatch)
			}
			return 0, io.EOF
		}
		m, err := c.of.j.askLeader(c.ctx, c.of.stream, map[string]any{"seq": c.seq + 1, "next_by_subj": "$O." + c.info.Bucket + ".C." + c.info.NUID})
		if err != nil {
			return 0, fmt.Errorf("read piece %d of %d of %s from %s: %w", c.read+1, c.info.Chunks, c.info.Name, c.of.name, err)
		}
		c.seq, c.rest = m.Sequence, m.Data
		c.read++
		c.sum.Write(m.Data)
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *chunks) Close() error { return nil }

// Read returns the whole blob.
func (b *Blobs) Read(ctx context.Context, name string) ([]byte, error) {
	r, _, err := b.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Closing a blob releases its deadline.
type blob struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b blob) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// unanswered is the number of Options.answerIn after which an upload without acknowledgements
// fails.
const unanswered = 3

var errUnanswered = errors.New("the server does not acknowledge it; try again")

// wholeReads fills every read as far as the content allows. The store makes a message of each read
// and allows 4,000 in flight: an HTTP body, which comes in small pieces, would exceed that and be
// refused.
//
// It also notices a store that waits in vain: if the leading server is lost, or its disk is full,
// the acknowledgements of messages in flight never come.
type wholeReads struct {
	from    io.Reader
	within  time.Duration
	stalled context.CancelCauseFunc
	watch   *time.Timer
}

func (r *wholeReads) Read(p []byte) (n int, err error) {
	if r.watch != nil {
		r.watch.Stop() // the content may be slow
	}
	for n < len(p) && err == nil {
		var more int
		more, err = r.from.Read(p[n:])
		n += more
	}
	r.watch = time.AfterFunc(r.within, func() { r.stalled(errUnanswered) })
	return n, err
}

// Delete removes a blob. A missing blob is not an error.
func (b *Blobs) Delete(ctx context.Context, name string) error {
	if err := b.store.Delete(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("delete %s from %s: %w", name, b.name, err)
	}
	return nil
}

// hexDigest converts the object store's notation to that of sha256sum.
func hexDigest(s string) (string, error) {
	sum, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(s, "SHA-256="))
	if err != nil || len(sum) != 32 {
		return "", fmt.Errorf("digest %q is not a SHA-256", s)
	}
	return hex.EncodeToString(sum), nil
}
