package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	// errLocked says that another process has the journal's folder open.
	errLocked = errors.New("the journal is in use by another process")
	// ErrConflict says that a run has moved on since the writer last looked.
	ErrConflict = errors.New("the run has a newer event")
	// ErrNotFound says that there is no such thing in the journal.
	ErrNotFound = errors.New("not in the journal")
	// errClosed says that the journal was closed.
	errClosed = errors.New("the journal is closed")
)

// How long things are kept. Everything else is kept forever.
const (
	keepDeliveries = 30 * 24 * time.Hour // GitHub redelivers for 3 days
	keepLeases     = 30 * 24 * time.Hour
	KeepBundles    = 7 * 24 * time.Hour
)

// declare creates the streams, or brings those of an older version up to date.
func (j *Journal) declare(ctx context.Context) error {
	if j.external() {
		// Every server with JetStream answers this, with or without a leader.
		ask, cancel := context.WithTimeout(ctx, j.opt.answerIn)
		_, err := askUntilLed(ask, func(ctx context.Context) (*jetstream.AccountInfo, error) { return j.js.AccountInfo(ctx) })
		cancel()
		if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
			return j.declareError("streams", err)
		}
	}
	if !j.opt.ReadOnly {
		defer j.takeSetup(ctx)()
	}
	if err := j.nothingLost(ctx); err != nil {
		return err
	}
	common := jetstream.StreamConfig{Storage: jetstream.FileStorage, AllowDirect: true}

	deliveries := common
	deliveries.Name, deliveries.Subjects = "DELIVERIES", []string{"deliveries.*.*"}
	deliveries.MaxAge = keepDeliveries
	deliveries.AllowAtomicPublish = true

	jobs := common
	jobs.Name, jobs.Subjects = "JOBS", []string{"jobs.*.*"}
	jobs.Retention = jetstream.WorkQueuePolicy

	events := common
	events.Name, events.Subjects = "EVENTS", []string{"events.*"}
	events.DenyDelete, events.DenyPurge = true, true
	// Not compressed: a NATS server that is killed after it has compressed a block, and before the
	// next block has a message, continues to write in the compressed one and cannot read the stream.
	events.Compression = jetstream.NoCompression

	for _, s := range []struct {
		into *jetstream.Stream
		cfg  jetstream.StreamConfig
	}{{&j.deliveries, deliveries}, {&j.jobs, jobs}, {&j.events, events}} {
		var err error
		if *s.into, err = j.ensure(ctx, s.cfg); err != nil {
			return j.declareError("stream "+s.cfg.Name, err)
		}
	}

	// A mark is written after its delivery and kept as long, so it outlives it.
	for _, b := range []struct {
		into *bucket
		name string
		ttl  time.Duration
	}{{&j.state, "DELIVERY_STATE", keepDeliveries}, {&j.leases, "LEASES", keepLeases}, {&j.marks, "MARKS", 0}} {
		// The client's function for buckets would let every server of a cluster answer.
		_, err := j.ensure(ctx, jetstream.StreamConfig{
			Name: "KV_" + b.name, Subjects: []string{"$KV." + b.name + ".>"}, Storage: jetstream.FileStorage, MaxAge: b.ttl,
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, AllowRollup: true, DenyDelete: true, AllowDirect: !j.external(),
		})
		if err != nil {
			return j.declareError("bucket "+b.name, err)
		}
		var kv jetstream.KeyValue
		err = j.again(ctx, func(ctx context.Context) (err error) { kv, err = j.js.KeyValue(ctx, b.name); return err })
		if err != nil {
			return j.declareError("bucket "+b.name, err)
		}
		*b.into = bucket{kv, j.opt.answerIn, func(err error) { j.noteWrite("KV_"+b.name, err) }}
	}

	for _, b := range []struct {
		into **Blobs
		name string
		ttl  time.Duration
	}{{&j.Bundles, "BUNDLES", KeepBundles}, {&j.Artifacts, "ARTIFACTS", 0}} {
		// The client's function for object stores would let every server of a cluster answer. A
		// lagging one would report that a new blob does not exist.
		stream, err := j.ensure(ctx, jetstream.StreamConfig{
			Name: objects + b.name, Subjects: []string{"$O." + b.name + ".C.>", "$O." + b.name + ".M.>"}, Storage: jetstream.FileStorage, MaxAge: b.ttl,
			MaxBytes: -1, Discard: jetstream.DiscardNew, AllowRollup: true, AllowDirect: !j.external(),
		})
		if err != nil {
			return j.declareError("object store "+b.name, err)
		}
		var store jetstream.ObjectStore
		err = j.again(ctx, func(ctx context.Context) (err error) { store, err = j.js.ObjectStore(ctx, b.name); return err })
		if err != nil {
			return j.declareError("object store "+b.name, err)
		}
		*b.into = &Blobs{name: strings.ToLower(b.name), store: store, j: j, stream: stream}
	}
	return nil
}

// order is the order in which the streams are created.
var order = []string{"DELIVERIES", "JOBS", "EVENTS", "KV_DELIVERY_STATE", "KV_LEASES", "KV_MARKS", objects + "BUNDLES", objects + "ARTIFACTS"}

// nothingLost refuses a server that has the later streams without the earlier ones, because it
// could not read one of them. Creating that stream again would hide data that may still be on its
// disk.
func (j *Journal) nothingLost(ctx context.Context) error {
	missing := ""
	for _, name := range order {
		err := j.again(ctx, func(ctx context.Context) error { _, err := j.js.Stream(ctx, name); return err })
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			missing = cmp.Or(missing, name)
		case err != nil:
			return j.declareError("stream "+name, err)
		case missing != "":
			return fmt.Errorf("open journal: the NATS server has %s and has lost %s: its log says why; restore the journal from a backup", name, missing)
		}
	}
	return nil
}

