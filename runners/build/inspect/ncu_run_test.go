package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// request asks the fake ncu to play a part.
func request(t *testing.T, part string, env ...string) (NCU, ProfileRequest) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testdata, err := filepath.Abs("testdata/ncu")
	if err != nil {
		t.Fatal(err)
	}
	return NCU{Path: self, Version: "2025.3.1.0"}, ProfileRequest{
		Args: []string{"/usr/bin/kernelgate", "worker", "--shape", "mission"},
		Env: append([]string{
			"FAKE_NCU=" + part, "FAKE_NCU_TESTDATA=" + testdata, "LC_ALL=de_DE.UTF-8",
			// The race detector would delay the end of each process by a second.
			"GORACE=atexit_sleep_ms=0",
		}, env...),
		Kernels: []string{"sdpa_fp8"},
		Skip:    3,
		Count:   2,
		Metrics: []string{"sm__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__time_duration.sum"},
		Report:  filepath.Join(t.TempDir(), "mission.ncu-rep"),
		Timeout: time.Minute,
	}
}

// folder lists what a run left next to its report.
func folder(t *testing.T, r ProfileRequest) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(r.Report))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestRunGivesLaunches checks the launches of a run. Here and in the tests below, the stream also
// has output of a kernel that imitates an error and a table.
func TestRunGivesLaunches(t *testing.T) {
	ncu, r := request(t, "raw")
	launches, problem, err := ncu.Run(t.Context(), r)
	if err != nil || problem != nil {
		t.Fatalf("problem %v, error %v", problem, err)
	}
	if diff := cmp.Diff(handmade, launches); diff != "" {
		t.Error(diff)
	}
	if got := folder(t, r); got != "mission.ncu-rep" {
		t.Errorf("the folder of the report holds %q", got)
	}
}

// TestRunReadsSamples checks that each launch has its samples, or none has: those of a launch cannot be told from those of the next.
func TestRunReadsSamples(t *testing.T) {
	for part, samples := range map[string][]int{"two": {1240, 5}, "one": nil, "none": nil} {
		ncu, r := request(t, part)
		r.Samples = true
		launches, problem, err := ncu.Run(t.Context(), r)
		if err != nil || problem != nil || len(launches) != 2 {
			t.Fatalf("%s: problem %v, error %v, %d launches", part, problem, err, len(launches))
		}
		for i, l := range launches {
			if (l.Sampled == nil) != (samples == nil) || samples != nil && l.Sampled.All != samples[i] {
				t.Errorf("%s: launch %d has %+v", part, i, l.Sampled)
			}
		}
	}
}

