package side

import (
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// TestStarted checks that the compiler's description of the launch overrides the manifest's
// geometry.
func TestStarted(t *testing.T) {
	g := started(manifest.Geometry{Grid: [3]int{10, 2, 1}, Block: [3]int{1, 1, 1}, Cluster: [3]int{1, 1, 1}}, toolchain.Start{Block: [3]int{128, 1, 1}, Shared: 64, Cluster: 2})
	want := manifest.Geometry{Grid: [3]int{20, 2, 1}, Block: [3]int{128, 1, 1}, Cluster: [3]int{2, 1, 1}, SharedMemory: 64}
	if g != want {
		t.Errorf("got %+v, want %+v", g, want)
	}
	if g := started(manifest.Geometry{Grid: [3]int{10, 2, 1}}, toolchain.Start{Block: [3]int{64, 2, 1}}); g.Grid != [3]int{10, 2, 1} || g.Cluster != [3]int{1, 1, 1} {
		t.Errorf("without a cluster: %+v", g)
	}
}

// TestPass checks that arguments are passed in the formats that the code takes, and that an array
// at an address with the wrong alignment is refused.
func TestPass(t *testing.T) {
	args := []tensor.Arg{
		{Name: "x", DType: manifest.F32, Access: manifest.In, Shape: []int{4}, Elements: 4},
		{Name: "n", DType: manifest.I64, Access: manifest.Scalar, Elements: 1, Real: []float64{7}},
		{Name: "scale", DType: manifest.F64, Access: manifest.Scalar, Elements: 1, Real: []float64{0.5}},
	}
	address := func(base uint64) func(int) uint64 { return func(arg int) uint64 { return base + uint64(arg) } }
	list := &driver.Args{}
	all := []toolchain.Passed{{Argument: 0, Type: "*fp32"}, {Argument: 1, Type: "i32"}, {Argument: 2, Type: "fp32"}}
	none := func(int, toolchain.Descriptor) ([][]byte, error) { return nil, errors.New("nothing describes it") }
	if err := pass(list, all, args, address(256), none); err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		passed toolchain.Passed
		base   uint64
		want   string
	}{
		"between":            {toolchain.Passed{Argument: 0, Type: "*fp32"}, 264, "the array x lies at 0x108, no multiple of the 16"},
		"a number as array":  {toolchain.Passed{Argument: 1, Type: "*fp32"}, 256, "the argument n cannot be passed as *fp32"},
		"an array as number": {toolchain.Passed{Argument: 0, Type: "i64"}, 256, "the argument x cannot be passed as i64"},
		"no type":            {toolchain.Passed{Argument: 1, Type: "struct"}, 256, "cannot be passed as struct"},
		"a number as map":    {toolchain.Passed{Argument: 1, Type: "tensordesc<fp32[4]>", Descriptor: &toolchain.Descriptor{Axes: 1}}, 255, "the argument n cannot be passed as tensordesc"},
		"a map between":      {toolchain.Passed{Argument: 0, Type: "tensordesc<fp32[4]>", Descriptor: &toolchain.Descriptor{Axes: 1}}, 264, "the array x lies at 0x108, no multiple of the 16"},
		"a map":              {toolchain.Passed{Argument: 0, Type: "tensordesc<fp32[4]>", Descriptor: &toolchain.Descriptor{Axes: 1}}, 256, "nothing describes it"},
		"no argument":        {toolchain.Passed{Argument: 9, Type: "i32"}, 256, "argument 9 of 3 is passed"},
	} {
		if err := pass(&driver.Args{}, []toolchain.Passed{test.passed}, args, address(test.base), none); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want …%s…", what, err, test.want)
		}
	}
}