func (j *Journal) external() bool { return j.opt.URL != "" }

// ensure creates or updates a stream with the configured number of copies, and never removes
// copies.
func (j *Journal) ensure(ctx context.Context, cfg jetstream.StreamConfig) (s jetstream.Stream, err error) {
	err = j.again(ctx, func(ctx context.Context) error {
		cfg.Replicas = max(j.opt.Replicas, 1)
		there, err := j.js.Stream(ctx, cfg.Name)
		if err == nil {
			is := there.CachedInfo().Config
			if cfg.Replicas = max(cfg.Replicas, is.Replicas); j.opt.ReadOnly || upToDate(is, cfg) {
				s = there
				return nil
			}
		} else if !errors.Is(err, jetstream.ErrStreamNotFound) || j.opt.ReadOnly {
			return err
		}
		s, err = j.js.CreateOrUpdateStream(ctx, cfg)
		return err
	})
	return s, err
}

// objects is the prefix of the client for the streams of object stores.
const objects = "OBJ_"

// again repeats an operation until it has an answer: a cluster without a leader gives none, or
// reports that it is unavailable.
func (j *Journal) again(ctx context.Context, do func(context.Context) error) error {
	if !j.external() {
		return do(ctx)
	}
	whole, cancel := context.WithTimeout(ctx, j.opt.ledIn)
	defer cancel()
	for {
		err := untilLed(whole, func() error {
			try, cancel := context.WithTimeout(whole, j.opt.answerIn)
			defer cancel()
			return do(try)
		})
		if !errors.Is(err, context.DeadlineExceeded) || whole.Err() != nil {
			return err
		}
		j.opt.Log.Warn("the NATS server gives no answer; it is asked again", "error", err)
	}
}

// What a server answers that cannot keep so many copies.
const (
	errNoPeers      = 10005 // no suitable peers for placement
	errNotClustered = 10074 // replicas > 1 not supported in non-clustered mode
)

func (j *Journal) copiesNeed() string {
	return fmt.Sprintf("%d copies need as many servers in the cluster, each with JetStream and room on its disk: add servers, or ask for fewer replicas", j.opt.Replicas)
}

func (j *Journal) declareError(what string, err error) error {
	next := "check the server's log"
	if j.opt.ReadOnly && errors.Is(err, jetstream.ErrStreamNotFound) {
		next = "no bot has stored anything there: check the address or the folder"
	}
	if j.external() && errors.Is(err, context.DeadlineExceeded) {
		next = "check that most servers of the cluster run and reach each other"
	}
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && (api.ErrorCode == errNoPeers || api.ErrorCode == errNotClustered) {
		next = j.copiesNeed()
	}
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		next = "enable JetStream on that server and for this account"
	}
	return fmt.Errorf("open journal: set up %s: %w; %s", what, err, next)
}

// CheckToken refuses a name that has a special meaning as a part of a subject.
func CheckToken(what, s string) error {
	valid := s != "" && len(s) <= 128 && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
	if !valid {
		return fmt.Errorf("%s %q: use 1 to 128 letters, digits, - and _", what, s)
	}
	return nil
}

// IsConflict recognises a write that was refused because the subject's last sequence is not the expected one.
func IsConflict(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// A bucket holds JSON values by key.
type bucket struct {
	kv       jetstream.KeyValue
	answerIn time.Duration
	note     func(error) // of each write
}

// errGarbled is returned for a record that no later attempt can read.
var errGarbled = errors.New("not written by this version or an older one")

// getRecord reads a JSON value; a missing one is the zero value with revision 0.
func getRecord[T any](ctx context.Context, b bucket, key string) (rec T, revision uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.answerIn)
	defer cancel()
	entry, err := askUntilLed(ctx, func(ctx context.Context) (jetstream.KeyValueEntry, error) { return b.kv.Get(ctx, key) })
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return rec, 0, nil
	}
	if err != nil {
		return rec, 0, fmt.Errorf("read %s/%s: %w", b.kv.Bucket(), key, err)
	}
	if err := json.Unmarshal(entry.Value(), &rec); err != nil {
		return rec, 0, fmt.Errorf("read %s/%s: %w: %w", b.kv.Bucket(), key, errGarbled, err)
	}
	return rec, entry.Revision(), nil
}

func putRecord[T any](ctx context.Context, b bucket, key string, rec T) error {
	ctx, cancel := context.WithTimeout(ctx, b.answerIn)
	defer cancel()
	data, err := json.Marshal(rec)
	if err == nil {
		err = untilLed(ctx, func() error { _, err := b.kv.Put(ctx, key, data); return err })
		b.note(err)
	}
	if err != nil {
		return fmt.Errorf("write %s/%s: %w", b.kv.Bucket(), key, err)
	}
	return nil
}

// writeRecord replaces the value of that revision, 0 for none, and returns the new revision. If
// another writer was faster, IsConflict reports true for the error.
func writeRecord[T any](ctx context.Context, b bucket, key string, rec T, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.answerIn)
	defer cancel()
	data, err := json.Marshal(rec)
	if err != nil {
		return 0, err
	}
	var now uint64
	err = untilLed(ctx, func() (err error) {
		if revision == 0 {
			now, err = b.kv.Create(ctx, key, data)
		} else {
			now, err = b.kv.Update(ctx, key, data, revision)
		}
		return err
	})
	b.note(err)
	return now, err
}
