// Package journal is the bot's only source of truth: what GitHub sent, the work to do and its
// results, on disk before any reader sees them. It stores and does not decide: deliveries, events,
// jobs and lease records are bytes with an identity.
//
// # Where it is kept
//
// In NATS JetStream. By default the server runs inside this process, reached through a pipe, with no port open and with
// SyncAlways: it answers a write after fsync. Options.URL names an external server or cluster instead. The code is the same,
// but the external server must then be durable: set sync_interval: always there. Options.Replicas says how many servers of a
// cluster keep a copy; opening never removes copies. Reads that a decision depends on, blobs included, go to the leading
// server: a follower may not have the newest write yet, and never gets it while its disk is full. Pages come from any server;
// they may be behind, and the reader continues later.
//
//	DELIVERIES  webhooks as they came                deliveries.<event>.<id>   kept for 30 days
//	JOBS        work for runners, gone when done     jobs.<most wanted label>.<id>
//	EVENTS      facts about runs, for good           events.<run>
//	DELIVERY_STATE, LEASES                           what became of each delivery, and how far they are done; who holds which job, and who leads
//	MARKS       about the whole journal              which losses were accepted, whether it was restored
//	BUNDLES, ARTIFACTS                               source for runners, what they bring back
//
// # Deliveries: processed, not seen
//
// GitHub's redelivery has the id of the first delivery. Each id has its own subject, and a delivery is stored on the condition
// that its subject is empty, so the server refuses a second copy for as long as it keeps the first. A refused copy is dropped
// if the first was processed or will be. If the first was given up, the copy is stored and processed. The journal marks a
// delivery as processed after its handler has returned, and writes its position every second, from which the next process
// continues. A crash in between runs the handler again, so handlers must be idempotent. There are no acknowledgements to
// lose: deliveries are read from the stream by their sequence, and a failed one is read again when its next attempt is due.
//
// # Jobs: stored here, decided elsewhere
//
// A job is bytes under an id, and so is the record of its lease. Every change of a lease record is conditional on the revision
// that the writer has seen. Package jobs knows who waits, who holds which job, and whose turn it is.
//
// # Several processes
//
// Several processes may share a journal on an external server. All of them accept deliveries and read; one leads (Campaign).
// Only the leader writes events, hands out jobs and processes deliveries. Its epoch is a fence against earlier leaders.
//
// # Readers leave nothing behind
//
// The server allows 1,000 consumers of a stream and keeps one for minutes after its reader is gone. Deliveries, jobs and what
// Follow reads come in pages straight from the stream; a replay, which may be long, has a consumer and deletes it.
//
// # Group commit
//
// The server needs one fsync for each message: it does not group concurrent publishes. That is fast on a good disk, and far
// too slow where an fsync takes 5 ms. So deliveries that arrive during a commit wait and are committed together: fewer than 16
// one by one, more as an atomic batch, which costs four fsyncs whatever its size. A single delivery is committed at once. A
// lost answer costs its own caller a second attempt, and delays nobody else. BenchmarkAccept and BenchmarkAcceptSteady measure
// this; run them on an idle machine, since every fsync also waits for a free core.
package journal

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"
)

// Options says where the journal is and which deadlines it has. The zero value of every field
// except Dir or URL is useful.
type Options struct {
	Dir      string // where the embedded server keeps its files
	URL      string // an external server instead, or several of a cluster, separated by commas; Dir is then unused
	MaxStore int64  // how many bytes the embedded server may keep; 0 means the free space of its disk, less a twentieth of the disk
	Replicas int    // how many servers of the cluster keep a copy, 1 to 5; 0 keeps existing copies, and makes 1 copy of new streams

	// ReadOnly changes nothing: it reads a copy of Dir, or creates no stream at URL.
	ReadOnly bool
	// Monitors are the addresses at which the external servers report their disk usage (http_port
	// in their configuration).
	Monitors []string
	// NATS holds connection options for URL: credentials, certificates.
	NATS []nats.Option

	Retry   []time.Duration // pauses before a failed delivery is tried again; when they are used up it is given up
	LeadFor time.Duration   // how long the leader may be silent before another process takes the lead; 4 s
	Name    string          // name of this process among those on one server, for people
	Version string          // semantic version of this program; "" for a build without one
	Address string          // where others reach this process; processes on standby know the leader's address

	Log *slog.Logger
	Now func() time.Time

	// How long the server may take to answer; 5 s. A delivery is sent again after half of that, so
	// that Accept has an answer well before GitHub hangs up after ten seconds, even if a batch
	// comes first.
	answerIn time.Duration
	// How long writes may fail on a disk with space before Stuck reports it; 10 s.
	stuckIn time.Duration
	// How long a cluster that has just started may take to answer and to elect its leaders; a
	// minute.
	ledIn time.Duration
}

