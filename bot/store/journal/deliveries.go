package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A DeadDelivery is a delivery that was given up, because every attempt to process it failed.
type DeadDelivery struct {
	ID       string    `json:"id"`
	Event    string    `json:"event"`
	Received time.Time `json:"received"`
	Attempts int       `json:"attempts"`
	Error    string    `json:"error"` // of the last attempt
	At       time.Time `json:"at"`
	Seq      uint64    `json:"seq"` // the copy that was given up
}

// deliveryState is the state of a delivery.
type deliveryState struct {
	Seq      uint64 `json:"seq"` // which copy the attempts were made on
	Attempts int    `json:"attempts"`
	Error    string `json:"error,omitempty"`
	Done     bool   `json:"done,omitempty"`
	Dead     bool   `json:"dead,omitempty"` // given up
}

const (
	headerReceived = "Kernelgate-Received"
	headerRevived  = "Kernelgate-Revived"
	headerExpect   = jetstream.ExpectedLastSubjSeqHeader
)

// Delivery ids have no dot, so this cannot be one.
func deadKey(id string) string { return "dead." + id }

// Accept puts d on disk. It reports false for a copy of a delivery that was processed or is waiting to be: after a nil
// error the delivery is safe in either case. A copy of one that was given up is accepted as new.
func (j *Journal) Accept(ctx context.Context, d webhook.Delivery) (bool, error) {
	if err := errors.Join(CheckToken("delivery id", d.ID), CheckToken("event", d.Event)); err != nil {
		return false, fmt.Errorf("accept delivery: %w", err)
	}
	if room := j.nc.MaxPayload() - 4096; int64(len(d.Body)) > room {
		return false, fmt.Errorf("accept delivery %s: its %d bytes are more than the %d that the NATS server takes; raise max_payload there", d.ID, len(d.Body), room)
	}
	ctx, cancel := context.WithTimeout(ctx, j.acceptIn(len(d.Body)))
	defer cancel()
	err := j.commit.put(ctx, deliveryMessage(d, 0))
	j.noteWrite("DELIVERIES", err)
	if err == nil {
		j.notifyAccepted()
		return true, nil
	}
	if !IsConflict(err) {
		return false, fmt.Errorf("accept delivery %s: %w", d.ID, err)
	}
	dead, revision, err := getRecord[DeadDelivery](ctx, j.state, deadKey(d.ID))
	if err != nil || revision == 0 {
		return false, err
	}
	return j.redeliver(ctx, d, dead)
}

// Accepted reports whether a delivery is on disk, processed or not.
func (j *Journal) Accepted(ctx context.Context, event, id string) (bool, error) {
	if err := errors.Join(CheckToken("delivery id", id), CheckToken("event", event)); err != nil {
		return false, fmt.Errorf("look for a delivery: %w", err)
	}
	seq, err := j.lastOf(ctx, j.deliveries, "deliveries."+event+"."+id)
	if err != nil {
		return false, fmt.Errorf("look for delivery %s: %w", id, err)
	}
	return seq > 0, nil
}

// news is the subject on which bots announce deliveries to each other. Nothing is stored there; a
// lost announcement only costs time, because readers also poll.
const news = "deliveries.news"

func (j *Journal) notifyAccepted() {
	j.arrived.notify()
	if !j.Leads() {
		_ = j.nc.Publish(news, nil)
	}
}

// subscribeAccepted makes this process look for deliveries that a different process has accepted.
func (j *Journal) subscribeAccepted() error {
	if !j.external() {
		return nil
	}
	if _, err := j.nc.Subscribe(news, func(*nats.Msg) { j.arrived.notify() }); err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	return nil
}

// acceptIn is the deadline for accepting a delivery, whatever is lost or re-elected meanwhile: 8 s,
// and 9.5 s for the largest. After that GitHub gets an error, before it hangs up after ten seconds,
// and can deliver again.
func (j *Journal) acceptIn(size int) time.Duration {
	return min(j.opt.answerIn*8/5+perByte*time.Duration(size), j.opt.answerIn*19/10)
}

// deliveryMessage returns a message with the condition that the subject's last sequence is expect.
func deliveryMessage(d webhook.Delivery, expect uint64) *nats.Msg {
	m := nats.NewMsg("deliveries." + d.Event + "." + d.ID)
	m.Data = d.Body
	m.Header.Set(headerExpect, strconv.FormatUint(expect, 10))
	m.Header.Set(headerReceived, d.Received.Format(time.RFC3339Nano))
	if expect > 0 {
		m.Header.Set(headerRevived, "1")
	}
	return m
}

func parseDelivery(subject string, header nats.Header, body []byte) (webhook.Delivery, error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 3 {
		return webhook.Delivery{}, fmt.Errorf("subject %q is not deliveries.<event>.<id>", subject)
	}
	received, err := time.Parse(time.RFC3339Nano, header.Get(headerReceived))
	return webhook.Delivery{Event: parts[1], ID: parts[2], Received: received, Body: body}, err
}

// redeliver stores a new copy of a delivery that was given up. It returns false if another process
// has just done so.
func (j *Journal) redeliver(ctx context.Context, d webhook.Delivery, dead DeadDelivery) (bool, error) {
	err := j.commit.put(ctx, deliveryMessage(d, dead.Seq))
	if IsConflict(err) {
		return false, nil
	}
	if err == nil {
		j.notifyAccepted()
		err = j.clearDeadLetter(ctx, d.ID)
	}
	if err != nil {
		return false, fmt.Errorf("revive delivery %s: %w", d.ID, err)
	}
	return true, nil
}

func (j *Journal) clearDeadLetter(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	return j.state.kv.Purge(ctx, deadKey(id))
}

// Dead lists the deliveries that were given up, oldest first.
func (j *Journal) Dead(ctx context.Context) ([]DeadDelivery, error) {
	keys, err := j.state.kv.ListKeysFiltered(ctx, "dead.*")
	if err != nil {
		return nil, fmt.Errorf("list dead deliveries: %w", err)
	}
	defer keys.Stop()
	var list []DeadDelivery
	for key := range keys.Keys() {
		dead, revision, err := getRecord[DeadDelivery](ctx, j.state, key)
		if err != nil {
			return nil, err
		}
		if revision > 0 {
			list = append(list, dead)
		}
	}
	slices.SortFunc(list, func(a, b DeadDelivery) int { return cmp.Compare(a.Seq, b.Seq) })
	return list, nil
}
