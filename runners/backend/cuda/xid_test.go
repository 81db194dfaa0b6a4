package cuda

import (
	"errors"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
)

// heard is Xids that wait to be told, and an error behind them.
type heard struct {
	xids  []nvml.Xid
	err   error
	asked []time.Duration
}

func (h *heard) Next(patience time.Duration) (nvml.Xid, bool, error) {
	h.asked = append(h.asked, patience)
	if len(h.xids) == 0 {
		return 0, false, h.err
	}
	x := h.xids[0]
	h.xids = h.xids[1:]
	return x, true, nil
}

func TestFailuresNameTheirXids(t *testing.T) {
	for _, c := range []struct {
		name string
		kind gates.FailureKind
		from *heard
		want string
	}{
		{"a page fault", "illegal-address", &heard{xids: []nvml.Xid{31}}, "died; the GPU reported Xid 31 (GPU memory page fault)"},
		{"one Xid again and again, then another", "crash", &heard{xids: []nvml.Xid{13, 13, 13, 43}}, "died; the GPU reported Xid 13 (graphics engine exception), Xid 43 (GPU stopped processing)"},
		{"none", "timeout", &heard{}, "died"},
		{"events end badly", "crash", &heard{err: errors.New("lost")}, "died"},
		{"no GPU fault", "inputs", &heard{xids: []nvml.Xid{31}}, "died"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &gates.Failure{Kind: c.kind, Detail: "died"}
			nameXids(f, c.from)
			if f.Detail != c.want {
				t.Errorf("got  %s\nwant %s", f.Detail, c.want)
			}
			for i, patience := range c.from.asked {
				if (patience > 0) != (i == 0) {
					t.Errorf("question %d waits %v", i, patience)
				}
			}
		})
	}
	f := &gates.Failure{Kind: gates.FailureCrash, Detail: "died"}
	if nameXids(f, nil); f.Detail != "died" {
		t.Errorf("without a source: %s", f.Detail)
	}
}
