package check_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/recordings/recordingstest"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

type nobody struct{}

func (nobody) Report(runners.Event) {}

// A case on a recording at an address is repeated with what the address has, and no value of it is shown.
func TestReplayWithARecordingAtAnAddress(t *testing.T) {
	file := recordingstest.File(t)
	address, fetcher := recordingstest.Serve(t, file)
	r := recordingstest.Open(t, address, file)
	r.Commit("clamp", map[string]string{"k/scale.c": recordingstest.Clamped})
	opt := check.Options{Dir: r.Dir, Base: "HEAD~1", Kernels: []string{"k"}, Fetcher: fetcher, Now: time.Now, Config: measure.Config{Getenv: os.Getenv, Runner: measure.Auto}}
	one := check.One{Shape: "mission", Inputs: "recorded:decode"}
	text, right, err := check.Replay(t.Context(), opt, one, nobody{})
	if err != nil || right || !strings.Contains(text, "4096 of 4096 elements are bad") {
		t.Fatalf("right %v, %v: %s", right, err, text)
	}
	recordingstest.CheckHidden(t, "replay", text)
	opt.Fetcher = nil
	if _, _, err := check.Replay(t.Context(), opt, one, nobody{}); err == nil || !strings.Contains(err.Error(), "this command fetches nothing") {
		t.Errorf("without a fetcher: %v", err)
	}
}
