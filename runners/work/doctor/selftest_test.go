package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// TestSelfTest checks that this host's CPU passes a real measurement, and that its time is kept.
func TestSelfTest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "times.json")
	r := SelfTest{Kind: gates.DeviceCPU, History: file, Measure: measure.Config{Getenv: os.Getenv}.Measure}.Run(t.Context(), t.TempDir())
	if !r.Passed || r.Kernel != "known_cpu" || !(r.Micros > 0) || !(r.Low <= r.Difference && r.Difference <= r.High) {
		t.Fatalf("%+v", r)
	}
	t.Logf("%+v", r)
	all, err := readTimes(file)
	if err != nil || len(all["cpu"]) != 1 || all["cpu"][0] != r.Micros {
		t.Errorf("kept %v, %v", all, err)
	}
}

// A fake is a GPU with scripted behaviour.
type fake struct {
	words  string  // see scripted.Runner
	micros float64 // of the kernel; 100 by default
	apart  float64 // how much longer the candidate takes
	noise  float64 // how much longer it takes in every other round
	err    error
}

func (f fake) measure(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
	if f.err != nil {
		return runners.Measured{}, f.err
	}
	hold := make(chan struct{})
	found, err := scripted.Runner{Script: func(string) string { return f.words }, Nanos: 1000 * cmp.Or(f.micros, 100), Hold: hold}.Measure(ctx, job, scratch, p)
	if err != nil || found.Evidence.Performance == nil {
		return found, err
	}
	for n, round := range found.Evidence.Performance.Rounds {
		for _, s := range round.Series {
			for i, letter := range strings.ReplaceAll(s.Order, " ", "") {
				if letter == gates.SideCandidate {
					s.Nanos[i] *= 1 + f.apart + f.noise*float64(n%2)
				}
			}
		}
	}
	return found, nil
}

// TestBadHosts checks that problems of a host are found and reported.
func TestBadHosts(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		fake  fake
		usual float64 // of the kernel on this host, in microseconds
		why   string  // "" means that it passes
	}{
		"a good GPU":                {gates.DeviceGPU, fake{}, 0, ""},
		"as it always was":          {gates.DeviceGPU, fake{micros: 110}, 100, ""},
		"sides that differ":         {gates.DeviceGPU, fake{apart: 0.05}, 0, "differs from itself by -4."},
		"the other way round":       {gates.DeviceGPU, fake{apart: -0.05}, 0, "differs from itself by +5."},
		"a difference that is ok":   {gates.DeviceGPU, fake{apart: 0.01}, 0, ""},
		"now so, now so":            {gates.DeviceGPU, fake{noise: 0.4}, 0, "is only known to lie between"},
		"now so, now so, on a CPU":  {gates.DeviceCPU, fake{noise: 0.4}, 0, ""},
		"sides that differ on one":  {gates.DeviceCPU, fake{apart: 0.3}, 0, "differs from itself by -2"},
		"half the clock":            {gates.DeviceGPU, fake{micros: 200}, 100, "takes 19"},
		"a clock that goes wrong":   {gates.DeviceGPU, fake{micros: 50}, 100, "and took 100 µs on this host before (if the new time is right, remove "},
		"a slow CPU":                {gates.DeviceCPU, fake{micros: 200}, 100, ""},
		"wrong results":             {gates.DeviceGPU, fake{words: "WRONG"}, 0, "was not measured to the end: "},
		"a GPU that dies":           {gates.DeviceGPU, fake{words: "FAULT"}, 0, "the device fell off the bus"},
		"a compiler that is broken": {gates.DeviceGPU, fake{words: "BROKEN"}, 0, "it is broken"},
		"no driver":                 {gates.DeviceGPU, fake{err: errors.New("no NVIDIA GPU was found")}, 0, "no NVIDIA GPU was found"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "times.json")
			if c.usual > 0 {
				if err := writeTimes(file, times{"GPU-a": {c.usual, 7, c.usual, 9999}, "cpu": {c.usual, c.usual, c.usual}}); err != nil {
					t.Fatal(err)
				}
			}
			device := ""
			if c.kind == gates.DeviceGPU {
				device = "GPU-a"
			}
			before, err := readTimes(file)
			if err != nil {
				t.Fatal(err)
			}
			r := SelfTest{Kind: c.kind, Device: device, History: file, Measure: c.fake.measure}.Run(t.Context(), t.TempDir())
			if r.Passed != (c.why == "") || !strings.Contains(r.Why, c.why) {
				t.Errorf("%+v", r)
			}
			if after, err := readTimes(file); err != nil || !r.Passed && !reflect.DeepEqual(before, after) {
				t.Errorf("a failed test has changed what is usual: %v, %v", after, err)
			}
		})
	}
}

