package sdpatest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// The problems of the sweep: those of kernel.yaml's secret sizes, where few heads leave SMs idle and the best variant changes often.
var (
	sweptHeads   = []int{1, 2, 3, 6}
	sweptLengths = []int{1, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024, 1280, 1536, 2048, 2560, 3072, 4096}
)

// A sweptKind is a kind of input as far as it decides how scores are computed: how large a code is, and whether one row has all
// of the large codes.
type sweptKind struct {
	name     string
	scale    float64 // of a code, relative to normal inputs
	dominant bool
}

var sweptKinds = []sweptKind{{"normal", 1, false}, {"dominant", 6, true}, {"large", 8, false}}

// sweptVariants are those that the choice may take.
func sweptVariants(m *manifest.Manifest) []string {
	var names []string
	for _, v := range m.Variants {
		if strings.HasPrefix(v.Name, "stage6") || strings.HasPrefix(v.Name, "stage7") {
			names = append(names, v.Name)
		}
	}
	return names
}

func problem(H, S, D, causal int) manifest.Dims {
	return manifest.Dims{{Name: "B", Value: 1}, {Name: "H", Value: H}, {Name: "S", Value: S}, {Name: "D", Value: D}, {Name: "causal", Value: causal}}
}

// sweptProblems are all of them.
func sweptProblems() (all []manifest.Dims) {
	for _, D := range []int{64, 128} {
		for _, causal := range []int{0, 1} {
			for _, H := range sweptHeads {
				for _, S := range sweptLengths {
					all = append(all, problem(H, S, D, causal))
				}
			}
		}
	}
	return all
}

