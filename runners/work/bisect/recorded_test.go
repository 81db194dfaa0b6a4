package bisect_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/recordings/recordingstest"
	"github.com/kernelgate/kernelgate/runners/work/bisect"
)

type silent struct{}

func (silent) Report(runners.Event) {}

// A commit that is wrong on a recording at an address is found; without the recording nothing is judged.
func TestBisectWithARecordingAtAnAddress(t *testing.T) {
	file := recordingstest.File(t)
	address, fetcher := recordingstest.Serve(t, file)
	r := recordingstest.Open(t, address, file)
	r.Commit("words", map[string]string{"README.md": "words\n"})
	r.Commit("clamp", map[string]string{"k/scale.c": recordingstest.Clamped})
	r.Commit("more words", map[string]string{"README.md": "more words\n"})
	opt := bisect.Options{
		Dir: r.Dir, Kernel: "k", Good: "HEAD~3", Bad: "HEAD", Fetcher: fetcher, Now: time.Now, Accuracy: bisect.Accuracy{Delta: 0.05, MaxRounds: 4},
		Config: measure.Config{Getenv: os.Getenv, Runner: measure.Auto},
	}
	found, err := bisect.Run(t.Context(), opt, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if text := found.Text(nil); !strings.Contains(text, "clamp") || !strings.Contains(text, "wrong") {
		t.Errorf("found\n%s", text)
	}
	opt.Fetcher = nil
	if _, err := bisect.Run(t.Context(), opt, silent{}); err == nil || !strings.Contains(err.Error(), "cannot be judged") || !strings.Contains(err.Error(), "this command fetches nothing") {
		t.Errorf("without a fetcher: %v", err)
	}
}
