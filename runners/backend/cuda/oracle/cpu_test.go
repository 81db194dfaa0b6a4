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

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
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
#define __noinline__
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
        std::vector<byte> slots(d.stride * launches);
        std::vector<u64> maxima(d.groups * launches + 1);
        std::vector<double> drawn(d.elements * launches);
        d.slots = slots.data();
        d.keys = (u64 *)a.data();
        d.maxima = maxima.data();
        d.drawn = drawn.data();
        u64 scaleOffset = ((u64 *)b.data())[1], scaleType = ((u64 *)b.data())[2];
        auto values = take(), orders = take();
        d.recorded = values.empty() ? 0 : (double *)values.data();
        d.orders = (u64 *)orders.data();
        if (d.quantized) {
            each(3, launches, [&] { find_maxima(d); });
            each(1, launches, [&] { write_scales(d, scaleOffset, scaleType); });
        }
        each(3, launches, [&] { draw(d); });
        give(slots.data(), slots.size());
        for (u64 size = 4; size <= 8; size += 4)
            for (u64 original = 0; original < 2; original++) {
                std::vector<byte> wide(size * d.elements * launches);
                each(3, launches, [&] { widen(d, wide.data(), size * d.elements, 0, size == 4 ? F32 : F64, original); });
                give(wide.data(), wide.size());
            }
    } else {
        Compare c;
        memcpy(&c, spec.data(), sizeof c);
        if (spec.size() != sizeof c) return 4;
        byte *got = a.data(), *want = b.data() + 8;
        std::vector<double> partial(8 * FIGURES), sums(FIGURES * 2);
        c.got.slots = &got;
        c.want.slots = &want;
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

// inits is an argument for every way to fill one, by name.
func inits(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "inits", "arguments.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, arg, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || all[name] != "" {
			t.Fatalf("%q is no name and an argument, or there twice", line)
		}
		all[name] = arg
	}
	return all
}

// The device draws, quantises and widens to the very bits of the host, whatever
// the format, the distribution and the grouping.
func TestDeviceDrawsAsTheHost(t *testing.T) {
	run := onCPU(t)
	for name, arg := range inits(t) {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "testdata", "inits", "kernel.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := manifest.Parse("kernel.yaml", []byte(strings.Replace(string(text), "$ARGUMENT", arg, 1)))
			if err != nil {
				t.Fatal(err)
			}
			dists := distribution.All()
			if a := m.Arguments[0]; a.Fields == nil && a.Init.Draw != manifest.ByPolicy {
				dists = dists[:1] // whatever the policy asks for
			}
			for _, dist := range dists {
				compareDraw(t, run, m, dist)
			}
		})
	}
}

