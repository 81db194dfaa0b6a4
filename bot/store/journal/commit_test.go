package journal

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

func TestGroupCommit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		size      int
		stored    []int // of the group, stored before
		wantBatch bool
	}{
		{"few go one by one", batchFrom - 1, nil, false},
		{"many go as a batch", batchFrom, nil, true},
		{"largest group", groupMax, nil, true},
		{"copies do not take the others with them", batchFrom + 4, []int{0, 7, batchFrom + 3}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := open(t, Options{})
			ctx := testContext(t)
			group := make([]*write, tt.size)
			for i := range group {
				d := webhook.Delivery{ID: fmt.Sprint("d", i), Event: "push", Body: []byte("{}")}
				group[i] = &write{msg: deliveryMessage(d, 0), done: make(chan error, 1)}
			}
			before := make(map[int]bool)
			for _, i := range tt.stored {
				before[i] = true
				accept(t, j, webhook.Delivery{ID: fmt.Sprint("d", i), Body: []byte("{}")})
			}

			j.commit.write(group)

			for i, w := range group {
				if err := next(t, w.done); IsConflict(err) != before[i] || err != nil && !before[i] {
					t.Errorf("message %d (stored before: %v): %v", i, before[i], err)
				}
				msg, err := j.deliveries.GetLastMsgForSubject(ctx, w.msg.Subject)
				if err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				if inBatch := msg.Header.Get("Nats-Batch-Id") != ""; inBatch != tt.wantBatch {
					t.Errorf("message %d in a batch: %v, want %v", i, inBatch, tt.wantBatch)
				}
			}
			info, err := j.deliveries.Info(ctx)
			if err != nil || info.State.Msgs != uint64(tt.size) {
				t.Errorf("%d stored, want %d (%v)", info.State.Msgs, tt.size, err)
			}
		})
	}
}

// An answer that is lost costs its own caller a second attempt, and nobody else anything: neither who came with it nor who
// comes after.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		group int
	}{{"alone", 1}, {"among few", batchFrom - 1}, {"of a batch", batchFrom}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, external(t))
			j := p.open(t, Options{answerIn: 8 * time.Second})
			lost := make(chan struct{})
			p.losing(func(message []byte) bool {
				select {
				case <-lost:
					return false
				default:
				}
				if !bytes.Contains(message, []byte(`"stream":"DELIVERIES"`)) {
					return false
				}
				close(lost)
				return true
			})
			group := make([]*write, tt.group)
			for i := range group {
				d := webhook.Delivery{ID: fmt.Sprint("d", i), Event: "push", Body: []byte("{}")}
				group[i] = &write{msg: deliveryMessage(d, 0), done: make(chan error, 1)}
			}
			type answer struct {
				from int
				err  error
			}
			answers := make(chan answer, len(group))
			for i, w := range group {
				go func() { answers <- answer{i, next(t, w.done)} }()
			}
			go j.commit.write(group)
			next(t, lost)
			accept(t, j, webhook.Delivery{ID: "later"})
			have := 0
			if tt.group < batchFrom { // the others need not wait
				for have < tt.group-1 {
					if a := next(t, answers); a.err != nil {
						t.Errorf("message %d: %v", a.from, a.err)
					}
					have++
				}
			}
			select {
			case a := <-answers:
				t.Errorf("message %d has an answer (%v), and it was lost", a.from, a.err)
			default:
			}
			for ; have < tt.group; have++ { // sent again, and refused or not
				if a := next(t, answers); a.err != nil && !IsConflict(a.err) {
					t.Errorf("message %d: %v", a.from, a.err)
				}
			}
			if accept(t, j, webhook.Delivery{ID: "d0"}) {
				t.Error("what was stored is not known")
			}
		})
	}
}

// The committer's loop goes on while an answer is missing.
func TestLostAnswerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	p := newProxy(t, external(t))
	j := p.open(t, Options{answerIn: 8 * time.Second})
	lost := make(chan struct{})
	p.losing(func(message []byte) bool {
		if !bytes.Contains(message, []byte(`"stream":"DELIVERIES"`)) {
			return false
		}
		select {
		case <-lost:
			return false
		default:
			close(lost)
			return true
		}
	})
	first := make(chan bool, 1)
	go func() { first <- accept(t, j, webhook.Delivery{ID: "first"}) }()
	next(t, lost)
	for i := range 3 {
		accept(t, j, webhook.Delivery{ID: fmt.Sprint("later", i)})
	}
	select {
	case <-first:
		t.Error("the later ones waited for the first")
	default:
	}
	next(t, first) // and it is safe: accept has seen no error
}
