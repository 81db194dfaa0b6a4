package tune_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/recordings/recordingstest"
	"github.com/kernelgate/kernelgate/runners/work/tune"
)

type silent struct{}

func (silent) Report(runners.Event) {}

// A candidate that is wrong on a recording at an address only is refused. Neither the log nor the results have a recorded value.
func TestTuneWithARecordingAtAnAddress(t *testing.T) {
	file := recordingstest.File(t)
	address, fetcher := recordingstest.Serve(t, file)
	r := recordingstest.Open(t, address, file)
	opt := tune.Options{
		Dir: r.Dir, Kernel: "k", Proposer: "grid", Seed: 5, Candidates: 10, Budget: 20 * time.Second, Epsilon: 0.01, MaxRounds: 6, Results: t.TempDir(),
		Fetcher: fetcher, Now: time.Now, Config: measure.Config{Getenv: os.Getenv, Runner: measure.Auto},
	}
	s, err := tune.Run(t.Context(), opt, silent{}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(s.Folder, "search.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), `"gate":"correctness"`) || !strings.Contains(string(log), "recorded:decode") {
		t.Errorf("the log is\n%s", log)
	}
	if recordingstest.CheckFiles(t, s.Folder) < 1 {
		t.Error("the search has left no files")
	}
	opt.Fetcher = nil
	if _, err := tune.Run(t.Context(), opt, silent{}, func(string) {}); err == nil || !strings.Contains(err.Error(), "this command fetches nothing") {
		t.Errorf("without a fetcher: %v", err)
	}
}
