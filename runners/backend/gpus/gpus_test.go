package gpus

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib/fakelib"
)

// Only TestMain writes to fakes.
var fakes fakelib.Builder

func TestMain(m *testing.M) {
	if os.Getenv("KERNELGATE_TEST_GPUS") != "" {
		showGPUs()
		return
	}
	var err error
	if fakes.Source, err = os.ReadFile("../cuda/nvml/testdata/fakenvml.c"); err != nil {
		panic(err)
	}
	fakes.Main(m)
}

// seen is what a process with the fake library finds.
type seen struct {
	GPUs  []GPU
	Error string
	Looks []string // why each is unfit at the second look
}

func showGPUs() {
	var out seen
	var err error
	if out.GPUs, err = Here(os.Getenv); err != nil {
		out.Error = err.Error()
	}
	for _, g := range out.GPUs {
		w, err := WatchGPU(g)
		if err != nil {
			out.Error = err.Error()
			break
		}
		w.Look(time.Time{})
		_, unfit := w.Look(time.Time{})
		out.Looks = append(out.Looks, unfit)
	}
	_ = json.NewEncoder(os.Stdout).Encode(out)
}

// hostWith examines a host with three GPUs, as nvidia-smi would show them.
func hostWith(t *testing.T, prefix string, env ...string) (out seen) {
	t.Helper()
	lib, err := os.ReadFile(fakes.Compile(t, "-DFAKE_GPUS=3", `-DFAKE_NAMES={"NVIDIA L4","NVIDIA L4","NVIDIA H200"}`, `-DFAKE_UUID="`+prefix+`"`))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "libnvidia-ml.so.1"), lib, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "KERNELGATE_TEST_GPUS=1", "LD_LIBRARY_PATH="+dir)
	cmd.Env = append(cmd.Env, env...)
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// mixed is a host with two kinds of GPU.
var mixed = []GPU{
	{Index: 0, UUID: "GPU-1a", Name: "NVIDIA L4", Minor: 2}, {Index: 1, UUID: "GPU-1b", Name: "NVIDIA L4", Minor: 1}, {Index: 2, UUID: "GPU-2c", Name: "NVIDIA H200", Minor: 0},
}

// TestHere checks that all GPUs of a host are found, with what distinguishes them, and that each is
// watched separately.
func TestHere(t *testing.T) {
	out := hostWith(t, "GPU-1")
	want := slices.Clone(mixed)
	want[2].UUID = "GPU-1c"
	if diff := cmp.Diff(want, out.GPUs); diff != "" || out.Error != "" {
		t.Errorf("%s (-want +got):\n%s", out.Error, diff)
	}
	for i, unfit := range out.Looks {
		if !strings.HasPrefix(unfit, fmt.Sprintf("GPU %d (", i)) || !strings.Contains(unfit, "is slowed down: sw-thermal-slowdown, hw-thermal-slowdown (look") {
			t.Errorf("GPU %d: %q", i, unfit)
		}
	}
	if all, err := Here(os.Getenv); err != nil || len(all) > 0 {
		t.Skipf("this host has GPUs: %v, %v", all, err)
	}
	// Numbers there are CUDA's, which is not available here.
	if out := hostWith(t, "GPU-1", "CUDA_VISIBLE_DEVICES=1"); !strings.Contains(out.Error, "that CUDA_VISIBLE_DEVICES names") {
		t.Errorf("with CUDA_VISIBLE_DEVICES: %+v", out)
	}
}

