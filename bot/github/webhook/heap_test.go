//go:build !race

// One goroutine reads 20,000 payloads, which takes ten times as long under the race
// detector: make test runs this by itself.

package webhook_test

import (
	"runtime"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// TestMutatedPayloadsLeaveLittleBehind keeps every event and error of 20,000
// payloads, and looks at the heap; FuzzMutated looks at as many as there is time for.
func TestMutatedPayloadsLeaveLittleBehind(t *testing.T) {
	const n = 20_000
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	m := newMutator(t)
	kept := make([]any, 0, n)
	failed, read := 0, int64(0)
	before := heap()
	for seed := range uint64(n) {
		event, body := m.draw(seed)
		read += int64(len(body))
		got, err := webhook.Decode(event, body)
		checkWeight(t, got, err)
		if err != nil {
			failed++
			kept = append(kept, err)
			continue
		}
		kept = append(kept, got)
	}
	each := (heap() - before) / n
	runtime.KeepAlive(kept)
	t.Logf("%d payloads of %d MB, %d refused: %d bytes stay of each", n, read>>20, failed, each)
	if failed < n/5 || failed > n*4/5 {
		t.Errorf("%d of %d were refused: the mutations miss", failed, n)
	}
	if most := int64(1 << 10); each > most {
		t.Errorf("%d bytes stay of each, more than %d", each, most)
	}
}
