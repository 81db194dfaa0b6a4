package side

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// TestCooperativeFits checks that a cooperative launch that does not fit is the failure of the side
// that requested it, and that the message says what to do.
func TestCooperativeFits(t *testing.T) {
	step := manifest.StepAt{Entry: "sum", Geometry: manifest.Geometry{Grid: [3]int{33, 4, 2}}}
	if err := tooLarge(step, 2, 132); err != nil {
		t.Errorf("264 blocks on 264 places: %v", err)
	}
	failed, ok := tooLarge(step, 1, 132).(*Failure)
	const want = "the cooperative launch of sum has 264 blocks, and the GPU holds 132 of them at once (1 on each of 132 SMs): make its grid smaller, or its blocks need less"
	if !ok || failed.Kind != gates.FailureLaunch || failed.Detail != want {
		t.Errorf("got %+v", failed)
	}
}

// TestPlaced checks that a step finds scratch behind the arguments, and that a missing name is an
// error.
func TestPlaced(t *testing.T) {
	p := placed{args: []tensor.Arg{{Name: "q"}, {Name: "p.scale", OfComposite: true}, {Name: "partial", Access: manifest.Scratched}}, offsets: []int{256, 0, 4096}, base: 1 << 40}
	i, err := p.find("partial")
	if err != nil || p.address(i) != 1<<40+4096 {
		t.Errorf("scratch is argument %d: %v", i, err)
	}
	if _, err := p.find("lse"); err == nil || !strings.Contains(err.Error(), "names lse") {
		t.Errorf("got %v", err)
	}
}
