package oracle

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// shim runs a kernel on the CPU, thread by thread, on memory that comes on the
// standard input and goes to the standard output.
const shim = `#include <cmath>
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <vector>
#define __global__
#define __device__
struct uint4 { unsigned x, y, z, w; };
struct Index { unsigned x, y; };
static Index blockIdx, threadIdx, blockDim, gridDim;
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }
static void atomicMax(unsigned long long *p, unsigned long long v) { if (v > *p) *p = v; }
static void atomicMin(unsigned long long *p, unsigned long long v) { if (v < *p) *p = v; }
#include "oracle.cu"
template <class F> static void each(unsigned blocks, unsigned launches, F f)
{
    gridDim = {blocks, launches};
    blockDim = {4, 1};
    for (blockIdx.y = 0; blockIdx.y < launches; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
                f();
}
static std::vector<byte> take()
{
    u64 n;
    if (fread(&n, 8, 1, stdin) != 1) throw 1;
    std::vector<byte> v(n);
    if (n && fread(v.data(), 1, n, stdin) != n) throw 2;
    return v;
}
static void give(const void *p, u64 n) { fwrite(p, 1, n, stdout); }
int main(int argc, char **argv)
{
    auto spec = take(), a = take(), b = take();
    u64 launches = *(u64 *)b.data();
    if (!strcmp(argv[1], "draw")) {
        Draw d;
        memcpy(&d, spec.data(), sizeof d);
        if (spec.size() != sizeof d) return 3;
        std::vector<byte> slots(d.stride * launches), wide(4 * d.elements * launches), plain(wide.size());
        std::vector<u64> maxima(d.groups * launches + 1);
        std::vector<double> drawn(d.elements * launches);
        d.slots = slots.data();
        d.keys = (u64 *)a.data();
        d.maxima = maxima.data();
        d.drawn = drawn.data();
        u64 scaleOffset = ((u64 *)b.data())[1], scaleType = ((u64 *)b.data())[2];
        if (d.quantized) {
            each(3, launches, [&] { find_maxima(d); });
            each(1, launches, [&] { write_scales(d, scaleOffset, scaleType); });
        }
        each(3, launches, [&] { draw(d); });
        each(3, launches, [&] { widen(d, wide.data(), 4 * d.elements, 0, 0); });
        each(3, launches, [&] { widen(d, plain.data(), 4 * d.elements, 0, 1); });
        give(slots.data(), slots.size());
        give(wide.data(), wide.size());
        give(plain.data(), plain.size());
    } else {
        Compare c;
        memcpy(&c, spec.data(), sizeof c);
        if (spec.size() != sizeof c) return 4;
        byte *got = a.data(), *want = b.data() + 8;
        std::vector<double> partial(8 * FIGURES), sums(FIGURES * 2);
        c.got = &got;
        c.want = &want;
        c.partial = partial.data();
        each(2, 1, [&] { compare(c); });
        gridDim = {1, 1};
        blockDim = {2, 1};
        blockIdx = {0, 0};
        for (threadIdx.x = 0; threadIdx.x < 2; threadIdx.x++)
            gather(partial.data(), sums.data(), 4);
        give(sums.data(), 8 * sums.size());
    }
}
`

// onCPU compiles the device code as it is for the CPU.
func onCPU(t *testing.T) func(what string, parts ...[]byte) []byte {
	t.Helper()
	cxx, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler (c++) to run the device code on the CPU with")
	}
	dir := t.TempDir()
	for file, text := range map[string][]byte{"oracle.cu": Source, "shim.cc": []byte(shim)} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	exe := filepath.Join(dir, "oracle")
	if out, err := exec.CommandContext(t.Context(), cxx, "-O1", "-std=c++17", "-ffp-contract=off", "-fno-strict-aliasing", "-w", "-o", exe, filepath.Join(dir, "shim.cc")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(what string, parts ...[]byte) []byte {
		t.Helper()
		var in bytes.Buffer
		for _, p := range parts {
			binary.Write(&in, binary.LittleEndian, uint64(len(p)))
			in.Write(p)
		}
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), exe, what)
		cmd.Stdin = &in
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return out
	}
}

