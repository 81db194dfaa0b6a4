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
	// pollEvery is how soon a reader finds what another process has written and it was not told of.
	pollEvery = time.Second
	// A page holds no more messages once it has as many bytes.
	pageBytes = 4 << 20
	pageTries = 3
	// answersAhead is more than a page has messages. For each page that is asked for a queue is made as long as this; nats's
	// own is half a megabyte.
	answersAhead = 2048
)

// page reads the first messages of a stream from a sequence on, with "" for those of all subjects, and tells whether there
// are more. The server answers from the stream itself: nothing is left behind there, as a consumer would be for minutes.
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

// holes is errGap where the server that leads has a message which a page lacks in its middle. Any server of a cluster may answer
// for a page. One that is behind, as after its disk was full, is asked again later and costs time; what it left out in the
// middle would never be asked for.
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

// errGap says that the connection was lost in the middle of an answer, or that the server that gave it lacks something.
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
		return once(ctx) // deliveries are up to 25 MiB each: asked for again and again, they would never come
	}
	return askUntilLed(ctx, once)
}

// askPage asks for a page, and waits for all of it.
func (j *Journal) askPage(ctx context.Context, subject string, ask []byte) (p page, err error) {
	answers := j.nc.NewInbox()
	sub, err := j.nc.SubscribeSync(answers)
	if err != nil {
		return p, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails on a closed connection alone
	if err := j.nc.PublishRequest(subject, answers, ask); err != nil {
		return p, err
	}
	last := "0" // each answer names the one before it
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

// A notifier tells readers in this process that there is something new. Whoever is about to look takes hold of heard first.
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
