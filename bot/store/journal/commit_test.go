package journal

import (
	"fmt"
	"testing"
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
				d := Delivery{ID: fmt.Sprint("d", i), Event: "push", Body: []byte("{}")}
				group[i] = &write{msg: d.message(0), done: make(chan error, 1)}
			}
			before := make(map[int]bool)
			for _, i := range tt.stored {
				before[i] = true
				accept(t, j, Delivery{ID: fmt.Sprint("d", i), Body: []byte("{}")})
			}

			j.commit.write(group)

			for i, w := range group {
				if err := next(t, w.done); isConflict(err) != before[i] || err != nil && !before[i] {
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
