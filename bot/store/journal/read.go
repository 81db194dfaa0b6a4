package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stored is a message of a stream.
type stored struct {
	subject string
	header  nats.Header
	data    []byte
	seq     uint64
	at      time.Time
}

const (
	// pollEvery is how soon a reader finds a write of another process without an announcement.
	pollEvery = time.Second
	// A page holds no more messages once it has as many bytes.
	pageBytes = 4 << 20
	pageTries = 3
	// answersAhead is more than a page has messages. Each request for a page allocates a queue of
	// this length; the default of nats is half a megabyte.
	answersAhead = 2048
)

// page reads the first messages of a stream from a sequence on, of one subject or ("") of all, and
// reports whether there are more. The server answers from the stream itself, so nothing is left
// behind there, as a consumer would be for minutes.
func (j *Journal) page(ctx context.Context, stream, subject string, from uint64, most int) (list []stored, more bool, err error) {
	for try := 1; ; try++ {
		p, err := j.pageOnce(ctx, stream, subject, from, most)
		if err == nil && subject == "" && j.external() {
			err = j.holes(ctx, stream, from, p.list)
		}
		if err == nil || ctx.Err() != nil || try == pageTries {
			return p.list, p.more, err
		}
	}
}

// holes returns errGap if the leading server has a message that is missing in the middle of a page.
// Any server of a cluster may answer for a page. Messages that a lagging server lacks at the end
// are only read later; messages that it lacks in the middle would never be read.
func (j *Journal) holes(ctx context.Context, stream string, from uint64, list []stored) error {
	s := map[string]jetstream.Stream{"EVENTS": j.events, "DELIVERIES": j.deliveries}[stream]
	if s == nil {
		return nil // jobs are deleted when they are done
	}
	next := max(from, 1)
	for _, m := range list {
		if m.seq > next {
			has, err := j.askLeader(ctx, s, map[string]any{"seq": next, "next_by_subj": s.CachedInfo().Config.Subjects[0]})
			if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
				return err
			}
			if err == nil && has.Sequence < m.seq {
				return errGap
			}
		}
		next = m.seq + 1
	}
	return nil
}

// A page is some messages, and whether there are more.
type page struct {
	list []stored
	more bool
}

// errGap says that the connection was lost during an answer, or that the server that answered lacks
// a message.
var errGap = errors.New("a part of the answer is missing")

func (j *Journal) pageOnce(ctx context.Context, stream, subject string, from uint64, most int) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	ask, err := json.Marshal(struct {
		Seq      uint64 `json:"seq"`
		Subject  string `json:"next_by_subj,omitempty"`
		Batch    int    `json:"batch"`
		MaxBytes int    `json:"max_bytes"`
	}{max(from, 1), subject, most, pageBytes})
	if err != nil {
		return page{}, err
	}
	once := func(ctx context.Context) (page, error) { return j.askPage(ctx, "$JS.API.DIRECT.GET."+stream, ask) }
	if !j.external() || stream == "DELIVERIES" {
		return once(ctx) // deliveries have up to 25 MiB each: repeated from the start, they would never arrive
	}
	return askUntilLed(ctx, once)
}

// askPage requests a page, and waits for all of it.
func (j *Journal) askPage(ctx context.Context, subject string, ask []byte) (p page, err error) {
	answers := j.nc.NewInbox()
	sub, err := j.nc.SubscribeSync(answers)
	if err != nil {
		return p, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only on a closed connection
	if err := j.nc.PublishRequest(subject, answers, ask); err != nil {
		return p, err
	}
	last := "0" // each answer names the previous one
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return page{}, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
			s := stored{subject: m.Header.Get(jetstream.SubjectHeader), header: m.Header, data: m.Data}
			seq := m.Header.Get(jetstream.SequenceHeader)
			var errSeq, errTime error
			s.seq, errSeq = strconv.ParseUint(seq, 10, 64)
			s.at, errTime = time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
			if err := errors.Join(errSeq, errTime); err != nil {
				return page{}, fmt.Errorf("reading the server's answer: %w", err)
			}
			if m.Header.Get(jetstream.LastSequenceHeader) != last {
				return page{}, errGap
			}
			last, p.list = seq, append(p.list, s)
		case "404": // there is none
			return page{}, nil
		case "204": // the end
			if m.Header.Get(jetstream.LastSequenceHeader) != last {
				return page{}, errGap
			}
			p.more = m.Header.Get("Nats-Num-Pending") != "0"
			return p, nil
		case "503":
			return page{}, nats.ErrNoResponders
		default:
			return page{}, fmt.Errorf("the server answers %s %s", status, m.Header.Get("Description"))
		}
	}
}

// A notifier wakes the readers in this process. A reader takes the channel before it looks for
// something new, so that it misses nothing.
type notifier struct {
	mu sync.Mutex
	c  chan struct{}
}

func (b *notifier) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *notifier) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
	}
	b.c = nil
}
