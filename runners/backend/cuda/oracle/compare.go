package oracle

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

var le = binary.LittleEndian

// figures of one comparison, in the order of the device code.
const (
	maxAbs = iota
	sumAbs
	sumDifference
	sumWant
	compared
	bad
	nans
	infs
	unwritten
	different
	figures
)

const gatherThreads = 128

// compareBlocks is how many blocks compare so many elements: enough for every processor of the GPU if there are many, and each
// thread of gather adds up a whole number of them.
func compareBlocks(elements int) int {
	return max(min(elements/(16*blockThreads), 1024), 1)
}

// A Target is where outputs lie: of a kernel in its own formats, or of the
// reference as floats.
type Target struct {
	Places  Places
	Layout  tensor.Layout
	Outputs []tensor.Output // in order
}

// TargetOf is the outputs among the arguments in slots.
func TargetOf(args []tensor.Arg, l tensor.Layout, places Places) Target {
	return Target{Places: places, Layout: l, Outputs: tensor.Outputs(args)}
}

// values is the device code's struct Values for one of the outputs.
func (t Target) values(output int) []byte {
	o := t.Outputs[output]
	count := o.Count
	if o.Pitch == 0 {
		count = max(o.Elements, 1) // all of it is one struct
	}
	return words(uint64(t.Places.table.Ptr), uint64(t.Layout.Offsets[o.Of]+o.Offset), code(manifest.DTypes(), o.DType), uint64(count), uint64(o.Pitch))
}

// Compare measures outputs against what they should be, launch by launch, and
// tells which of them are equal bit for bit.
func (o *Oracle) Compare(got, want Target, tolerance runners.ToleranceOf) ([]*gates.Errors, []bool, error) {
	launches := got.Places.count
	all, same := make([]*gates.Errors, launches), make([]bool, launches)
	for i := range all {
		all[i], same[i] = &gates.Errors{}, true
	}
	most := 0
	for _, o := range got.Outputs {
		most = max(most, compareBlocks(o.Elements))
	}
	if err := o.reserve(&o.partial, int64(8*figures*blockThreads*most*launches)); err != nil {
		return nil, nil, err
	}
	if err := o.reserve(&o.sums, int64(8*figures*gatherThreads*launches)); err != nil {
		return nil, nil, err
	}
	for k, output := range got.Outputs {
		elements, allowed := output.Elements, tolerance(output.Name)
		spec := compareSpec(got.values(k), want.values(k), elements, allowed, uint64(o.partial.Ptr))
		grid := func(blocks, threads int) driver.Launch {
			return driver.Launch{Grid: driver.Dim{X: uint32(blocks), Y: uint32(launches)}, Block: driver.Dim{X: uint32(threads)}}
		}
		blocks := compareBlocks(elements)
		if err := o.kernels["compare"].Launch(o.stream, grid(blocks, blockThreads), new(driver.Args).Bytes(spec, 8)); err != nil {
			return nil, nil, err
		}
		if err := o.kernels["gather"].Launch(o.stream, grid(1, gatherThreads), new(driver.Args).Pointer(o.partial.Ptr).Pointer(o.sums.Ptr).
			Uint64(uint64(blocks*blockThreads/gatherThreads))); err != nil {
			return nil, nil, err
		}
		sums := make([]byte, 8*figures*gatherThreads*launches)
		if err := o.stream.ToHost(sums, o.sums); err != nil {
			return nil, nil, err
		}
		for i := range launches {
			e, equal := summarise(sums[8*figures*gatherThreads*i:][:8*figures*gatherThreads], elements)
			runners.Add(all[i], output.Arg, e)
			same[i] = same[i] && equal
		}
	}
	return all, same, nil
}

// compareSpec is the device code's struct Compare.
func compareSpec(got, want []byte, elements int, allowed manifest.Tolerance, partial uint64) []byte {
	return slices.Concat(got, want, words(uint64(elements), math.Float64bits(allowed.Abs), math.Float64bits(allowed.Rel), partial))
}

// summarise makes the figures that people know of the device's sums.
func summarise(sums []byte, elements int) (e *gates.Errors, equal bool) {
	var f [figures]float64
	for t := range gatherThreads {
		for k := range figures {
			v := math.Float64frombits(le.Uint64(sums[8*(figures*t+k):]))
			if k == maxAbs {
				f[k] = max(f[k], v)
			} else {
				f[k] += v
			}
		}
	}
	e = &gates.Errors{
		Elements: elements, MaxAbs: finite(f[maxAbs]), Norm: finite(ratio(math.Sqrt(f[sumDifference]), math.Sqrt(f[sumWant]))),
		Bad: int(f[bad]), NaN: int(f[nans]), Inf: int(f[infs]), Unwritten: int(f[unwritten]),
	}
	if f[compared] > 0 {
		e.MeanAbs = finite(f[sumAbs] / f[compared])
	}
	return e, f[different] == 0
}

func ratio(top, bottom float64) float64 {
	if top == 0 {
		return 0
	}
	return top / bottom
}

// finite is what JSON can hold.
func finite(x float64) float64 {
	if x != x {
		return math.MaxFloat64
	}
	return min(x, math.MaxFloat64)
}
