package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Events are chained by hashes, so that a reader notices a damaged or a missing one. Each event has its own hash and the hash
// of the event before it in its run. (A chain over all runs would let only one event be written at a time.) Events are never
// deleted, so their sequences have no gap: that shows a missing last event of a run. What is missing at the very end is
// noticed by the ledger, which knows the last event that it has read, and by the file of the last event (lastFile).

// headerChain holds the hash of the event before it in its run and the hash of the event, separated by a dot. The first event
// of a run has nothing before the dot.
const headerChain = "Kernelgate-Chain"

// ErrDamaged says that events cannot be read any more, or are not those that were written.
var ErrDamaged = errors.New("the journal is damaged")

// hashOf returns the hash of an event that follows the one with the hash `before`.
func hashOf(before, subject string, header nats.Header, data []byte) string {
	h := sha256.New()
	for _, part := range []string{before, subject, header.Get(headerKind), header.Get(headerAt), header.Get(headerVersion), header.Get(headerEpoch)} {
		fmt.Fprintf(h, "%d %s ", len(part), part)
	}
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// link adds the hashes to a new event.
func link(m *nats.Msg, before string) (hash string) {
	hash = hashOf(before, m.Subject, m.Header, m.Data)
	m.Header.Set(headerChain, before+"."+hash)
	return hash
}

// hashes returns the hashes that an event has, and whether its own one is right.
func (m stored) hashes() (before, own string, intact bool) {
	before, own, _ = strings.Cut(m.header.Get(headerChain), ".")
	return before, own, own != "" && own == hashOf(before, m.subject, m.header, m.data)
}

func (m stored) intact() bool { _, _, intact := m.hashes(); return intact }

// A tail is the last event of a run.
type tail struct {
	seq  uint64
	hash string
}

// maxTails bounds the memory for the last events of runs. A run's events come close together.
const maxTails = 8192

// before returns the hash of the last event of a run, if that is the one the writer has seen.
func (j *Journal) before(ctx context.Context, run string, expect uint64) (string, error) {
	if expect == 0 {
		return "", nil
	}
	if t, ok := j.tails.Get(run); ok && t.seq == expect {
		return t.hash, nil
	}
	m, err := j.last(ctx, j.events, "events."+run)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence != expect {
		return "", ErrConflict
	}
	if err != nil {
		return "", err
	}
	_, own, _ := storedOf(m).hashes()
	return own, nil
}

func storedOf(m *jetstream.RawStreamMsg) stored {
	return stored{subject: m.Subject, header: m.Header, data: m.Data, seq: m.Sequence, at: m.Time}
}

// A Finding is an event that is damaged or missing, or that follows one of its run which is.
type Finding struct {
	Seq  uint64 `json:"seq"`
	Run  string `json:"run,omitempty"` // "" if unknown
	What string `json:"what"`
}

func (f Finding) String() string {
	if f.Run == "" {
		return fmt.Sprintf("event %d %s", f.Seq, f.What)
	}
	return fmt.Sprintf("event %d of run %s %s", f.Seq, f.Run, f.What)
}

const (
	isMissing  = "is missing"
	isDamaged  = "is damaged"
	isUnlinked = "does not follow the one before it in its run"
)

// A chain checks events in the order in which they are read.
type chain struct {
	accepted map[uint64]bool   // findings that somebody has accepted
	next     uint64            // the expected sequence; 0 while one run is read
	tails    map[string]string // hashes of the last events of runs that were read from their beginning
	whole    bool              // the runs are read from their beginning
	last     string            // the hash that the last event has
}

// until returns the events up to last that were not read.
func (c *chain) until(last uint64) (found []Finding) {
	for ; c.next <= last; c.next++ {
		if !c.accepted[c.next] {
			found = append(found, Finding{Seq: c.next, What: isMissing})
		}
	}
	return found
}

// check returns what is wrong with an event and with the sequences before it.
func (c *chain) check(m stored) (found []Finding) {
	if c.next > 0 {
		found = c.until(m.seq - 1)
		c.next = m.seq + 1
	}
	run := strings.TrimPrefix(m.subject, "events.")
	before, own, intact := m.hashes()
	c.last = own
	if !intact {
		found = append(found, Finding{m.seq, run, isDamaged})
	} else if c.whole && before != c.tails[run] {
		found = append(found, Finding{m.seq, run, isUnlinked})
	}
	if c.whole {
		c.tails[run] = own
	}
	return slices.DeleteFunc(found, func(f Finding) bool { return c.accepted[f.Seq] })
}

// confirm returns findings as an error: errGap if the leading server of a cluster has the events, and a different one lags.
func (j *Journal) confirm(ctx context.Context, found []Finding) error {
	if !j.external() {
		return damage(found)
	}
	for _, f := range found {
		m, err := j.message(ctx, j.events, f.Seq)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("read event %d: %w", f.Seq, err)
		}
		if err == nil && f.What != isUnlinked && storedOf(m).intact() {
			return fmt.Errorf("%w: %s on one server, and the leading one has it", errGap, f)
		}
	}
	return damage(found)
}