// TestSelfTestIsPossible checks that a host without a compiler is not tested, and that one with a
// compiler is.
func TestSelfTestIsPossible(t *testing.T) {
	nothing := func(name string) string { return map[string]string{"CC": "no-such-compiler"}[name] }
	if err := (SelfTest{Kind: gates.DeviceCPU}).Possible(t.Context(), nothing); !errors.Is(err, toolchain.ErrNoCompiler) {
		t.Errorf("no C compiler: %v", err)
	}
	if err := (SelfTest{Kind: gates.DeviceCPU}).Possible(t.Context(), os.Getenv); err != nil {
		t.Error(err)
	}
	if err := (SelfTest{Kind: gates.DeviceGPU}).Possible(t.Context(), nothing); err != nil && !errors.Is(err, toolchain.ErrNoCUDA) {
		t.Errorf("no nvcc: %v", err)
	}
}

// TestSelfTestTimeout checks that a test that does not end has failed.
func TestSelfTestTimeout(t *testing.T) {
	r := SelfTest{Kind: gates.DeviceGPU, History: filepath.Join(t.TempDir(), "times"), Timeout: 10 * time.Millisecond, Measure: fake{words: "HOLD"}.measure}.Run(t.Context(), t.TempDir())
	if r.Passed || !strings.Contains(r.Why, "deadline") {
		t.Errorf("%+v", r)
	}
}

// TestSelfTestHistory checks that each device has its own bounded history, and that a damaged file
// counts as empty.
func TestSelfTestHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "times.json")
	for i := range keptTimes + 10 {
		r := protocol.SelfTest{Micros: 100 + float64(i)/10}
		if err := (SelfTest{Kind: gates.DeviceGPU, Device: "GPU-a", History: file}).compare(1.5, &r); err != nil || (r.Usual > 0) != (i >= fewTimes) {
			t.Fatalf("test %d: %+v, %v", i, r, err)
		}
	}
	all, err := readTimes(file)
	if err != nil || len(all["GPU-a"]) != keptTimes || all["GPU-a"][0] > all["GPU-a"][keptTimes-1] {
		t.Errorf("%d are kept, %v", len(all["GPU-a"]), err)
	}
	if r := (SelfTest{Kind: gates.DeviceGPU, Device: "GPU-b", History: file, Measure: fake{micros: 900}.measure}).Run(t.Context(), t.TempDir()); !r.Passed || r.Usual != 0 {
		t.Errorf("another GPU of the host: %+v", r)
	}
	for _, text := range []string{"", "{", "null", "[]", `{"GPU-a":[1,"x"]}`, `{"GPU-a":[-1,0,100,100]}`} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := (SelfTest{Kind: gates.DeviceGPU, Device: "GPU-a", History: file, Measure: fake{}.measure}).Run(t.Context(), t.TempDir()); !r.Passed || r.Usual != 0 {
			t.Errorf("after %q: %+v", text, r)
		}
	}
}

// TestKnownKernelsArchitectures checks that the known kernel supports every GPU that a kernel may
// support: on others the test would fail for want of an architecture.
func TestKnownKernelsArchitectures(t *testing.T) {
	job, err := SelfTest{Kind: gates.DeviceGPU}.job(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^arch: .*$`)
	known := 0
	for n := 50; n < 400; n++ {
		arch := fmt.Sprint("sm_", n)
		if _, err := manifest.Parse("kernel.yaml", []byte(line.ReplaceAllString(job.ManifestText, "arch: ["+arch+"]"))); err != nil {
			continue
		}
		if known++; !slices.Contains(job.Manifest.ArchOf(job.Manifest.DefaultVariant), manifest.Arch(arch)) {
			t.Errorf("add %s to known/gpu/kernel.yaml", arch)
		}
	}
	if known < 5 {
		t.Errorf("only %d architectures are known", known)
	}
}

// TestKnownKernelCompiles checks that the known kernel for GPUs compiles for every architecture
// that it names and the compiler has.
func TestKnownKernelCompiles(t *testing.T) {
	if _, err := toolchain.FindCUDA(t.Context(), os.Getenv); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	job, err := SelfTest{Kind: gates.DeviceGPU}.job(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policy.Parse("static.yaml", []byte("version: 1\ngates: {ptxas: {}}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	job.Policy = policy
	for _, arch := range []string{"sm_89", "sm_90"} {
		found, err := measure.Config{Static: true, Arch: arch, Getenv: os.Getenv, Cache: toolchaintest.Builds(t)}.Measure(t.Context(), job, t.TempDir(), silent{})
		if err != nil || found.Evidence.Fault != "" || found.Evidence.Candidate == nil || !found.Evidence.Candidate.OK {
			t.Errorf("%s: %v, %+v", arch, err, found.Evidence)
		}
	}
}
