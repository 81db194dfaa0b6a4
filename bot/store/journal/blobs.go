package journal

import (
	"cmp"
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

	"github.com/nats-io/nats.go/jetstream"
)

// Blobs holds large things by name.
type Blobs struct {
	name   string
	store  jetstream.ObjectStore
	j      *Journal
	stream jetstream.Stream
}

// blobPatience bounds the way of one blob where the caller sets no bound: a bundle of 256 MiB on a slow line. (The client's
// own bound is five seconds for the whole.)
const blobPatience = 30 * time.Minute

// Put stores what r yields under name, in place of what was there, and returns its SHA-256 in hex.
func (b *Blobs) Put(ctx context.Context, name string, r io.Reader) (digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, blobPatience)
	defer cancel()
	whole := &wholeReads{from: r, within: unanswered * b.j.opt.answerIn}
	ctx, whole.stalled = context.WithCancelCause(ctx)
	defer whole.stalled(nil)
	info, err := b.store.Put(ctx, jetstream.ObjectMeta{Name: name}, whole)
	if whole.watch != nil {
		whole.watch.Stop()
	}
	if err != nil {
		return "", fmt.Errorf("store %s in %s: %w", name, b.name, cmp.Or(context.Cause(ctx), err))
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
	return blob{content, cancel}, digest, nil
}

// open is the blob as the server that leads has it. The client reads the content by a consumer, which a cluster puts on any
// server that has a copy: one that is behind would never come to the end.
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

// chunks reads a blob piece by piece from the server that leads.
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

// unanswered is after how many times Options.answerIn a blob is given up whose pieces nobody has acknowledged.
const unanswered = 3

var errUnanswered = errors.New("the server does not acknowledge it; try again")

// wholeReads fills every read as far as the content goes. The store makes a message of each read and lets 4,000 be under
// way: an HTTP body, which comes in small pieces, overruns that and is refused.
//
// It also notices that the store waits in vain: where the server that leads is lost, or its disk is full, the acknowledgements of
// what was under way never come.
type wholeReads struct {
	from    io.Reader
	within  time.Duration
	stalled context.CancelCauseFunc
	watch   *time.Timer
}

func (r *wholeReads) Read(p []byte) (n int, err error) {
	if r.watch != nil {
		r.watch.Stop() // the content may take its time
	}
	for n < len(p) && err == nil {
		var more int
		more, err = r.from.Read(p[n:])
		n += more
	}
	r.watch = time.AfterFunc(r.within, func() { r.stalled(errUnanswered) })
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
