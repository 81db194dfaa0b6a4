package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Unhandled is when the oldest delivery came that nobody has handled or given up yet, and zero where there is none. Every
// process may ask: where none leads, those that stand by know best.
func (j *Journal) Unhandled(ctx context.Context) (time.Time, error) {
	done, _, err := getRecord[cursor](ctx, j.state, placeKey)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask how far deliveries are done: %w", err)
	}
	list, _, err := j.page(ctx, "DELIVERIES", "", done.Next, 1)
	if err != nil || len(list) == 0 {
		return time.Time{}, err
	}
	return list[0].at, nil
}

// healthWithin is how long the servers have to say how they are.
const healthWithin = 5 * time.Second

// Copies is how the copies of one stream on a cluster are: the leader's and those that have all that it has, those that are
// behind, and those on servers that are not there.
type Copies struct {
	Stream                string
	Current, Behind, Away int
}

// Health is how the streams are kept that nothing may be lost of; none of an embedded server, or of one that stands alone. A
// stream that nobody leads has no copy that is current.
func (j *Journal) Health(ctx context.Context) ([]Copies, error) {
	// A question to a server that dies over it has no answer.
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	var all []Copies
	for _, s := range []jetstream.Stream{j.deliveries, j.jobs, j.events} {
		info, err := s.Info(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask how %s is kept: %w", s.CachedInfo().Config.Name, err)
		}
		if info.Cluster == nil {
			continue
		}
		c := Copies{Stream: info.Config.Name}
		if info.Cluster.Leader != "" {
			c.Current++
		}
		for _, r := range info.Cluster.Replicas {
			switch {
			case r.Offline:
				c.Away++
			case r.Current:
				c.Current++
			default:
				c.Behind++
			}
		}
		all = append(all, c)
	}
	return all, nil
}
