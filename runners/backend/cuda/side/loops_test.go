package side

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib/fakelib"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

var fakeDriver fakelib.Builder

// TestMain builds the fake driver, which a second process of this program loads in place of the real one.
func TestMain(m *testing.M) {
	source, err := os.ReadFile("../driver/testdata/fakecuda.c")
	if err != nil {
		panic(err)
	}
	fakeDriver.Source = source
	fakeDriver.Main(m)
}

const walsh = `version: 1
name: walsh
mode: cuda
arch: [sm_90]
source: walsh.cu
entry: pass
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
launch:
  steps:
    - {copy: x, to: y}
    - {repeat: {name: s, count: log2(N)}, grid: [1], block: [32], scalars: [{name: half, dtype: i32, value: 2**s}], args: [y, half, n]}
reference: {source: reference.cu, entry: walsh_reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.06}
shapes:
  one: {N: 2}
  small: {N: 8}
  large: {N: 4096}
`

// TestLoopsOnTheDriver checks that a launch with a loop computes a Walsh-Hadamard transform: each of its log2(N) kernels gets the
// scalar of its own round, when it runs at once and when it is recorded in a graph.
func TestLoopsOnTheDriver(t *testing.T) {
	if os.Getenv("KERNELGATE_FAKE_DRIVER") == "" {
		library := fakeDriver.Compile(t)
		if err := os.Rename(library, filepath.Join(filepath.Dir(library), driver.LibraryName)); err != nil {
			t.Fatal(err)
		}
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLoopsOnTheDriver$", "-test.v")
		child.Env = append(os.Environ(), "KERNELGATE_FAKE_DRIVER=yes", "LD_LIBRARY_PATH="+filepath.Dir(library))
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	m, err := manifest.Parse(manifest.FileName, []byte(walsh))
	if err != nil {
		t.Fatal(err)
	}
	d, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	thread, err := gpu.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, []byte("an image"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = thread.Do(func(c *driver.Context) error {
		stream, err := c.NewStream()
		if err != nil {
			return err
		}
		defer stream.Close()
		kernel, err := Load(c, stream, m, Built{Image: image, Symbols: map[string]string{"pass": "butterfly"}, Variant: "default"}, 0)
		if err != nil {
			return err
		}
		for _, shape := range m.Shapes {
			for _, recorded := range []bool{false, true} {
				if err := transforms(c, stream, kernel, m, shape, recorded); err != nil {
					return fmt.Errorf("%s, recorded %v: %w", shape, recorded, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// transforms runs a launch, twice unless it is recorded, and compares its output with the transform by its definition.
func transforms(c *driver.Context, stream *driver.Stream, kernel *Kernel, m *manifest.Manifest, shape manifest.Shape, recorded bool) error {
	p, err := tensor.NewProblem(m, shape, nil, "uniform", 1)
	if err != nil {
		return err
	}
	layout := tensor.NewLayout(p.Args, 0)
	slot, err := c.Alloc(int64(layout.Size))
	if err != nil {
		return err
	}
	if err := stream.ToDevice(slot.Slice(int64(layout.Offsets[0]), int64(p.Args[0].Size())), p.Args[0].Bytes); err != nil {
		return err
	}
	launch, err := kernel.Prepare(0, shape.Dims, p.Args, layout.Offsets, slot.Ptr)
	if err != nil {
		return err
	}
	run := func() error {
		if err := launch(); err != nil {
			return err
		}
		return launch()
	}
	if recorded {
		graph, err := stream.Capture(launch) // once: the fake runs copies when they are recorded
		if err != nil {
			return err
		}
		run = func() error { return graph.Launch(stream) }
	}
	if err := run(); err != nil {
		return err
	}
	out := make([]byte, p.Args[1].Size())
	if err := stream.ToHost(out, slot.Slice(int64(layout.Offsets[1]), int64(len(out)))); err != nil {
		return err
	}
	want := append([]float64{}, p.Args[0].Real...)
	for half := 1; half < len(want); half *= 2 {
		for i := range want {
			if i/half%2 == 0 {
				want[i], want[i+half] = want[i]+want[i+half], want[i]-want[i+half]
			}
		}
	}
	for i, w := range want {
		got := float64(math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])))
		if math.Abs(got-w) > 1e-3*float64(len(want)) {
			return fmt.Errorf("element %d is %v, want %v", i, got, w)
		}
	}
	return nil
}