func (o Options) withDefaults() Options {
	if o.Retry == nil {
		o.Retry = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute}
	}
	o.LeadFor = cmp.Or(o.LeadFor, 4*time.Second)
	o.answerIn = cmp.Or(o.answerIn, 5*time.Second)
	o.ledIn = cmp.Or(o.ledIn, time.Minute)
	o.stuckIn = cmp.Or(o.stuckIn, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// A Journal is an open journal. Its methods may be called from many goroutines.
type Journal struct {
	Bundles   *Blobs // source trees on their way to runners
	Artifacts *Blobs // what runners deliver

	opt    Options
	copied string         // a temporary folder with the copy that ReadOnly reads
	lock   *dirLock       // nil with an external server
	srv    *server.Server // nil with an external server
	nc     *nats.Conn
	js     jetstream.JetStream

	deliveries jetstream.Stream
	jobs       jetstream.Stream
	events     jetstream.Stream
	state      bucket // the states of deliveries
	leases     bucket
	marks      bucket // what holds for the whole journal

	commit   *committer
	tails    *lru.Cache[string, tail] // the last events of runs
	accepted atomic.Pointer[losses]
	ended    lastEvent
	arrived  notifier // deliveries
	appended notifier // events
	lead     lead
	written  written

	closing  sync.Once
	closeErr error
}

// Open starts the embedded server, or connects to the external one, and makes sure that the streams exist.
func Open(ctx context.Context, o Options) (_ *Journal, err error) {
	if (o.Dir == "") == (o.URL == "") {
		return nil, errors.New("open journal: give a folder for the embedded server or the URL of an external one, and not both")
	}
	if o.Dir != "" && o.Replicas > 1 {
		return nil, fmt.Errorf("open journal: the embedded server cannot keep %d copies (give the URLs of a cluster)", o.Replicas)
	}
	j, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = j.Close()
		}
	}()
	if err := j.declare(ctx); err != nil {
		return nil, err
	}
	if j.tails, err = lru.New[string, tail](maxTails); err != nil {
		return nil, err
	}
	if err := j.readLosses(ctx); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j.commit = newCommitter(j.nc, j.js, j.opt.answerIn/2)
	return j, j.subscribeAccepted()
}

// dial starts the embedded server, or connects to the external one.
func dial(ctx context.Context, o Options) (j *Journal, err error) {
	j = &Journal{opt: o.withDefaults()}
	if o.Dir != "" {
		err = j.embed()
	} else {
		err = j.connect(ctx)
	}
	if err == nil {
		err = checkServer(j.nc, o.URL)
	}
	if err == nil {
		if j.js, err = jetstream.New(j.nc); err != nil {
			err = fmt.Errorf("open journal: %w", err)
		}
	}
	if err != nil {
		_ = j.Close()
		return nil, err
	}
	return j, nil
}

// embed starts the server in this process and connects to it through memory.
func (j *Journal) embed() (err error) {
	if j.opt.ReadOnly {
		if err := j.copyForReading(); err != nil {
			return err
		}
	}
	if j.lock, err = lockDir(j.opt.Dir); err != nil {
		return err
	}
	if err := checkAccess(j.opt.Dir, unix.R_OK|unix.W_OK); err != nil {
		return err
	}
	limit := j.opt.MaxStore
	if limit == 0 {
		if limit, err = storeLimit(j.opt.Dir); err != nil {
			return err
		}
	}
	if j.srv, err = startServer(j.opt.Dir, true, limit, serverLog{j.opt.Log, j.noteCritical}); err != nil {
		return err
	}
	if j.nc, err = nats.Connect("", nats.InProcessServer(j.srv), nats.Name("kernelgate"), nats.SyncQueueLen(answersAhead)); err != nil {
		return fmt.Errorf("open journal %s: connect to the embedded server: %w", j.opt.Dir, err)
	}
	return nil
}

const (
	pingEvery     = 2 * time.Second
	reconnectWait = 100 * time.Millisecond
)

// connect waits for a server as long as for an elected leader: after a power cut, bots and servers
// start together.
func (j *Journal) connect(ctx context.Context) (err error) {
	opts := append([]nats.Option{nats.Name("kernelgate"), nats.SyncQueueLen(answersAhead), nats.MaxReconnects(-1),
		// Leave a silent server within seconds, not after the client's six minutes.
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2), nats.ReconnectWait(reconnectWait), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			j.opt.Log.Warn("the connection to NATS", "error", err)
		})}, j.opt.NATS...)
	for begun, told := time.Now(), false; ; told = true {
		j.nc, err = nats.Connect(j.opt.URL, opts...)
		if err == nil || !unreachable(err) || time.Since(begun) > j.opt.ledIn || ctx.Err() != nil {
			break
		}
		if !told {
			j.opt.Log.Warn("no NATS server answers yet; they are tried again", "url", j.opt.URL, "error", err)
		}
		select {
		case <-time.After(reconnectWait):
		case <-ctx.Done():
		}
	}
	if err != nil {
		return fmt.Errorf("open journal: connect to NATS at %s: %w; check the address and the credentials, or leave the URL out to use the embedded server", j.opt.URL, err)
	}
	if j.nc.MaxPayload() < maxPayload {
		j.opt.Log.Warn("the NATS server takes messages smaller than GitHub sends: raise max_payload to 32MB",
			"url", j.opt.URL, "max_payload", j.nc.MaxPayload())
	}
	return nil
}

// ServerCertificate returns the certificate of the NATS server that the journal is connected to; nil if there is no connection,
// or if it does not use TLS.
func (j *Journal) ServerCertificate() *x509.Certificate {
	state, err := j.nc.TLSConnectionState()
	if err != nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	return state.PeerCertificates[0]
}

// unreachable reports whether no server answered. A server that refuses would refuse again.
func unreachable(err error) bool {
	var dns *net.DNSError
	var network net.Error
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF) ||
		errors.As(err, &dns) || errors.As(err, &network)
}

// Close finishes running commits, closes the connection and stops the embedded server.
func (j *Journal) Close() error {
	j.closing.Do(func() { j.closeErr = j.close() })
	return j.closeErr
}

func (j *Journal) close() error {
	if j.commit != nil {
		j.commit.close()
	}
	j.saveLast()
	var err error
	if j.nc != nil {
		if !j.nc.IsClosed() {
			if err = j.nc.Flush(); err != nil {
				err = fmt.Errorf("close journal: %w", err)
			}
		}
		j.nc.Close()
	}
	if j.srv != nil {
		j.srv.Shutdown()
		j.srv.WaitForShutdown()
	}
	err = errors.Join(err, j.lock.release())
	if j.copied != "" {
		err = errors.Join(err, os.RemoveAll(j.copied))
	}
	return err
}
