package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// reading is a kernel that finds its inputs by other inputs, or unpacks them. Right is another way to the same result, and every
// wrong one replaces a part of it.
type reading struct {
	name, arguments, dims, threads, shapes string
	reference, baseline, right             string
	wrong                                  map[string][2]string
}

var readings = []reading{
	{
		name: "gather",
		arguments: `
  - {name: table, dtype: f32, access: in, shape: [V, D]}
  - {name: index, dtype: i32, access: in, shape: [T], init: 0..V-1}
  - {name: y, dtype: f32, access: out, shape: [T, D]}
  - {name: rows, dtype: i32, access: scalar, value: T}
  - {name: columns, dtype: i32, access: scalar, value: D}
  - {name: last, dtype: i32, access: scalar, value: V-1}`,
		dims: "[V]", threads: "T*D",
		shapes: "small: {V: 77, D: 8, T: 60}, mission: {V: 20000, D: 64, T: 8192}",
		reference: `extern "C" __global__ void reference(const float *table, const float *index, float *y, int rows, int columns, int last, long long V)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x, row = i / columns;
    if (row < rows && last + 1 == V)
        y[i] = table[(long long)index[row] * columns + i % columns];
}`,
		// One thread fetches a whole row, far from its neighbours' addresses.
		baseline: `extern "C" __global__ void k(const float *table, const int *index, float *y, int rows, int columns, int last)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    for (int c = 0; row < rows && c < columns; c++)
        y[row * columns + c] = table[(long long)index[row] * columns + c];
}`,
		right: `extern "C" __global__ void k(const float *table, const int *index, float *y, int rows, int columns, int last)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / columns;
    if (row >= rows) return;
    int at = index[row];
    y[i] = table[(long long)at * columns + i % columns];
}`,
		wrong: map[string][2]string{"of the last index": {"int at = index[row];", "int at = index[row] == last ? 0 : index[row];"}},
	},
	{
		name: "segments of pages",
		arguments: `
  - {name: x, dtype: f32, access: in, shape: [V]}
  - {name: starts, dtype: i32, access: in, shape: [B+1], init: {draw: offsets, total: T}}
  - {name: pages, dtype: u32, access: in, shape: [T], init: {draw: permutation, range: 0..V-1}}
  - {name: mask, dtype: f32, access: in, shape: [B, 32], init: {draw: mask, share: 0.5}}
  - {name: y, dtype: f32, access: out, shape: [B]}
  - {name: n, dtype: i32, access: scalar, value: B}`,
		dims: "[B, T]", threads: "B",
		shapes: "small: {V: 200, B: 9, T: 150}, mission: {V: 100000, B: 1000, T: 60000}",
		reference: `extern "C" __global__ void reference(const float *x, const float *starts, const float *pages, const float *mask, float *y, int n, long long B, long long T)
{
    int b = blockIdx.x * blockDim.x + threadIdx.x, kept = 0;
    if (b >= n || n != B || starts[B] != T) return;
    float sum = 0;
    for (int i = (int)starts[b]; i < (int)starts[b + 1]; i++) sum += x[(int)pages[i]];
    for (int i = 0; i < 32; i++) kept += expf(mask[32 * b + i]) == 1;
    y[b] = sum / kept;
}`,
		baseline: `extern "C" __global__ void k(const float *x, const int *starts, const unsigned *pages, const float *mask, float *y, int n)
{
    int b = blockIdx.x * blockDim.x + threadIdx.x, kept = 0;
    if (b >= n) return;
    float sum = 0;
    for (int i = starts[b]; i < starts[b + 1]; i++) sum += x[pages[i]];
    for (int i = 0; i < 32; i++) kept += mask[32 * b + i] == 0;
    y[b] = sum / kept;
}`,
		right: `extern "C" __global__ void k(const float *x, const int *starts, const unsigned *pages, const float *mask, float *y, int n)
{
    int b = blockIdx.x * blockDim.x + threadIdx.x, kept = 32;
    if (b >= n) return;
    float even = 0, odd = 0;
    for (int i = starts[b]; i < starts[b + 1]; i++) if (i % 2) odd += x[pages[i]]; else even += x[pages[i]];
    for (int i = 0; i < 32; i++) kept -= isinf(mask[32 * b + i]);
    y[b] = (even + odd) / kept;
}`,
		wrong: map[string][2]string{
			"of a segment without elements": {"(even + odd) / kept", "starts[b] == starts[b + 1] ? 1 : (even + odd) / kept"},
			"of the last segment":           {"i < starts[b + 1]", "i < starts[b + 1] - (b == n - 1)"},
		},
	},
	{
		name: "Q4_0",
		arguments: `
  - name: w
    access: in
    shape: [R, C/32]
    fields: [{name: d, dtype: f16, init: {scale: 0.1}}, {name: qs, dtype: u8, count: 16, init: any}]
  - {name: x, dtype: f32, access: in, shape: [C]}
  - {name: y, dtype: f32, access: out, shape: [R]}
  - {name: rows, dtype: i32, access: scalar, value: R}
  - {name: blocks, dtype: i32, access: scalar, value: C/32}`,
		dims: "[R, C]", threads: "R",
		shapes: "small: {R: 33, C: 64}, mission: {R: 2048, C: 1024}",
		reference: `extern "C" __global__ void reference(const float *w_d, const float *w_qs, const float *x, float *y, int rows, int blocks, long long R, long long C)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= R) return;
    double sum = 0;
    for (int c = 0; c < C; c++) {
        long long block = r * (C / 32) + c / 32;
        int q = (int)w_qs[16 * block + c % 16], nibble = c % 32 < 16 ? q % 16 : q / 16;
        sum += (double)w_d[block] * (nibble - 8) * x[c];
    }
    y[r] = (float)sum;
}`,
		baseline: `#include <cuda_fp16.h>
struct block { __half d; unsigned char qs[16]; };
extern "C" __global__ void k(const block *w, const float *x, float *y, int rows, int blocks)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0;
    for (int b = 0; b < blocks; b++)
        for (int i = 0; i < 16; i++) {
            const block &q = w[r * blocks + b];
            sum += __half2float(q.d) * ((q.qs[i] & 15) - 8) * x[32 * b + i] + __half2float(q.d) * ((q.qs[i] >> 4) - 8) * x[32 * b + i + 16];
        }
    y[r] = sum;
}`,
		right: `#include <cuda_fp16.h>
struct block { __half d; unsigned char qs[16]; };
extern "C" __global__ void k(const block *w, const float *x, float *y, int rows, int blocks)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0;
    for (int b = 0; b < blocks; b++) {
        const block &q = w[r * blocks + b];
        float part = 0;
        for (int i = 0; i < 16; i++) part += ((q.qs[i] & 15) - 8) * x[32 * b + i] + ((q.qs[i] >> 4) - 8) * x[32 * b + i + 16];
        sum += __half2float(q.d) * part;
    }
    y[r] = sum;
}`,
		wrong: map[string][2]string{"of the order of nibbles": {"part += ((q.qs[i] & 15) - 8) * x[32 * b + i] + ((q.qs[i] >> 4) - 8) * x[32 * b + i + 16]", "part += ((q.qs[i] & 15) - 8) * x[32 * b + 2 * i] + ((q.qs[i] >> 4) - 8) * x[32 * b + 2 * i + 1]"}},
	},
	{
		name: "packed",
		arguments: `
  - {name: a, dtype: int4, access: in, shape: [N]}
  - {name: b, dtype: e2m1, access: in, shape: [N]}
  - {name: w, dtype: int4, access: in, shape: [N], quantize: {scale: scale}}
  - {name: scale, dtype: f32, access: in, shape: [1]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}`,
		dims: "[N]", threads: "N",
		shapes: "small: {N: 101}, mission: {N: 100003}",
		reference: `extern "C" __global__ void reference(const float *a, const float *b, const float *w, float *y, int n, long long N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = a[i] + 16 * b[i] + w[i];
}`,
		baseline: `extern "C" __global__ void k(const unsigned char *a, const unsigned char *b, const unsigned char *w, const float *scale, float *y, int n)
{
    const float e2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int p = a[i / 2] >> i % 2 * 4 & 15, q = b[i / 2] >> i % 2 * 4 & 15, r = w[i / 2] >> i % 2 * 4 & 15;
    y[i] = (p < 8 ? p : p - 16) + 16 * (q < 8 ? e2m1[q] : -e2m1[q - 8]) + scale[0] * (r < 8 ? r : r - 16);
}`,
		right: `extern "C" __global__ void k(const unsigned char *a, const unsigned char *b, const unsigned char *w, const float *scale, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, shift = i % 2 * 4;
    if (i >= n) return;
    int p = a[i / 2] >> shift & 15, q = b[i / 2] >> shift & 15, r = w[i / 2] >> shift & 15;
    int exponent = q >> 1 & 3;
    float value = exponent ? ldexpf(1 + 0.5f * (q & 1), exponent - 1) : 0.5f * (q & 1);
    y[i] = ((p ^ 8) - 8) + 16 * (q & 8 ? -value : value) + scale[0] * ((r ^ 8) - 8);
}`,
		wrong: map[string][2]string{"of the order of nibbles": {"shift = i % 2 * 4", "shift = 4 - i % 2 * 4"}},
	},
	{
		name: "blocks written",
		arguments: `
  - {name: x, dtype: f32, access: in, shape: [R, 32]}
  - {name: w, access: out, shape: [R], fields: [{name: id, dtype: u8}, {name: d, dtype: f32, tolerance: {rel: 1e-6}}, {name: qs, dtype: int4, count: 32, tolerance: {abs: 1}}]}
  - {name: rows, dtype: i32, access: scalar, value: R}`,
		dims: "[R]", threads: "R",
		shapes: "small: {R: 33}, mission: {R: 20000}",
		reference: `extern "C" __global__ void reference(const float *x, float *w_id, float *w_d, float *w_qs, int rows, long long R)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= R) return;
    float most = 0;
    for (int i = 0; i < 32; i++) most = fmaxf(most, fabsf(x[32 * r + i]));
    w_id[r] = r % 256;
    w_d[r] = most / 7;
    for (int i = 0; i < 32; i++) w_qs[32 * r + i] = rintf(x[32 * r + i] / w_d[r]);
}`,
		baseline: `struct block { unsigned char id; float d; unsigned char qs[16]; };
extern "C" __global__ void k(const float *x, block *w, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float most = 0;
    for (int i = 0; i < 32; i++) most = fmaxf(most, fabsf(x[32 * r + i]));
    w[r].id = r;
    w[r].d = most / 7;
    for (int i = 0; i < 16; i++) w[r].qs[i] = ((int)rintf(x[32 * r + 2 * i] / w[r].d) & 15) | (int)rintf(x[32 * r + 2 * i + 1] / w[r].d) << 4;
}`,
		right: `struct block { unsigned char id; float d; unsigned char qs[16]; };
extern "C" __global__ void k(const float *x, block *w, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float most = 0;
    for (int i = 0; i < 32; i++) most = fmaxf(most, fabsf(x[32 * r + i]));
    block b = {(unsigned char)r, most / 7, {}};
    float scale = 7 / most;
    for (int i = 0; i < 16; i++) b.qs[i] = ((int)rintf(x[32 * r + 2 * i] * scale) & 15) | (int)rintf(x[32 * r + 2 * i + 1] * scale) << 4;
    w[r] = b;
}`,
		wrong: map[string][2]string{
			"of the scale":            {"most / 7, {}", "most / 8, {}"},
			"of the order of nibbles": {"(int)rintf(x[32 * r + 2 * i + 1] * scale) << 4", "(int)rintf(x[32 * r + 2 * i] * scale) << 4"},
		},
	},
}

