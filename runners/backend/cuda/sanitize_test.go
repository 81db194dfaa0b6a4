package cuda

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// sanitized is a backend without a GPU, whose compute-sanitizer follows a script:
// $tool and $log are what it is told, and $request is the worker's.
func sanitized(t *testing.T, script string) *Backend {
	t.Helper()
	manifestYAML, err := os.ReadFile(filepath.Join(faulty, "kernel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", manifestYAML)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "compute-sanitizer")
	text := `#!/bin/sh
if [ "$1" = --version ]; then printf 'NVIDIA (R) Compute Sanitizer\nVersion 2025.3.1.0 (build 36400806)\n'; exit; fi
while [ "${1#--}" != "$1" ]; do
  case $1 in --tool) tool=$2 ;; --log-file) log=$2 ;; esac
  shift 2
done
request=$2
recorded=` + recordedDir(t) + "\n" + script + "\n"
	if err := runnable.Write(program, []byte(text)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "san.cu"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	close(done)
	known := toolchain.Kernel{Symbol: "reference", Name: "reference"}
	for _, p := range m.ReferenceParameters() {
		known.Params = append(known.Params, toolchain.Param{Offset: p.Offset, Size: p.Size})
	}
	return &Backend{
		job: runners.Job{Manifest: m, ManifestText: string(manifestYAML), Trusted: dir, Candidate: runners.Side{Dir: dir, Variant: "clean"}},
		config: Config{
			Scratch: t.TempDir(), Program: []string{"worker-program"}, LaunchTimeout: time.Second,
			Getenv: func(name string) string {
				return map[string]string{"KERNELGATE_COMPUTE_SANITIZER": program, "PATH": "/usr/bin:/bin"}[name]
			},
		},
		rng: rand.New(rand.NewPCG(1, 2)), compiling: map[string]*compilation{"reference": {done: done, cubins: []*toolchain.Cubin{{Path: "reference.cubin", Kernels: []toolchain.Kernel{known}}}}},
		sides: map[runners.Role]*side.Built{runners.Candidate: {Image: "candidate.cubin", Symbols: map[string]string{"faulty": "faulty"}, Variant: "clean"}, runners.Baseline: {Image: "baseline.cubin"}},
	}
}

func recordedDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../build/inspect/testdata/compute")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func gateOf(tools ...policy.Sanitizer) *policy.SanitizeGate {
	return &policy.SanitizeGate{
		Shapes: policy.Shapes{Names: []string{"small"}}, Distributions: []distribution.Kind{"normal", "large"}, SecretCases: 1, Tools: tools,
	}
}