func TestRunCallsNCU(t *testing.T) {
	file := filepath.Join(t.TempDir(), "args")
	ncu, r := request(t, "raw", "FAKE_NCU_ARGS="+file)
	if _, _, err := ncu.Run(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type call struct {
		Args   []string
		Locale string
	}
	var calls []call
	for d := json.NewDecoder(f); d.More(); {
		var c call
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		for i, a := range c.Args {
			if filepath.IsAbs(a) && strings.Contains(a, ".ncu-") {
				c.Args[i] = filepath.Base(a) // its folder has a random name
			}
		}
		calls = append(calls, c)
	}
	want := []call{
		{strings.Fields("--log-file ncu.log --export profile.ncu-rep --force-overwrite --target-processes all --clock-control none " +
			"--kernel-name-base mangled --kernel-name sdpa_fp8 --launch-skip 3 --launch-count 2 " +
			"--metrics sm__throughput.avg.pct_of_peak_sustained_elapsed,gpu__time_duration.sum " +
			"/usr/bin/kernelgate worker --shape mission"), "C"},
		{strings.Fields("--import profile.ncu-rep --csv --page raw --print-units base --print-kernel-base mangled"), "C"},
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error(diff)
	}
}

func TestRunProblems(t *testing.T) {
	for part, kind := range map[string]problemKind{
		"no_permission": noPermission, "no_kernels": noKernels, "busy": busy, "no_profiler": noProfiler, "unknown_metrics": metricsUnknown,
	} {
		t.Run(part, func(t *testing.T) {
			ncu, r := request(t, part)
			launches, problem, err := ncu.Run(t.Context(), r)
			if err != nil || launches != nil {
				t.Fatalf("launches %v, error %v", launches, err)
			}
			if problem == nil || problem.Kind != kind {
				t.Errorf("got %+v, want %s", problem, kind)
			}
			if got := folder(t, r); got != "" {
				t.Errorf("left behind: %s", got)
			}
		})
	}
}

func TestRunErrors(t *testing.T) {
	tests := []struct{ part, want string }{
		{"garbage", "there is none"},
		{"broken_table", `line 3: m__x.sum: "65,77" is not a number`},
		{"empty_table", "a table without a launch"},
		{"import_fails", "could not print its own report: exit status 1: The report is of a newer version"},
		{"no_report", "wrote no report"},
		{"bad_option", "exit status 1: unrecognised option '--clock-control'"},
		{"liar_fails", "exit status 9: The moon is in the wrong house"},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			ncu, r := request(t, tt.part)
			launches, problem, err := ncu.Run(t.Context(), r)
			if launches != nil || problem != nil || err == nil {
				t.Fatalf("got %v, %v, %v, want an error alone", launches, problem, err)
			}
			if !strings.HasPrefix(err.Error(), "profiling sdpa_fp8: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not contain %q", err, tt.want)
			}
			if got := folder(t, r); got != "" {
				t.Errorf("left behind: %s", got)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	tests := []struct {
		name, want string
		change     func(*ProfileRequest)
	}{
		{"no program", "no program", func(r *ProfileRequest) { r.Args = nil }},
		{"a pattern for a kernel", "not the symbol", func(r *ProfileRequest) { r.Kernels = []string{"k", "regex:.*"} }},
		{"an option for a kernel", "not the symbol", func(r *ProfileRequest) { r.Kernels = []string{"k", "--mode"} }},
		{"a pattern for a metric", "not the name of a metric", func(r *ProfileRequest) { r.Metrics = []string{"regex:.*"} }},
		{"no metrics", "no metric", func(r *ProfileRequest) { r.Metrics = nil }},
		{"launches below zero", "cannot be asked for", func(r *ProfileRequest) { r.Skip = -1 }},
		{"a report of another name", "does not end in .ncu-rep", func(r *ProfileRequest) { r.Report = "x.csv" }},
		{"a report in a folder with a percent sign", "replace the %", func(r *ProfileRequest) { r.Report = "/tmp/%p/x.ncu-rep" }},
		{"a report in no folder", "making a folder", func(r *ProfileRequest) { r.Report = filepath.Join(filepath.Dir(r.Report), "none", "x.ncu-rep") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ncu, r := request(t, "raw")
			tt.change(&r)
			if _, _, err := ncu.Run(t.Context(), r); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v does not contain %q", err, tt.want)
			}
		})
	}
}

func TestRunWithoutNCU(t *testing.T) {
	_, r := request(t, "raw")
	ncu := NCU{Path: filepath.Join(t.TempDir(), "absent"), Version: "1"}
	if _, _, err := ncu.Run(t.Context(), r); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// pipe is a named pipe, opened for reading: it reaches end of file when its last writer is dead.
func pipe(t *testing.T) (path string, f *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return path, f
}

func TestRunKillsTheGroupAtTheTimeout(t *testing.T) {
	path, f := pipe(t)
	ncu, r := request(t, "hang", "FAKE_NCU_PIPE="+path)
	r.Timeout = 300 * time.Millisecond
	_, problem, err := ncu.Run(t.Context(), r)
	if problem != nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "killed after 300ms") {
		t.Errorf("got %v, %v", problem, err)
	}
	allDead(t, f)
	if got := folder(t, r); got != "" {
		t.Errorf("left behind: %s", got)
	}
}

// TestRunKillsTheGroupWhenCancelled cancels the context when both processes are known to run.
func TestRunKillsTheGroupWhenCancelled(t *testing.T) {
	path, f := pipe(t)
	// The pipe must not end before the fake has opened it.
	hold, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		defer hold.Close()
		if _, err := io.ReadFull(f, make([]byte, len("up up "))); err != nil {
			t.Errorf("waiting for ncu and its program: %v", err)
		}
	}()
	ncu, r := request(t, "hang", "FAKE_NCU_PIPE="+path)
	_, problem, err := ncu.Run(ctx, r)
	if problem != nil || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "raise the timeout") {
		t.Errorf("got %v, %v", problem, err)
	}
	<-ctx.Done()
	allDead(t, f)
}

// allDead fails if a process still holds the pipe.
func allDead(t *testing.T, f *os.File) {
	t.Helper()
	if err := f.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); err != nil {
		t.Errorf("a process outlived the run: %v", err)
	}
}

// TestNamesOfSeveralKernels checks that ncu gets several kernels as one expression, which matches
// nothing else.
func TestNamesOfSeveralKernels(t *testing.T) {
	for want, kernels := range map[string][]string{
		"split":                           {"split"},
		`regex:^(_Z5splitPf|combine\$1)$`: {"_Z5splitPf", "combine$1"},
	} {
		if got := (ProfileRequest{Kernels: kernels}).names(); got != want {
			t.Errorf("%v: %s", kernels, got)
		}
	}
}
