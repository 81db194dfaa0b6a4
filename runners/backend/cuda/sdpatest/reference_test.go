package sdpatest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// An attention problem with its inputs.
type attention struct {
	B, H, S, D, causal int
	sigma              float64 // of Q and K
	q, k, v            []float32
}

// fill draws the inputs.
func (a attention) fill() attention {
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(sigma float64) []float32 {
		x := make([]float32, a.B*a.H*a.S*a.D)
		for i := range x {
			x[i] = float32(sigma * rng.NormFloat64())
		}
		return x
	}
	a.q, a.k, a.v = draw(a.sigma), draw(a.sigma), draw(1)
	return a
}

func (a attention) String() string {
	return fmt.Sprintf("B=%d H=%d S=%d D=%d causal=%d sigma=%g", a.B, a.H, a.S, a.D, a.causal, a.sigma)
}

// inFloat64 is the formula, with nothing done for speed.
func (a attention) inFloat64() []float64 {
	o := make([]float64, len(a.q))
	weights := make([]float64, a.S)
	for query := range a.B * a.H * a.S {
		head, keys := query/a.S*a.S, a.S
		if a.causal == 1 {
			keys = query%a.S + 1
		}
		top, sum := math.Inf(-1), 0.0
		for j := range keys {
			weights[j] = 0
			for d := range a.D {
				weights[j] += float64(a.q[query*a.D+d]) * float64(a.k[(head+j)*a.D+d])
			}
			weights[j] /= math.Sqrt(float64(a.D))
			top = max(top, weights[j])
		}
		for j := range keys {
			weights[j] = math.Exp(weights[j] - top)
			sum += weights[j]
		}
		for j := range keys {
			for d := range a.D {
				o[query*a.D+d] += weights[j] / sum * float64(a.v[(head+j)*a.D+d])
			}
		}
	}
	return o
}

func farthest(got []float32, want []float64) float64 {
	worst := 0.0
	for i, x := range got {
		if e := math.Abs(float64(x) - want[i]); !(e <= worst) { // NaN too
			worst = e
		}
	}
	return worst
}

// holds compares what run makes of reference.cu with float64. The gate allows a kernel 0.06,
// and the reference's own error must be nothing beside it.
func holds(t *testing.T, run func(*testing.T, attention) []float32, more ...attention) {
	problems := []attention{
		{B: 1, H: 1, S: 1, D: 64, sigma: 1},
		{B: 2, H: 2, S: 17, D: 64, sigma: 1},
		{B: 1, H: 2, S: 33, D: 64, sigma: 1, causal: 1},
		{B: 1, H: 1, S: 40, D: 128, sigma: 1},
		{B: 2, H: 1, S: 21, D: 128, sigma: 1, causal: 1},
		{B: 1, H: 1, S: 40, D: 64, sigma: 8},
		{B: 1, H: 1, S: 33, D: 128, sigma: 8, causal: 1},
	}
	for _, a := range append(problems, more...) {
		t.Run(a.String(), func(t *testing.T) {
			a := a.fill()
			bound := 1e-5
			if a.sigma > 1 {
				bound = 1e-3 // scores of hundreds, whose last bit is 3e-5
			}
			e := farthest(run(t, a), a.inFloat64())
			t.Logf("max |err| %.2g", e)
			if !(e <= bound) {
				t.Errorf("the reference is wrong by %g, want at most %g", e, bound)
			}
		})
	}
	t.Run("another problem's answer is far off", func(t *testing.T) {
		a := attention{B: 1, H: 1, S: 20, D: 64, sigma: 1}.fill()
		got := run(t, a)
		a.causal = 1
		if e := farthest(got, a.inFloat64()); e < 0.06 {
			t.Errorf("causal or not is a difference of %g only", e)
		}
	})
}