// The device draws, quantises and widens to the very bits of the host, whatever
// the format, the distribution and the grouping.
func TestDeviceDrawsAsTheHost(t *testing.T) {
	run := onCPU(t)
	var cases []struct{ arg, name string }
	for _, c := range []struct{ arg, name string }{
		{"dtype: f32, access: in, shape: [B, H, N]", "f32"},
		{"dtype: f64, access: in, shape: [N]", "f64 vector"},
		{"dtype: f32, access: in, shape: [H, N], infinities: true", "f32 with infinities"},
		{"dtype: f16, access: in, shape: [N], infinities: true", "f16 with infinities"},
		{"dtype: f16, access: in, shape: [B, N, H]", "f16"},
		{"dtype: bf16, access: in, shape: [H, N]", "bf16"},
		{"dtype: e5m2, access: in, shape: [H, N]", "e5m2 as drawn"},
		{"dtype: e2m1, access: in, shape: [H, N]", "e2m1 as drawn"},
		{"dtype: int4, access: in, shape: [H, N]", "int4 as drawn"},
		{"dtype: bool, access: in, shape: [H, N]", "bool as drawn"},
		{"dtype: f32, access: inout, shape: [N], init: ones", "fixed"},
		{"dtype: e4m3, access: in, shape: [B, H, N, 2], quantize: {per: [H], scale: s}", "e4m3 by head"},
		{"dtype: e5m2, access: in, shape: [B, H, N], quantize: {per: [B, H], scale: s}", "e5m2 by batch and head"},
		{"dtype: i8, access: in, shape: [B, H, N], quantize: {per: [B], scale: s}", "i8 by batch"},
		{"dtype: int4, access: in, shape: [B, H, N], quantize: {per: [B], scale: s}", "int4 by batch"},
		{"dtype: e2m1, access: in, shape: [B, H, N], quantize: {per: [B, H], scale: s}, init: {scale: 0.02}", "e2m1 scaled, by batch and head"},
		{"dtype: e4m3, access: in, shape: [H, N], init: -2..3, quantize: {per: [H], scale: s}", "e4m3 in a range, by head"},
		{"dtype: f32, access: in, shape: [H, N], init: {scale: 0.02}", "f32 scaled"},
		{"dtype: f16, access: in, shape: [H, N], init: {draw: distribution, range: 0..1, scale: 3}", "f16 held to a range"},
		{"dtype: f32, access: in, shape: [H, N], init: -0.5..2.25", "f32 in a range"},
		{"dtype: f32, access: in, shape: [H, N], init: {draw: sorted}", "f32 sorted"},
		{"dtype: f64, access: in, shape: [H, N], init: {draw: sorted, range: -3..7, each: row}", "f64 sorted by row"},
		{"dtype: f32, access: in, shape: [B, N, H], init: mask", "f32 mask"},
		{"dtype: bf16, access: in, shape: [B, N], init: {draw: mask, share: 0.9, whole_rows: true}", "bf16 mask of whole rows"},
		{"dtype: bool, access: in, shape: [N, H], init: {draw: mask, share: 0.5}", "bool mask"},
		{"dtype: f16, access: in, shape: [B, N, H], init: causal", "f16 causal, tall"},
		{"dtype: u8, access: in, shape: [H, N], init: causal", "u8 causal, wide"},
		{"dtype: i32, access: in, shape: [1], init: 3..9", "one i32"},
		{"dtype: u8, access: in, shape: [1], init: {draw: sorted, range: 3..9}", "one u8, sorted"},
		{"dtype: f32, access: in, shape: [N, 1], init: {draw: sorted, each: row}", "f32 sorted rows of one"},
		{"dtype: i64, access: in, shape: [2], init: {draw: offsets, total: N}", "two offsets"},
		{"dtype: i32, access: in, shape: [N], init: {draw: offsets, total: 20*H}", "offsets"},
		{"dtype: u16, access: in, shape: [B, N], init: {draw: offsets, total: 500, lengths: 1..20, each: row}", "offsets by row, of bounded lengths"},
		{"dtype: i64, access: in, shape: [N], init: {draw: offsets, total: 2*(N-1), lengths: 2..2}", "offsets of equal lengths"},
		{"dtype: i32, access: in, shape: [B, N], init: permutation", "permutation"},
		{"dtype: i32, access: in, shape: [B, N], init: {draw: permutation, range: 5..1000003}", "some of a permutation"},
		{"dtype: u8, access: in, shape: [N, H], init: {draw: permutation, range: 0..7, each: row}", "permutations by row"},
		{"dtype: u64, access: in, shape: [1], init: permutation", "permutation of one"},
		{"dtype: i32, access: in, shape: [N, B], init: {draw: sorted, range: -4..3}", "sorted, with repeats"},
		{"dtype: i64, access: in, shape: [H, N], init: {draw: sorted, range: -40..300000, each: row}", "sorted by row"},
		{"shape: [H, N], fields: [{name: d, dtype: f16, init: {scale: 0.1}}, {name: qs, dtype: u8, count: 16, init: any}], access: in", "Q4_0"},
		{"shape: [N], fields: [{name: a, dtype: u8, init: 1..3}, {name: b, dtype: f64}, {name: c, dtype: int4, count: 6}, {name: e, dtype: e2m1, count: 2, init: uniform}, {name: f, dtype: i16, count: H, init: {draw: permutation, each: row}}], access: in", "awkward structs"},
	} {
		cases = append(cases, c)
	}
	for _, d := range []string{"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool", "int4"} {
		for _, init := range []string{"distribution", "any", "0..1", "zero", "{draw: ones, scale: 3, range: 0..7}", "{scale: 2}"} {
			cases = append(cases, struct{ arg, name string }{"dtype: " + d + ", access: in, shape: [H, N], init: " + strings.Replace(init, "0..7", map[bool]string{true: "0..1", false: "0..7"}[d == "bool"], 1), d + " " + init})
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := "version: 1\nname: f\nmode: cuda\nentry: f\narch: [sm_90]\nsource: f.cu\nlaunch: {grid: [1], block: [32]}\narguments:\n  - {name: x, " + c.arg + "}\n"
			if strings.Contains(c.arg, "scale: s") {
				axes := c.arg[strings.Index(c.arg, "per: ")+5:]
				text += "  - {name: s, dtype: f32, access: in, shape: " + axes[:strings.Index(axes, "]")+1] + "}\n"
			}
			text += "  - {name: y, dtype: f32, access: out, shape: [N]}\nreference: {source: r.cu, entry: r, launch: {grid: [1], block: [32]}}\ntolerance: {abs: 0.1}\nshapes:\n  small: {B: 2, H: 3, N: 37}\n"
			m, err := kernels.Parse("kernel.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			dists := kernels.Distributions()
			if a := m.Arguments[0]; a.Fields == nil && a.Init.Draw != kernels.ByPolicy {
				dists = dists[:1] // whatever the policy asks for
			}
			for _, dist := range dists {
				compareDraw(t, run, m, dist)
			}
		})
	}
}