func (r reading) trial(candidate, policy, arch string) trial {
	manifest := strings.NewReplacer("$ARGUMENTS", r.arguments, "$DIMS", r.dims, "$THREADS", r.threads, "$SHAPES", r.shapes).Replace(`version: 1
name: reading
mode: cuda
entry: k
arch: [sm_89, sm_90]
flags: [-O3]
source: scale.cu
arguments:$ARGUMENTS
launch: {grid: ["ceildiv($THREADS, 256)"], block: [256]}
reference: {source: reference.cu, entry: reference, dims: $DIMS, launch: {grid: ["ceildiv($THREADS, 256)"], block: [256]}}
tolerance: {abs: 0.002, rel: 0.0005}
shapes: {$SHAPES}
`)
	return trial{manifest: manifest, policy: policy, baseline: r.baseline, candidate: candidate, reference: r.reference, arch: arch}
}

// readingPolicy asks for the right values, and for speed too.
func readingPolicy(faster bool) string {
	text := `version: 1
gates:
  correctness: {shapes: all, seeds: [0, 1, 2], distributions: [normal, uniform], norm_error: "<= 0.1%", bad_elements: "<= 0%", determinism: true}
`
	if faster {
		text += `  performance: {target: {shapes: [mission], speedup: ">= +5%"}, rounds: {min: 6, max: 12}, pairs: 10, control: 3%, solo_shift: 10%}
`
	}
	return text + "rules:\n  - name: default\n"
}