// floatBytes and bytesToFloats: numbers as they lie in memory. Both panic for types without
// a fixed size alone.
func floatBytes(parts ...[]float32) []byte {
	b, err := binary.Append(nil, binary.NativeEndian, slices.Concat(parts...))
	if err != nil {
		panic(err)
	}
	return b
}

func bytesToFloats(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	if _, err := binary.Decode(b, binary.NativeEndian, x); err != nil {
		panic(err)
	}
	return x
}

func TestReferenceOnCPU(t *testing.T) {
	cc, err := toolchain.FindCC(t.Context(), os.Getenv, true)
	needs(t, err)
	program := filepath.Join(t.TempDir(), "reference")
	if out, err := exec.CommandContext(t.Context(), cc.Path, "-std=c++17", "-O2", "-o", program, "testdata/reference_on_cpu.cpp").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	holds(t, func(t *testing.T, a attention) []float32 {
		c := exec.CommandContext(t.Context(), program, strconv.Itoa(a.B), strconv.Itoa(a.H), strconv.Itoa(a.S), strconv.Itoa(a.D), strconv.Itoa(a.causal))
		c.Stdin = bytes.NewReader(floatBytes(a.q, a.k, a.v))
		c.Stderr = os.Stderr
		out, err := c.Output()
		if err != nil || len(out) != 4*len(a.q) {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
		return bytesToFloats(out)
	})
}

// openGPU skips a test where there is none.
func openGPU(t *testing.T) (driver.Device, driver.Properties) {
	t.Helper()
	d, err := driver.Open()
	if err != nil {
		t.Skipf("no GPU to test on: %v", err)
	}
	device, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	properties, err := device.Properties()
	if err != nil {
		t.Fatal(err)
	}
	return device, properties
}

func TestReferenceOnGPU(t *testing.T) {
	device, properties := openGPU(t)
	nvcc, err := toolchain.FindCUDA(t.Context(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	cubin := filepath.Join(t.TempDir(), "reference.cubin")
	// The flags of kernel.yaml.
	if out, err := exec.CommandContext(t.Context(), nvcc.NVCC, "-cubin", "-O3", "-std=c++17", "-arch="+properties.Arch(), "-o", cubin, folder+"reference.cu").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	image, err := os.ReadFile(cubin)
	if err != nil {
		t.Fatal(err)
	}
	thread, err := device.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	holds(t, func(t *testing.T, a attention) (o []float32) {
		if err := thread.Do(func(c *driver.Context) (err error) {
			o, err = launchReference(c, image, a)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return o
	}, attention{B: 1, H: 8, S: 512, D: 64, sigma: 1}, attention{B: 1, H: 8, S: 512, D: 128, sigma: 8, causal: 1})
}

func launchReference(c *driver.Context, image []byte, a attention) ([]float32, error) {
	module, err := c.LoadModule(image)
	if err != nil {
		return nil, err
	}
	reference, err := module.Function("sdpa_reference")
	if err != nil {
		return nil, err
	}
	s, err := c.NewStream()
	if err != nil {
		return nil, err
	}
	var args driver.Args
	var out driver.Buffer
	for _, x := range [][]float32{a.q, a.k, a.v, make([]float32, len(a.q))} {
		if out, err = c.Alloc(int64(4 * len(x))); err != nil {
			return nil, err
		}
		defer c.Free(out)
		if err := s.ToDevice(out, floatBytes(x)); err != nil {
			return nil, err
		}
		args.Pointer(out.Ptr)
	}
	for _, n := range []int{a.B, a.H, a.S, a.D, a.causal} {
		args.Int32(int32(n))
	}
	shape := driver.Launch{Grid: driver.Dim{X: uint32(a.B*a.H*a.S+3) / 4}, Block: driver.Dim{X: 128}}
	if err := reference.Launch(s, shape, &args); err != nil {
		return nil, err
	}
	o := make([]byte, 4*len(a.q))
	if err := s.ToHost(o, out); err != nil {
		return nil, err
	}
	return bytesToFloats(o), c.Synchronize()
}
