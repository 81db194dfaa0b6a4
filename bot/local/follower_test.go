package local

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners"
)

// A tape records the runner's progress.
type tape struct{ seen []runners.Event }

func (t *tape) Report(e runners.Event) { t.seen = append(t.seen, e) }

// TestFollower checks that the runner's lines are read correctly, however the pipe splits them.
func TestFollower(t *testing.T) {
	const log = `{"level":"INFO","msg":"runner starts","name":"local"}
{"level":"INFO","msg":"performance: measuring, round 2 of 6, about 4s left","kernel":"sdpa_cpu"}
{"level":"INFO","msg":"job measured: yes","job":"pr-1-1-ab-1","kernel":"sdpa_cpu"}
{"level":"ERROR","msg":"measuring: panicked","kernel":"sdpa_cpu"}
panic: not JSON
`
	for _, size := range []int{1, 7, 100, len(log)} {
		var kept strings.Builder
		live := &tape{}
		f := &follower{log: &kept, live: live}
		for at := 0; at < len(log); at += size {
			if _, err := f.Write([]byte(log[at:min(at+size, len(log))])); err != nil {
				t.Fatal(err)
			}
		}
		if kept.String() != log {
			t.Errorf("in pieces of %d the log is\n%s", size, kept.String())
		}
		if len(live.seen) != 1 || live.seen[0] != (runners.Event{Gate: "performance", Text: "measuring, round 2 of 6, about 4s left"}) {
			t.Errorf("in pieces of %d the progress is %v", size, live.seen)
		}
	}
}