// Kernels that gather, follow pages and segments, and unpack: right ones pass, the gather that is faster proves it, and each mistake
// is seen. Before that, every way to fill an input gives the host's bits on the device.
func TestGatherOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	t.Run("draws as the host", drawsAsTheHost)
	for _, r := range readings {
		policy := readingPolicy(r.name == "gather")
		t.Run(r.name, func(t *testing.T) {
			e, v := r.trial(r.right, policy, "").gather(t)
			if v.Outcome != gates.Pass {
				t.Errorf("%s (%s): %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
			}
			t.Logf("%s: %s", v.Outcome, v.Summary)
		})
		for name, edit := range r.wrong {
			t.Run(r.name+", wrong "+name, func(t *testing.T) {
				e, v := r.trial(strings.Replace(r.right, edit[0], edit[1], 1), policy, "").gather(t)
				if v.Outcome != gates.Defer || v.Reason != gates.ReasonCorrectness {
					t.Errorf("%s (%s): %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
				}
				t.Logf("%s: %s", v.Outcome, v.Summary)
			})
		}
	}
}

// drawsAsTheHost has the judge's device code draw every kind of input, for two launches at a small and a large shape, and holds it
// against the host's bytes; and what the reference is given against the host's values.
func drawsAsTheHost(t *testing.T) {
	template, err := os.ReadFile("testdata/inits/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := os.ReadFile("testdata/inits/arguments.txt")
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(oracleImage(t))
	if err != nil {
		t.Fatal(err)
	}
	d, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	device, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	thread, err := device.NewThread()
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	drawn := 0
	err = thread.Do(func(c *driver.Context) error {
		stream, err := c.NewStream()
		if err != nil {
			return err
		}
		o, err := oracle.Load(c, stream, image)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(arguments)) {
			name, argument, _ := strings.Cut(strings.TrimSpace(line), ": ")
			m, err := manifest.Parse("kernel.yaml", []byte(strings.Replace(string(template), "$ARGUMENT", argument, 1)))
			if err != nil {
				return err
			}
			for _, shape := range m.Shapes {
				dists := distribution.All()
				if shape.Name == "large" || m.Arguments[0].Fields == nil && m.Arguments[0].Init.Draw != manifest.ByPolicy {
					dists = dists[:1]
				}
				for _, dist := range dists {
					drawn++
					if err := drawOne(c, stream, o, m, shape, dist); err != nil {
						t.Errorf("%s, %s, %s: %v", name, shape, dist, err)
					}
				}
			}
		}
		return nil
	})
	if err != nil || drawn < 200 {
		t.Errorf("%d arrays drawn: %v", drawn, err)
	}
}

// oracleImage compiles the judge's own kernels for this GPU.
func oracleImage(t *testing.T) string {
	t.Helper()
	b := trial{policy: policyText, baseline: around(baselineBody), candidate: around(fasterBody)}.backend(t)
	path, err := b.oracle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func drawOne(c *driver.Context, stream *driver.Stream, o *oracle.Oracle, m *manifest.Manifest, shape manifest.Shape, dist distribution.Kind) error {
	outline, err := tensor.Outline(m, shape, nil)
	if err != nil {
		return err
	}
	seeds := []uint64{5, 1 << 47}
	sheet, err := o.NewInputBatch(outline, len(seeds))
	if err != nil {
		return err
	}
	reference, err := o.NewReference(outline)
	if err != nil {
		return err
	}
	if err := sheet.Draw(dist, seeds); err != nil {
		return err
	}
	for launch, seed := range seeds {
		host, err := tensor.NewProblem(m, shape, nil, dist, seed)
		if err != nil {
			return err
		}
		slot, err := fetchSlot(c, stream, o, sheet, len(seeds), launch)
		if err != nil {
			return err
		}
		for i, a := range host.Args {
			if a.Array() && a.Reads() && !bytes.Equal(sheet.Layout.Array(slot, i), a.Bytes) {
				return fmt.Errorf("seed %d: %s is not what the host draws", seed, a.Name)
			}
		}
		if err := reference.Prepare(sheet, launch, false); err != nil {
			return err
		}
		given := make([]byte, reference.Layout.Size)
		if err := stream.ToHost(given, reference.Slot); err != nil {
			return err
		}
		for i, a := range host.Reference() {
			if !a.Array() || !a.Reads() {
				continue
			}
			floats := reference.Layout.Array(given, i)
			for k, want := range a.Real {
				if got := math.Float32frombits(binary.LittleEndian.Uint32(floats[4*k:])); math.Float32bits(got) != math.Float32bits(float32(want)) {
					return fmt.Errorf("seed %d: the reference is given %v for element %d of %s, which is %v", seed, got, k, a.Name, want)
				}
			}
		}
	}
	if err := reference.Free(); err != nil {
		return err
	}
	return sheet.Free()
}

// fetchSlot has the sheet laid out in memory as a side's would be, and reads one launch's.
func fetchSlot(c *driver.Context, stream *driver.Stream, o *oracle.Oracle, sheet *oracle.InputBatch, launches, launch int) ([]byte, error) {
	size := int64(sheet.Layout.Size)
	room, err := c.Alloc(size * int64(launches))
	if err != nil {
		return nil, err
	}
	var addresses []driver.DevicePtr
	for i := range launches {
		addresses = append(addresses, room.Slice(size*int64(i), size).Ptr)
	}
	places, err := o.NewPlaces(addresses)
	if err != nil {
		return nil, err
	}
	if err := sheet.Scatter(places, launches); err != nil {
		return nil, err
	}
	slot := make([]byte, size)
	if err := stream.ToHost(slot, room.Slice(size*int64(launch), size)); err != nil {
		return nil, err
	}
	return slot, c.Free(room)
}

// All of these kernels compile, their references take what the manifest passes, and the judge's own code compiles, on hosts without
// a GPU too.
func TestGatherStatic(t *testing.T) {
	needsCompiler(t)
	const policyYAML = "version: 1\ngates: {ptxas: {registers: \"<= 64\"}}\nrules:\n  - name: default\n"
	for i, r := range readings {
		archs := []string{"sm_89", "sm_90"}
		if i > 0 {
			archs = archs[i%2 : i%2+1] // compiling takes its time
		}
		if _, err := policy.Parse("test.yaml", []byte(readingPolicy(i == 0))); err != nil {
			t.Error(err)
		}
		for _, arch := range archs {
			t.Run(r.name+" "+arch, func(t *testing.T) {
				t.Parallel()
				tr := r.trial(r.right, policyYAML, arch)
				if e, v := tr.gather(t); v.Outcome != gates.Pass {
					t.Errorf("%s (%s): %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
				}
				if _, err := tr.backend(t).reference(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		for name, edit := range r.wrong {
			if !strings.Contains(r.right, edit[0]) {
				t.Errorf("%s, wrong %s: there is no %q to replace", r.name, name, edit[0])
			}
		}
	}
	if _, err := (trial{policy: policyYAML, baseline: around(baselineBody), candidate: around(fasterBody), arch: "sm_90"}).backend(t).oracle(t.Context()); err != nil {
		t.Error(err)
	}
}
