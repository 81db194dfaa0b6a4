package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/agent"
	"github.com/kernelgate/kernelgate/runners/work/doctor"
	"github.com/kernelgate/kernelgate/runners/work/search/perform"
)

// gpusFor returns the GPUs that a runner should use.
func gpusFor(spec string) ([]gpus.GPU, error) {
	all, err := gpus.Here(os.Getenv)
	if err != nil {
		return nil, usage.Errorf("--gpus: %w (see kernelgate doctor; --gpus none measures without a GPU)", err)
	}
	picked, err := gpus.Select(all, spec)
	if err != nil {
		return nil, usage.Errorf("--gpus: %w", err)
	}
	return picked, nil
}

// A worker is the runner of one GPU, or the only runner.
type worker struct {
	agent agent.Config
	here  measure.Config
}

// workers creates one runner per GPU. If there is at most one GPU, the runner has the name of the
// host.
func workers(c agent.Config, here measure.Config, picked []gpus.GPU) []worker {
	picked, labels := gpus.Share(picked, c.Labels)
	if len(picked) == 0 {
		if len(c.Labels) == 0 {
			c.Labels = gpus.Labels(nil)
		}
		return []worker{{c, here}}
	}
	var all []worker
	for i, g := range picked {
		w := worker{c, here}
		w.here.GPU, w.agent.Labels = g, labels[i]
		if len(picked) > 1 {
			w.agent.GPU = strconv.Itoa(g.Index)
			w.agent.StateDir = filepath.Join(c.StateDir, "gpu"+w.agent.GPU)
			w.agent.Log, w.here.Log = c.Log.With("gpu", g.Index), here.Log.With("gpu", g.Index)
		}
		all = append(all, w)
	}
	return all
}

// selfTest returns the worker's self-test: on its GPU if it has one.
func (w worker) selfTest() doctor.SelfTest {
	here := w.here
	here.Log = nil // the runner's log has the result
	t := doctor.SelfTest{Kind: gates.DeviceCPU, History: filepath.Join(w.agent.StateDir, "self-tests.json"), Measure: here.Measure}
	if here.GPU.UUID != "" {
		t.Kind, t.Device = gates.DeviceGPU, here.GPU.UUID
	}
	return t
}

// testWorkers runs each worker's self-test and prints the results.
func testWorkers(ctx context.Context, all []worker, stdout io.Writer) error {
	failed := false
	for _, w := range all {
		name, look := "CPU", func() (string, string) { return "", "" }
		if w.here.GPU.UUID != "" {
			lock, err := w.here.GPU.Lock()
			if err != nil {
				return usage.Error{Err: err}
			}
			defer lock.Close()
			watch, err := gpus.WatchGPU(w.here.GPU)
			if err != nil {
				return err
			}
			name = w.here.GPU.String()
			look = func() (string, string) {
				seen, unfit := watch.Look(time.Now())
				return gpuNow(&protocol.Health{GPU: &seen}), unfit
			}
			look()
		}
		scratch, err := os.MkdirTemp("", "kernelgate-self-test")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		// The programs in the sandbox read it as a different user.
		if err := os.Chmod(scratch, 0o755); err != nil {
			return err
		}
		begun := time.Now()
		t := w.selfTest().Run(ctx, scratch)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		now, unfit := look()
		if unfit != "" && t.Passed {
			t.Passed, t.Why = false, unfit
		}
		result := "passed"
		if !t.Passed {
			failed, result = true, "FAILED: "+t.Why
		}
		fmt.Fprintf(stdout, "%s: %s\n", name, result)
		if t.Micros > 0 {
			fmt.Fprintf(stdout, "  %s: %.4g µs", t.Kernel, t.Micros)
			if t.Usual > 0 {
				fmt.Fprintf(stdout, ", usually %.4g µs here", t.Usual)
			}
			fmt.Fprintf(stdout, "; A/A %+.2f %% (%+.2f %% to %+.2f %%); %.1f s\n", 100*t.Difference, 100*t.Low, 100*t.High, time.Since(begun).Seconds())
		}
		if now != "" {
			fmt.Fprintf(stdout, "  %s\n", now)
		}
	}
	if failed {
		return exit(exitError)
	}
	return nil
}

// runWorkers runs all workers until ctx ends, or until one of them fails: then it stops all.
func runWorkers(ctx context.Context, all []worker) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ended sync.WaitGroup
	failures := make([]error, len(all))
	for i, w := range all {
		if w.here.GPU.UUID != "" {
			lock, err := w.here.GPU.Lock()
			if err != nil {
				stop()
				ended.Wait()
				return usage.Error{Err: err}
			}
			defer lock.Close()
			watch, err := gpus.WatchGPU(w.here.GPU)
			if err != nil {
				stop()
				ended.Wait()
				return err
			}
			w.agent.Look = func(now time.Time) (*protocol.GPU, string) {
				seen, unfit := watch.Look(now)
				return &seen, unfit
			}
		}
		if w.agent.Build == nil {
			w.agent.Measure = perform.Measure(w.here)
			test := w.selfTest()
			if err := test.Possible(ctx, os.Getenv); err != nil {
				w.agent.Log.Warn("this runner cannot test itself", "reason", err)
			} else {
				w.agent.SelfTest = test.Run
			}
		}
		ended.Go(func() {
			defer stop()
			failures[i] = agent.Run(ctx, w.agent)
		})
	}
	ended.Wait()
	for _, err := range failures {
		if err != nil {
			return err // the others failed for the same reason, or were stopped
		}
	}
	return nil
}