func TestSelect(t *testing.T) {
	for spec, want := range map[string]string{
		"all": "0 1 2", "none": "", "0": "0", "2,0": "0 2", " 1 , GPU-2c": "1 2", "GPU-2": "2",
		"3": `"3" is no GPU of this host (write all, none, or of these: GPU 0 (NVIDIA L4, GPU-1a), `, "GPU-1": `"GPU-1" is more than one GPU`, "GPU-": `"GPU-" is no GPU`,
		"0,0": "GPU 0 (NVIDIA L4, GPU-1a) is named twice", "1,GPU-1b": "is named twice", "": `"" is no GPU`, "0,,1": `"" is no GPU`, "-1": `"-1" is no GPU`, "all,1": `"all" is no GPU`,
	} {
		picked, err := Select(mixed, spec)
		var got []string
		for _, g := range picked {
			got = append(got, fmt.Sprint(g.Index))
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if err == nil && text != want || err != nil && (want == "" || !strings.Contains(text, want)) {
			t.Errorf("%q: %s, want %s", spec, text, want)
		}
	}
	if _, err := Select(nil, "0"); err == nil || !strings.Contains(err.Error(), "it has none that the driver shows") {
		t.Errorf("without a GPU: %v", err)
	}
}

// FuzzSelect checks that the selection has only this host's GPUs, in order, and none twice,
// whatever the text is.
func FuzzSelect(f *testing.F) {
	for _, s := range []string{"all", "none", "0,2", "GPU-1a", "x", ",", "00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		picked, err := Select(mixed, spec)
		if err != nil && len(picked) > 0 {
			t.Errorf("%v and %v", picked, err)
		}
		for i, g := range picked {
			if !slices.Contains(mixed, g) || i > 0 && picked[i-1].Index >= g.Index {
				t.Errorf("%q picks %v", spec, picked)
			}
		}
	})
}

// TestShare checks that a GPU takes only jobs of its own model, and that only one GPU takes kernels
// for the CPU.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		name  string
		asked []string
		want  string
	}{
		{"found out", nil, "0: cpu gpu l4, 1: gpu l4, 2: gpu h200"},
		{"named", []string{"gpu", "l4", "h200", "nightly"}, "0: gpu l4 nightly, 1: gpu l4 nightly, 2: gpu h200 nightly"},
		{"one model", []string{"h200", "cpu"}, "0: cpu, 2: h200"},
		{"one model alone", []string{"h200"}, "2: h200"},
		{"no GPU", []string{"cpu"}, ""},
	} {
		used, labels := Share(mixed, c.asked)
		var got []string
		for i, g := range used {
			got = append(got, fmt.Sprintf("%d: %s", g.Index, strings.Join(labels[i], " ")))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
	if got := Labels(mixed); !slices.Equal(got, []string{"cpu", "gpu", "l4", "h200"}) {
		t.Errorf("all labels: %v", got)
	}
	if got := Labels(nil); !slices.Equal(got, []string{"cpu"}) {
		t.Errorf("without a GPU: %v", got)
	}
}

// TestLock checks that a GPU has one runner at a time.
func TestLock(t *testing.T) {
	g, other := GPU{UUID: "GPU-" + rand.Text()}, GPU{UUID: "GPU-" + rand.Text()}
	lock, err := g.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Lock(); err == nil || !strings.Contains(err.Error(), "another runner measures on") {
		t.Errorf("a second one: %v", err)
	}
	beside, err := other.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := beside.Close(); err != nil {
		t.Error(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	if lock, err = g.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// TestFiles checks that a program with one GPU has no other GPU's device file. The files here are
// links to a device.
func TestFiles(t *testing.T) {
	dev := t.TempDir()
	for _, name := range []string{"nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"} {
		if err := os.Symlink("/dev/null", filepath.Join(dev, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dev, "nvidia-caps"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		gpu  GPU
		want string
	}{
		{mixed[0], "nvidia-modeset nvidia-uvm nvidia2 nvidiactl"},
		{GPU{UUID: "GPU-x", Minor: -1}, "nvidia-modeset nvidia-uvm nvidia0 nvidia1 nvidia2 nvidiactl"},
		{GPU{}, "nvidia-modeset nvidia-uvm nvidia0 nvidia1 nvidia2 nvidiactl"},
	} {
		var names []string
		for _, file := range c.gpu.Files(dev) {
			names = append(names, filepath.Base(file))
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v: %s", c.gpu, got)
		}
	}
}