// What the tools printed on a GPU becomes findings of the gate, and the worker is
// asked for all cases at once, with its arrays apart and without the baseline.
func TestSanitize(t *testing.T) {
	b := sanitized(t, `
case $tool in
memcheck) cp "$recorded/memcheck-clean.txt" "$log" ;;
racecheck) cp "$recorded/racecheck-race.txt" "$log"; exit 99 ;;
initcheck) cp "$recorded/initcheck-uninit.txt" "$log"; exit 99 ;;
synccheck) cp "$recorded/synccheck-barrier.txt" "$log"; exit 1 ;;
esac`)
	s, err := b.Sanitize(t.Context(), gateOf(policy.Memcheck, policy.Racecheck, policy.Initcheck, policy.Synccheck), silent{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"", "a race between write and read of shared memory in san.cu:8 and :11 (4,000 hazards)",
		"a read of 4 bytes of global memory that nobody wrote in san.cu:29 (1,000 times)", "a barrier that not all threads of the warp reach in san.cu:35 (16 times)"}
	for i, run := range s.Tools {
		got := ""
		for _, f := range run.Findings {
			got += f.String()
		}
		if got != want[i] || run.Failure != nil || run.Skipped != "" || run.With != "compute-sanitizer 2025.3.1.0" {
			t.Errorf("%+v\nwant %s", run, want[i])
		}
	}
	if len(s.Cases) != 3 || s.Cases[1].Distribution != "large" || !s.Cases[2].Secret {
		t.Errorf("cases %+v", s.Cases)
	}
	text, err := os.ReadFile(filepath.Join(b.config.Scratch, "sanitize-memcheck.json"))
	if err != nil {
		t.Fatal(err)
	}
	var request worker.Request
	if err := json.Unmarshal(text, &request); err != nil {
		t.Fatal(err)
	}
	if request.Task != worker.TaskLaunch || !request.Apart || request.Launch != 1 || len(request.Cases) != 3 || request.Baseline != nil || request.Candidate.Image != "candidate.cubin" {
		t.Errorf("request %s", text)
	}
}

// What a tool cannot look at is never clean: the host's lack where the base's own
// reference cannot be looked at either, the candidate's failure where it can.
func TestSanitizeTroubles(t *testing.T) {
	const broken = `echo '========= Error: Device not supported' >"$log"; exit 1`
	for _, c := range []struct {
		name, script  string
		skipped, fail string
	}{
		{"the host's lack", broken, "memcheck does not work on this host: Error: Device not supported", ""},
		{"the candidate's doing", `case $(cat "$request") in *'"candidate":'*) ` + broken + ` ;; esac
cp "$recorded/memcheck-clean.txt" "$log"`, "", "the kernel could not be looked at: Error: Device not supported"},
		{"no summary", `case $(cat "$request") in *'"candidate":'*) exit 0 ;; esac
cp "$recorded/memcheck-clean.txt" "$log"`, "", "it ended without a summary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := sanitized(t, c.script).Sanitize(t.Context(), gateOf(policy.Memcheck), silent{})
			if err != nil {
				t.Fatal(err)
			}
			run := s.Tools[0]
			if (run.Skipped != "") != (c.skipped != "") || !strings.Contains(run.Skipped, c.skipped) {
				t.Errorf("skipped %q", run.Skipped)
			}
			if (run.Failure != nil) != (c.fail != "") || run.Failure != nil && (run.Failure.Kind != "tool" || !strings.Contains(run.Failure.Detail, c.fail)) {
				t.Errorf("failure %+v", run.Failure)
			}
		})
	}
	t.Run("not installed", func(t *testing.T) {
		b := sanitized(t, "")
		b.config.Getenv = func(string) string { return "" }
		s, err := b.Sanitize(t.Context(), gateOf(policy.Memcheck), silent{})
		if err != nil || !strings.Contains(s.Skipped, "install compute-sanitizer") {
			t.Errorf("%+v, %v", s, err)
		}
	})
	t.Run("out of time", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		s, err := sanitized(t, "sleep 600").Sanitize(ctx, gateOf(policy.Memcheck, policy.Racecheck), silent{})
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range s.Tools {
			if run.Failure == nil || run.Failure.Kind != "timeout" {
				t.Errorf("%+v", run)
			}
		}
		p, err := policy.Parse("p.yaml", []byte("version: 1\ngates: {sanitize: {shapes: [small], distributions: [normal, large], tools: [memcheck], missing_tool: inform}}\nrules: [{name: default}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		e := &gates.Evidence{Kernel: "faulty", Shapes: []gates.Shape{{Name: "small"}}, Candidate: &gates.Build{OK: true}, Sanitize: s}
		if v := gates.Judge(p, "p.yaml", e); v.Outcome != gates.Defer || v.Reason != gates.ReasonInconclusive {
			t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("somebody pushed again"))
		if s, err := sanitized(t, "sleep 600").Sanitize(ctx, gateOf(policy.Memcheck), silent{}); err == nil {
			t.Errorf("a cancelled run left evidence: %+v", s)
		}
	})
}

// The tools that were begun beside the comparison are the ones that the gate hears,
// and its time limit ends them.
func TestToolsBegunAhead(t *testing.T) {
	gate := gateOf(policy.Memcheck, policy.Racecheck)
	b := sanitized(t, `echo "$tool" >>"$request.started"; cp "$recorded/memcheck-clean.txt" "$log"`)
	var err error
	if b.tools, err = b.beginTools(t.Context(), gate); err != nil {
		t.Fatal(err)
	}
	s, err := b.Sanitize(t.Context(), gate, silent{})
	if err != nil || len(s.Tools) != 2 || len(s.Cases) != 3 || s.Tools[1].Tool != "racecheck" || s.Tools[1].Failure != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if text, err := os.ReadFile(filepath.Join(b.config.Scratch, "sanitize-memcheck.json.started")); string(text) != "memcheck\n" {
		t.Errorf("memcheck was started as %q (%v), want it once", text, err)
	}

	b = sanitized(t, `exec sleep 1000`)
	if b.tools, err = b.beginTools(t.Context(), gate); err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s, err = b.Sanitize(within, gate, silent{})
	if err != nil || s.Tools[0].Failure == nil || s.Tools[0].Failure.Kind != gates.FailureTimeout {
		t.Errorf("%+v, %v: want the gate's time limit as a failure", s, err)
	}
}

// Nothing runs beside a round, whether or not anybody heard the tools.
func TestToolsEndBeforeARound(t *testing.T) {
	b := sanitized(t, `exec sleep 1000`)
	b.micros = map[string]float64{}
	ahead, err := b.beginTools(t.Context(), gateOf(policy.Memcheck))
	if err != nil {
		t.Fatal(err)
	}
	b.tools = ahead
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.job.Policy = &policy.Policy{}
	b.next = &next{process: &process{ctx: ended, cancel: func(error) {}}}
	b.Round(t.Context(), &policy.PerformanceGate{}, nil, silent{})
	select {
	case <-ahead.done:
	default:
		t.Error("a tool runs beside the round")
	}
}