func compareDraw(t *testing.T, run func(string, ...[]byte) []byte, m *manifest.Manifest, dist distribution.Kind) {
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

func compareInput(t *testing.T, run func(string, ...[]byte) []byte, m *manifest.Manifest, outline *tensor.Problem, dist distribution.Kind, in input) {
	t.Helper()
	compareInputOf(t, run, m, outline, nil, dist, in, []uint64{3, 1 << 47})
}

func compareInputOf(t *testing.T, run func(string, ...[]byte) []byte, m *manifest.Manifest, outline *tensor.Problem, recordings tensor.Recordings, dist distribution.Kind, in input, seeds []uint64) {
	t.Helper()
	s := &InputBatch{o: &Oracle{Recordings: recordings}, problem: outline, Layout: tensor.NewLayout(outline.Args, 0), Launches: len(seeds), dist: dist}
	s.inputs = []input{in}
	s.slots.Size = int64(s.Layout.Size * len(seeds))
	a := s.of(in)
	var keys, orders []uint64
	for _, seed := range seeds {
		key, order := s.keysOf(in, seed)
		keys, orders = append(keys, key...), append(orders, order...)
	}
	var values []byte
	if r := recordings[dist]; r != nil {
		if on, ok := r.On(a); ok {
			values = make([]byte, 8*len(on.Values))
			tensor.Encode(manifest.F64, values, on.Values)
		}
	}
	extra := []uint64{uint64(len(seeds)), 0, 0}
	if at := outline.Args[0].Scales; at >= 0 {
		extra[1], extra[2] = uint64(s.Layout.Offsets[at]), code(manifest.DTypes(), outline.Args[at].DType)
	}
	out := run("draw", s.spec(in, 0), words(keys...), words(extra...), values, words(orders...))
	slots, wide := out[:s.Layout.Size*len(seeds)], out[s.Layout.Size*len(seeds):]
	for i, seed := range seeds {
		p, err := recordings.Problem(m, m.Shapes[0], nil, dist, seed)
		if err != nil {
			t.Fatal(err)
		}
		slot := slots[i*s.Layout.Size:][:s.Layout.Size]
		for k, arg := range p.Args {
			if arg.Bytes == nil || !arg.Reads() || k == in.arg && in.member >= 0 || k != in.arg && recordings != nil && !arg.IsScale {
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
			floats, doubles := wide[4*a.Elements*(what*len(seeds)+i):], wide[8*a.Elements*len(seeds)+8*a.Elements*(what*len(seeds)+i):]
			for k, v := range want {
				if g := math.Float32frombits(le.Uint32(floats[4*k:])); g != float32(v) {
					t.Fatalf("%s, seed %d: the reference is given %v for %v (original: %d)", dist, seed, g, v, what)
				}
				if g := math.Float64frombits(le.Uint64(doubles[8*k:])); g != v {
					t.Fatalf("%s, seed %d: the reference in Python is given %v for %v (original: %d)", dist, seed, g, v, what)
				}
			}
		}
	}
}

// A slot on the device is filled as the host would fill it, in every format and with any rest.
func TestFills(t *testing.T) {
	for _, d := range manifest.DTypes() {
		for elements := range 9 {
			args := []tensor.Arg{
				{Name: "x", DType: d, Access: manifest.In, Shape: []int{elements}, Elements: elements, Scales: -1},
				{Name: "y", DType: d, Access: manifest.Out, Shape: []int{elements}, Elements: elements, Scales: -1},
				{Name: "n", DType: manifest.I32, Access: manifest.Scalar, Elements: 1, Scales: -1},
			}
			if elements == 3 {
				args[0].Bytes = make([]byte, args[0].Size()-1)
				for i := range args[0].Bytes {
					args[0].Bytes[i] = byte(7 + i)
				}
			}
			l := tensor.NewLayout(args, 0)
			want, got := make([]byte, l.Size), make([]byte, l.Size)
			l.Fill(want, args)
			for _, f := range fills(l, args) {
				word := le.AppendUint32(nil, f.word)
				for i := range f.size {
					if got[f.at+i] = word[i%4]; f.data != nil {
						got[f.at+i] = f.data[i]
					}
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%d elements of %s:\n%x on the device\n%x on the host", elements, d, got, want)
			}
		}
	}
}

// The device counts and measures as tensor.Compare does.
func TestDeviceComparesAsTheHost(t *testing.T) {
	run := onCPU(t)
	nan, inf := math.NaN(), math.Inf(1)
	for _, d := range manifest.DTypes() {
		for name, c := range map[string]struct{ got, want []float64 }{
			"equal":      {[]float64{1, 2, -3, 0, 5}, []float64{1, 2, -3, 0, 5}},
			"off":        {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, []float64{1, 2, 3, 4.5, 5, 6, 7, 12, 9}},
			"not finite": {[]float64{nan, inf, -inf, 1, 2, inf}, []float64{1, inf, inf, nan, 2, 3}},
			"zeros":      {[]float64{0, 0, 0}, []float64{1, -1, 1}},
			"from zero":  {[]float64{1, 0, 0}, []float64{0, 0, 0}},
			"nothing":    {[]float64{}, []float64{}},
		} {
			t.Run(fmt.Sprintf("%s %s", d, name), func(t *testing.T) {
				got := make([]byte, d.Bytes(len(c.got)))
				tensor.Encode(d, got, c.got)
				if len(c.got) > 3 {
					tensor.Poison(d, got[d.Bytes(3):d.Bytes(4)])
				}
				want := make([]byte, 4*len(c.want))
				tensor.Encode(manifest.F32, want, c.want)
				tolerance := manifest.Tolerance{Abs: 0.1, Rel: 0.01}
				host, err := tensor.Compare(d, got, c.want, tolerance)
				if err != nil {
					t.Fatal(err)
				}
				sums := run("compare", compareSpec(plainValues(d, len(c.got)), plainValues(manifest.F32, len(c.got)), len(c.want), tolerance, 0), got, append(words(1), want...))
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

// plainValues is struct Values of an array that lies at the start of its slot.
func plainValues(d manifest.DType, elements int) []byte {
	args := []tensor.Arg{{DType: d, Access: manifest.Out, Elements: elements}}
	return TargetOf(args, tensor.Layout{Offsets: []int{0}}, Places{}).values(0)
}

const blocksManifest = `
version: 1
name: quantise
mode: cuda
entry: quantise
source: quantise.cu
arch: [sm_90]
launch: {grid: [R], block: [32]}
arguments:
  - {name: x, dtype: f32, access: in, shape: [R]}
  - {name: y, access: out, shape: [R], fields: [{name: id, dtype: u8}, {name: d, dtype: f32}, {name: low, dtype: int4, count: 6}]}
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [1]}}
tolerance: {abs: 0.1}
shapes: {one: {R: 5}}
`

// Each member of an array of structs is compared separately, and what lies between members is not. An integer that is its own
// poison is an answer like any other.
func TestDeviceComparesMembers(t *testing.T) {
	run := onCPU(t)
	m, err := manifest.Parse("kernel.yaml", []byte(blocksManifest))
	if err != nil {
		t.Fatal(err)
	}
	p, err := tensor.Outline(m, m.Shapes[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	blocks, target := p.Args[1], TargetOf(p.Args, tensor.Layout{Offsets: make([]int, len(p.Args))}, Places{})
	if blocks.Size() != 5*12 || len(target.Outputs) != 3 {
		t.Fatalf("%d bytes of %d outputs", blocks.Size(), len(target.Outputs))
	}
	wants := map[string][]float64{"y_id": {165, 1, 2, 3, 4}, "y_d": {0.5, 1, 2, 3, 4}, "y_low": make([]float64, 30)}
	for i := range wants["y_low"] {
		wants["y_low"][i] = float64(i%16 - 8)
	}
	right, garbage := make([]byte, blocks.Size()), make([]byte, blocks.Size())
	for i := range garbage {
		garbage[i] = byte(31 * i)
	}
	for _, o := range target.Outputs {
		values := make([]byte, o.DType.Bytes(o.Elements))
		tensor.Encode(o.DType, values, wants[o.Name])
		for i, size := 0, o.DType.Bytes(o.Count); i < len(values); i += size {
			copy(right[i/size*o.Pitch+o.Offset:], values[i:i+size])
			copy(garbage[i/size*o.Pitch+o.Offset:], values[i:i+size])
		}
		if got := o.Values(garbage); !bytes.Equal(got, values) {
			t.Errorf("%s has values %x, want %x", o.Name, got, values)
		}
	}
	poison := make([]byte, blocks.Size())
	blocks.Poison(poison)
	for k, o := range target.Outputs {
		want := make([]byte, 4*o.Elements)
		tensor.Encode(manifest.F32, want, wants[o.Name])
		for name, c := range map[string]struct {
			got, beside []byte
			format      []byte
			bad         int
			same        bool
		}{
			"the reference": {garbage, want, plainValues(manifest.F32, o.Elements), 0, true},
			"the same":      {right, garbage, target.values(k), 0, true},
			"unwritten":     {poison, want, plainValues(manifest.F32, o.Elements), o.Elements - map[string]int{"y_id": 1}[o.Name], false},
		} {
			all := make([]byte, 8*figures*gatherThreads)
			copy(all, run("compare", compareSpec(target.values(k), c.format, o.Elements, m.Tolerance, 0), c.got, append(words(1), c.beside...)))
			e, same := summarise(all, o.Elements)
			if e.Bad != c.bad || e.Unwritten != c.bad || same != c.same {
				t.Errorf("%s against %s: %+v, equal: %v", o.Name, name, *e, same)
			}
		}
	}
}