// damage returns findings as an error, nil if there are none.
func damage(found []Finding) error {
	if len(found) == 0 {
		return nil
	}
	const most = 5
	var list []string
	for _, f := range found[:min(most, len(found))] {
		list = append(list, f.String())
	}
	if more := len(found) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: %s", ErrDamaged, strings.Join(list, ", "))
}

// A Report is the result of Verify.
type Report struct {
	Events   uint64    `json:"events"` // how many were read
	Last     uint64    `json:"last"`   // sequence of the last one
	LastHash string    `json:"last_hash,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	Blobs    int       `json:"blobs"`            // how many were read
	Damage   []string  `json:"damage,omitempty"` // what else is damaged
}

// Err returns what is damaged as ErrDamaged, or nil.
func (r Report) Err() error {
	if err := damage(r.Findings); err != nil || len(r.Damage) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", ErrDamaged, strings.Join(r.Damage, ", "))
}

// Verify reads all events and checks that each is the one that was written, and that none is missing. It returns an error only
// if it cannot read to the end. Events that are written meanwhile may be left out.
func (j *Journal) Verify(ctx context.Context) (r Report, err error) {
	last, err := j.lastOf(ctx, j.events, "events.>")
	if err != nil {
		return r, fmt.Errorf("verify the journal: %w", err)
	}
	if info, err := j.events.Info(ctx); err != nil {
		return r, fmt.Errorf("verify the journal: %w", err)
	} else if info.State.LastSeq > last { // the last ones cannot be read
		last = info.State.LastSeq
	}
	c := j.newChain(1)
	c.whole, c.tails = true, map[string]string{}
	for c.next <= last {
		list, _, err := j.page(ctx, "EVENTS", "", c.next, followAhead)
		if err != nil {
			return r, fmt.Errorf("verify the journal after event %d: %w", c.next-1, err)
		}
		if len(list) == 0 || list[0].seq > last {
			r.Findings = append(r.Findings, c.until(last)...)
		}
		for _, m := range list {
			if m.seq > last {
				break
			}
			r.Findings = append(r.Findings, c.check(m)...)
			r.Last, r.LastHash = m.seq, c.last
			r.Events++
		}
	}
	return r, nil
}

// VerifyBlobs reads all blobs, and adds those to the report that are not what was stored.
func (j *Journal) VerifyBlobs(ctx context.Context, r *Report) error {
	for _, b := range []*Blobs{j.Bundles, j.Artifacts} {
		list, err := b.List(ctx)
		if err != nil {
			return err
		}
		for _, blob := range list {
			content, _, err := b.Get(ctx, blob.Name)
			if err == nil {
				_, err = io.Copy(io.Discard, content)
				err = errors.Join(err, content.Close())
			}
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, ErrNotFound): // deleted since it was listed
			case err != nil:
				r.Damage = append(r.Damage, err.Error())
			default:
				r.Blobs++
			}
		}
	}
	return nil
}

// losses are the findings that somebody has accepted, in the bucket of marks.
type losses struct {
	Seqs []uint64 `json:"seqs"`
	seqs map[uint64]bool
}

const lossKey = "accepted_losses"

func (j *Journal) readLosses(ctx context.Context) error {
	l, _, err := getRecord[losses](ctx, j.marks, lossKey)
	if err != nil {
		return err
	}
	l.seqs = map[uint64]bool{}
	for _, seq := range l.Seqs {
		l.seqs[seq] = true
	}
	j.accepted.Store(&l)
	return nil
}

// AcceptLosses verifies the journal, and records what it finds as accepted: readers then leave it out. It reports whether
// anything was lost.
func (j *Journal) AcceptLosses(ctx context.Context) (bool, error) {
	cut := j.CheckEnd(ctx)
	if cut != nil && !errors.Is(cut, ErrDamaged) {
		return false, cut
	}
	r, err := j.Verify(ctx)
	if err != nil {
		return false, err
	}
	if err := j.forgetEnd(); err != nil {
		return false, err
	}
	if len(r.Findings) == 0 {
		return cut != nil, nil
	}
	now := losses{Seqs: slices.Clone(j.accepted.Load().Seqs)}
	for _, f := range r.Findings {
		now.Seqs = append(now.Seqs, f.Seq)
		j.opt.Log.Warn("a loss in the journal is accepted", "event", strconv.FormatUint(f.Seq, 10), "run", f.Run, "what", f.What)
	}
	if err := putRecord(ctx, j.marks, lossKey, now); err != nil {
		return true, err
	}
	return true, j.readLosses(ctx)
}