// TestSweepOnGPU times every variant on 416 problems and three kinds of input: replayed from a graph, with a cold L2 cache, the
// median of nine rounds. It writes sweep.csv to KERNELGATE_GPU_EVIDENCE; `make choose` reads it in evidence/tune.
func TestSweepOnGPU(t *testing.T) {
	device, properties := openGPU(t)
	if properties.Arch() != "sm_90" {
		t.Skipf("the choice is for sm_90, and this is %s", properties.Arch())
	}
	m, _ := readManifest(t)
	images, compiler := compileAll(t, m)
	thread, err := device.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	var rows []string
	if err := thread.Do(func(c *driver.Context) (err error) {
		rows, err = sweep(c, m, images)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	name, err := device.Name()
	if err != nil {
		t.Fatal(err)
	}
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	about := fmt.Sprintf("# %s, %s, %s, commit %s, B = 1, median of 9 rounds in µs\n", time.Now().UTC().Format(time.RFC3339), name, compiler, strings.TrimSpace(string(commit)))
	text := about + "H,S,D,causal,kind," + strings.Join(sweptVariants(m), ",") + "\n" + strings.Join(rows, "\n") + "\n"
	if to := os.Getenv("KERNELGATE_GPU_EVIDENCE"); to != "" {
		if err := os.WriteFile(filepath.Join(to, "sweep.csv"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if points, err := parseSweep(text); err != nil || len(points) != len(sweptProblems()) {
		t.Errorf("%d problems, %v", len(points), err)
	}
}

// compileAll compiles the variants as kernel.yaml says, several at a time.
func compileAll(t *testing.T, m *manifest.Manifest) (images map[string][]byte, compiler string) {
	nvcc, err := toolchain.FindCUDA(t.Context(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	names := sweptVariants(m)
	type built struct {
		name  string
		image []byte
		err   error
	}
	done := make(chan built)
	for _, name := range names {
		go func() {
			v, err := m.Variant(name)
			b := built{name: name, err: err}
			cubin := filepath.Join(t.TempDir(), "kernel.cubin")
			arch := "sm_90"
			if slices.Contains(m.ArchOf(name), "sm_90a") {
				arch = "sm_90a"
			}
			args := slices.Concat([]string{"-cubin", "-arch=" + arch, "-o", cubin}, m.Flags, m.Defines(name), []string{folder + m.SourceFile(v)})
			if out, err := exec.CommandContext(t.Context(), nvcc.NVCC, args...).CombinedOutput(); err != nil {
				b.err = fmt.Errorf("%s: %w\n%s", name, err, out)
			} else {
				b.image, b.err = os.ReadFile(cubin)
			}
			done <- b
		}()
	}
	images = map[string][]byte{}
	for range names {
		b := <-done
		if b.err != nil {
			t.Error(b.err)
		}
		images[b.name] = b.image
	}
	if t.Failed() {
		t.FailNow()
	}
	return images, "nvcc " + nvcc.Version
}

// A bench is what the launches of a sweep share.
type bench struct {
	c         *driver.Context
	s         *driver.Stream
	functions map[string]*driver.Function
	// q, k, v have room for one problem per launch of a batch; scales are those of all heads.
	inputs       [3]driver.Buffer
	scale        driver.Buffer
	output, cold driver.Buffer
	begun, ended *driver.Event
}

const (
	sweptBatch = 8
	sweptMost  = 6 * 4096 * 128 // elements of the largest problem
)

func newBench(c *driver.Context, images map[string][]byte) (*bench, error) {
	b := &bench{c: c, functions: map[string]*driver.Function{}}
	var err error
	if b.s, err = c.NewStream(); err != nil {
		return nil, err
	}
	for name, image := range images {
		module, err := c.LoadModule(image)
		if err != nil {
			return nil, err
		}
		if b.functions[name], err = module.Function("sdpa_fp8"); err != nil {
			return nil, err
		}
	}
	for _, a := range []struct {
		to    *driver.Buffer
		bytes int64
	}{{&b.inputs[0], sweptBatch * sweptMost}, {&b.inputs[1], sweptBatch * sweptMost}, {&b.inputs[2], sweptBatch * sweptMost}, {&b.scale, 64}, {&b.output, 2 * sweptBatch * sweptMost}, {&b.cold, 96 << 20}} {
		if *a.to, err = c.Alloc(a.bytes); err != nil {
			return nil, err
		}
	}
	if b.begun, err = c.NewEvent(); err != nil {
		return nil, err
	}
	b.ended, err = c.NewEvent()
	return b, err
}

// fill writes codes of normal numbers, which a scale turns into the kind of input.
func (b *bench) fill(kind sweptKind) error {
	r := rand.New(rand.NewPCG(1, 2))
	const step = 4.5 / 448 // of a code, for numbers up to 4.5
	values := make([]float64, sweptMost)
	for i := range values {
		values[i] = r.NormFloat64() / step
		if kind.dominant && i >= 128 { // the first row, or two of them for D = 64, keep large codes
			values[i] /= kind.scale
		}
	}
	codes := make([]byte, len(values))
	tensor.Encode(manifest.E4M3, codes, values)
	for _, input := range b.inputs {
		for i := range sweptBatch {
			if err := b.s.ToDevice(input.Slice(int64(i)*sweptMost, sweptMost), codes); err != nil {
				return err
			}
		}
	}
	scales := make([]float64, 16)
	for i := range scales {
		scales[i] = step * kind.scale
	}
	data := make([]byte, 64)
	tensor.Encode(manifest.F32, data, scales)
	return b.s.ToDevice(b.scale, data)
}

// capture records a batch of launches of a variant.
func (b *bench) capture(m *manifest.Manifest, variant string, dims manifest.Dims, batch int) (*driver.Graph, error) {
	steps, err := m.Steps(variant, dims, nil)
	if err != nil {
		return nil, err
	}
	g := steps[0].Geometry
	dim := func(x [3]int) driver.Dim { return driver.Dim{X: uint32(x[0]), Y: uint32(x[1]), Z: uint32(x[2])} }
	l := driver.Launch{Grid: dim(g.Grid), Block: dim(g.Block), Shared: g.SharedMemory}
	if g.Cluster != [3]int{1, 1, 1} {
		l.Cluster = dim(g.Cluster)
	}
	f := b.functions[variant]
	if err := f.AllowShared(g.SharedMemory); err != nil {
		return nil, err
	}
	return b.s.Capture(func() error {
		for i := range batch {
			var args driver.Args
			for _, input := range b.inputs {
				args.Pointer(input.Slice(int64(i)*sweptMost, sweptMost).Ptr)
			}
			args.Pointer(b.scale.Ptr).Pointer(b.scale.Ptr).Pointer(b.scale.Ptr).Pointer(b.output.Slice(int64(i)*2*sweptMost, 2*sweptMost).Ptr)
			for _, d := range dims {
				args.Int32(int32(d.Value))
			}
			if err := f.Launch(b.s, l, &args); err != nil {
				return err
			}
		}
		return nil
	})
}

// once times one replay, after what the caches held is gone.
func (b *bench) once(g *driver.Graph) (time.Duration, error) {
	if err := b.s.Fill32(b.cold, 0); err != nil {
		return 0, err
	}
	if err := b.begun.Record(b.s); err != nil {
		return 0, err
	}
	if err := g.Launch(b.s); err != nil {
		return 0, err
	}
	if err := b.ended.Record(b.s); err != nil {
		return 0, err
	}
	if err := b.s.Synchronize(); err != nil {
		return 0, err
	}
	return b.ended.Since(b.begun)
}

// row times all variants on one problem, in turns that begin with a different one each round.
func (b *bench) row(m *manifest.Manifest, variants []string, dims manifest.Dims) ([]string, error) {
	const rounds = 9
	work := 4 * float64(value(dims, "H")) * math.Pow(float64(value(dims, "S")), 2) * float64(value(dims, "D"))
	batch := int(max(1, min(sweptBatch, 100/(work/100e6+4)))) // about 100 µs at 100 TFLOP/s
	cells := make([]string, len(variants))
	graphs := map[int]*driver.Graph{}
	for i, name := range variants {
		cells[i] = "-"
		if !m.Supports(name, dims) {
			continue
		}
		g, err := b.capture(m, name, dims, batch)
		if err != nil {
			return nil, fmt.Errorf("%s on %s: %w", name, dims, err)
		}
		defer g.Close()
		graphs[i] = g
	}
	times := make([][]time.Duration, len(variants))
	for round := range rounds + 1 {
		for j := range variants {
			i := (j + 3*round) % len(variants)
			if graphs[i] == nil {
				continue
			}
			took, err := b.once(graphs[i])
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", variants[i], dims, err)
			}
			if round > 0 { // the first one warms up
				times[i] = append(times[i], took)
			}
		}
	}
	for i := range graphs {
		slices.Sort(times[i])
		cells[i] = fmt.Sprintf("%.3f", times[i][rounds/2].Seconds()*1e6/float64(batch))
	}
	return cells, nil
}

func sweep(c *driver.Context, m *manifest.Manifest, images map[string][]byte) ([]string, error) {
	b, err := newBench(c, images)
	if err != nil {
		return nil, err
	}
	variants := sweptVariants(m)
	var rows []string
	for _, kind := range sweptKinds {
		if err := b.fill(kind); err != nil {
			return nil, err
		}
		for _, d := range sweptProblems() {
			cells, err := b.row(m, variants, d)
			if err != nil {
				return nil, err
			}
			rows = append(rows, fmt.Sprintf("%d,%d,%d,%d,%s,%s", value(d, "H"), value(d, "S"), value(d, "D"), value(d, "causal"), kind.name, strings.Join(cells, ",")))
		}
	}
	return rows, nil
}
