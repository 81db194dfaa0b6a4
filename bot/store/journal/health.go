package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Unhandled returns when the oldest unprocessed delivery arrived, or the zero time. Every process
// may ask: while no process leads, those on standby know best.
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

// healthWithin is the deadline for the servers' reports.
const healthWithin = 5 * time.Second

// Copies describes the copies of one stream in a cluster: those that are current, those that lag,
// and those on servers that are offline.
type Copies struct {
	Stream                string
	Current, Behind, Away int
}

// Health describes the copies of the streams that must not lose anything. An embedded or single
// server has no such copies. A stream without a leader has no current copy.
func (j *Journal) Health(ctx context.Context) ([]Copies, error) {
	// A server that dies meanwhile never answers.
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
