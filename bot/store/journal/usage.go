package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Usage says how much one stream stores: one copy, with the subjects and headers of its messages.
type Usage struct {
	Stream   string
	Messages uint64
	Bytes    uint64
	Keep     time.Duration // after which the server deletes a message; 0 means never
	// UntilDone says that a message is deleted when its work is done.
	UntilDone bool
}

// Usage returns how much every stream stores.
func (j *Journal) Usage(ctx context.Context) ([]Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	var all []Usage
	for _, name := range order {
		s, err := j.js.Stream(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("ask how much %s stores: %w", name, err)
		}
		info := s.CachedInfo()
		all = append(all, Usage{Stream: name, Messages: info.State.Msgs, Bytes: info.State.Bytes, Keep: info.Config.MaxAge, UntilDone: info.Config.Retention == jetstream.WorkQueuePolicy})
	}
	return all, nil
}

// A Blob describes one blob of a Blobs store.
type Blob struct {
	Name    string
	Bytes   uint64
	Written time.Time
}

// List returns all blobs.
func (b *Blobs) List(ctx context.Context) ([]Blob, error) {
	list, err := b.store.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", b.name, err)
	}
	all := make([]Blob, len(list))
	for i, o := range list {
		all[i] = Blob{Name: o.Name, Bytes: o.Size, Written: o.ModTime}
	}
	return all, nil
}

// Stat returns one blob, or ErrNotFound.
func (b *Blobs) Stat(ctx context.Context, name string) (Blob, error) {
	o, err := b.store.GetInfo(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return Blob{}, fmt.Errorf("%s in %s: %w", name, b.name, ErrNotFound)
	}
	if err != nil {
		return Blob{}, fmt.Errorf("ask for %s in %s: %w", name, b.name, err)
	}
	return Blob{Name: o.Name, Bytes: o.Size, Written: o.ModTime}, nil
}
