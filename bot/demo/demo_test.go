package demo

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Report(runners.Event) {}

// The demo is the product's promise in one command: real builds, real
// measurement, and the verdicts of the story.
func TestStory(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for half a minute")
	}
	var out strings.Builder
	var verdicts []*gates.Verdict
	right, err := Run(t.Context(), Options{Once: true, Version: "test", Now: time.Now, Getenv: os.Getenv}, &out, silent{}, func(v *gates.Verdict) {
		verdicts = append(verdicts, v)
	})
	if err != nil {
		t.Fatal(err)
	}
	if !right {
		t.Errorf("the story ended otherwise:\n%s", out.String())
	}
	if len(verdicts) != len(story) {
		t.Fatalf("%d verdicts, want %d", len(verdicts), len(story))
	}
	// What was merged is what the next change is measured against.
	if a, b := verdicts[0].Builds[1].Code, verdicts[1].Builds[0].Code; a != b {
		t.Error("stage 2 was not measured against the merged stage 1")
	}
	for _, s := range story {
		if !strings.Contains(out.String(), "✓ "+s.name) {
			t.Errorf("the summary does not name %s:\n%s", s.name, out.String())
		}
	}
}
