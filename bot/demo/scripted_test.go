package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/bot/local/localtest"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

// TestMain lets the test's program act as the runner, because the bot starts its own program as the
// runner.
func TestMain(m *testing.M) {
	localtest.RunnerMain(measured)
	os.Exit(m.Run())
}

// script returns the result of each stage on real hardware.
func script(source string) string {
	for name, says := range map[string]string{
		"stage0": "speed 1", "stage1": "speed 8", "stage2": "speed 60", "stage3a": "speed 60.1", "stage3b": "speed 70 WRONG",
	} {
		if text, err := shipped(name + ".c"); err == nil && text == source {
			return says
		}
	}
	return "BROKEN: no stage of the story"
}

// measured measures on this machine's CPU, except for the story's kernel, which would take minutes.
func measured(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
	if _, err := os.Stat(filepath.Join(os.TempDir(), "measure-all")); err != nil && job.Manifest.Name == "sdpa_cpu" {
		return measureScripted(ctx, job, dir, p)
	}
	if err := held("begin"); err != nil {
		return runners.Measured{}, err
	}
	p.Report(runners.Event{Gate: gates.GateBuild, Text: "the test holds it"})
	if err := held("go-on"); err != nil {
		return runners.Measured{}, err
	}
	return measure.Config{Name: "local"}.Measure(ctx, job, dir, p)
}

// held waits until the test opens the pipe, if the test made one.
func held(name string) error {
	f, err := os.Open(filepath.Join(os.TempDir(), name))
	if err != nil {
		return nil
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func measureScripted(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
	// This is the format of the product's runner.
	fmt.Fprintf(os.Stderr, `{"level":"INFO","msg":"performance: scripted","kernel":%q}`+"\n", job.Manifest.Name)
	return scripted.Runner{Script: script, Nanos: 2e7}.Measure(ctx, job, dir, p)
}