func compareDraw(t *testing.T, run func(string, ...[]byte) []byte, m *kernels.Manifest, dist kernels.Distribution) {
	t.Helper()
	outline, err := tensor.Outline(m, m.Shapes[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	inputs := []input{{member: -1, groups: outline.Args[0].Groups.Groups}}
	if members := outline.Args[0].Members; members != nil {
		inputs = nil
		for k := range members {
			inputs = append(inputs, input{member: k})
		}
	}
	for _, in := range inputs {
		compareInput(t, run, m, outline, dist, in)
	}
}

func compareInput(t *testing.T, run func(string, ...[]byte) []byte, m *kernels.Manifest, outline *tensor.Problem, dist kernels.Distribution, in input) {
	t.Helper()
	seeds := []uint64{3, 1 << 47}
	s := &Sheet{o: &Oracle{}, problem: outline, Layout: tensor.NewLayout(outline.Args, 0), Launches: len(seeds), dist: dist}
	s.inputs = []input{in}
	s.slots.Size = int64(s.Layout.Size * len(seeds))
	a := s.of(in)
	var keys []uint64
	for _, seed := range seeds {
		key := tensor.KeyOf(a.Distribution(dist), seed, a.Name, a.Shape)
		keys = append(keys, key[0], key[1], tensor.DominantKey(seed))
	}
	extra := []uint64{uint64(len(seeds)), 0, 0}
	if at := outline.Args[0].Scales; at >= 0 {
		extra[1], extra[2] = uint64(s.Layout.Offsets[at]), code(kernels.DTypes(), outline.Args[at].DType)
	}
	out := run("draw", s.spec(in, 0), words(keys...), words(extra...))
	slots, wide := out[:s.Layout.Size*len(seeds)], out[s.Layout.Size*len(seeds):]
	for i, seed := range seeds {
		p, err := tensor.NewProblem(m, m.Shapes[0], nil, dist, seed)
		if err != nil {
			t.Fatal(err)
		}
		slot := slots[i*s.Layout.Size:][:s.Layout.Size]
		for k, arg := range p.Args {
			if arg.Bytes == nil || !arg.Reads() || k == in.arg && in.member >= 0 {
				continue
			}
			if !bytes.Equal(s.Layout.Array(slot, k), arg.Bytes) {
				t.Fatalf("%s, seed %d, argument %s:\n%x on the device\n%x on the host", dist, seed, arg.Name, s.Layout.Array(slot, k), arg.Bytes)
			}
		}
		drawn := p.Args[in.arg]
		if in.member >= 0 {
			// The device was asked for this member alone.
			device, host := s.Layout.Array(slot, in.arg), drawn.Bytes
			for at := a.Offset; at < len(host); at += a.Pitch {
				if n := a.DType.Bytes(a.Count); !bytes.Equal(device[at:at+n], host[at:at+n]) {
					t.Fatalf("%s, seed %d, member %s at %d:\n%x on the device\n%x on the host", dist, seed, a.Name, at, device[at:at+n], host[at:at+n])
				}
			}
			drawn = drawn.Members[in.member]
		}
		for what, want := range map[int][]float64{0: drawn.Real, 1: drawn.Original} {
			got := wide[4*a.Elements*(what*len(seeds)+i):]
			for k, v := range want {
				if g := math.Float32frombits(le.Uint32(got[4*k:])); g != float32(v) {
					t.Fatalf("%s, seed %d: the reference is given %v for %v (original: %d)", dist, seed, g, v, what)
				}
			}
		}
	}
}

// The device counts and measures as tensor.Compare does.
func TestDeviceComparesAsTheHost(t *testing.T) {
	run := onCPU(t)
	nan, inf := math.NaN(), math.Inf(1)
	for _, d := range kernels.DTypes() {
		if d.Packed() {
			continue // no output is
		}
		for name, c := range map[string]struct{ got, want []float64 }{
			"equal":      {[]float64{1, 2, -3, 0, 5}, []float64{1, 2, -3, 0, 5}},
			"off":        {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, []float64{1, 2, 3, 4.5, 5, 6, 7, 12, 9}},
			"not finite": {[]float64{nan, inf, -inf, 1, 2, inf}, []float64{1, inf, inf, nan, 2, 3}},
			"zeros":      {[]float64{0, 0, 0}, []float64{1, -1, 1}},
			"from zero":  {[]float64{1, 0, 0}, []float64{0, 0, 0}},
			"nothing":    {[]float64{}, []float64{}},
		} {
			t.Run(fmt.Sprintf("%s %s", d, name), func(t *testing.T) {
				got := make([]byte, len(c.got)*d.Size())
				tensor.Encode(d, got, c.got)
				if len(c.got) > 3 {
					tensor.Poison(d, got[3*d.Size():4*d.Size()])
				}
				want := make([]byte, 4*len(c.want))
				tensor.Encode(kernels.F32, want, c.want)
				tolerance := tensor.Tolerance{Abs: 0.1, Rel: 0.01}
				host, err := tensor.Compare(d, got, c.want, tolerance)
				if err != nil {
					t.Fatal(err)
				}
				spec := words(0, 0, 0, 0, code(kernels.DTypes(), d), code(kernels.DTypes(), kernels.F32), uint64(len(c.want)),
					math.Float64bits(tolerance.Abs), math.Float64bits(tolerance.Rel), 0)
				sums := run("compare", spec, got, append(words(1), want...))
				all := make([]byte, 8*figures*gatherThreads)
				copy(all, sums)
				device, equal := summarise(all, len(c.want))
				if device.Bad != host.Bad || device.NaN != host.NaN || device.Inf != host.Inf || device.Unwritten != host.Unwritten ||
					device.Elements != host.Elements || device.MaxAbs != host.MaxAbs ||
					math.Abs(device.MeanAbs-host.MeanAbs) > 1e-12*host.MeanAbs || math.Abs(device.Norm-host.Norm) > 1e-12*host.Norm {
					t.Errorf("device %+v\nhost   %+v", *device, host)
				}
				if name == "nothing" != equal && name != "equal" {
					t.Errorf("told to be equal: %v", equal)
				}
			})
		}
	}
}
