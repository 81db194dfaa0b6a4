package manifest

import (
	"strings"
	"testing"
)

const persistent = `
version: 1
name: persistent
mode: cuda
entry: k
source: k.cu
arch: [sm_90]
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: parts, dtype: i32, access: scalar, setting: 2*SMS}
reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}
tolerance: {abs: 1}
shapes: {one: {N: 4096}}
scratch: [{name: partial, dtype: f32, shape: [SMS]}]
launch: {grid: ["min(2*SMS, N/16)"], block: [256], args: [x, y, parts, partial]}
`

// A launch may follow the number of SMs. What is asked and what is compiled may not, and a dim of that name is a dim.
func TestNumberOfSMs(t *testing.T) {
	m, err := Parse("kernel.yaml", []byte(persistent))
	if err != nil {
		t.Fatal(err)
	}
	for sms, grid := range map[int]int{0: 256, 58: 116} {
		on := m
		if sms > 0 {
			on = m.On(sms)
		}
		steps, err := on.Steps("default", m.Shapes[0].Dims, nil)
		if err != nil || steps[0].Grid[0] != grid {
			t.Errorf("%d SMs: a grid of %v (%v), want %d", sms, steps, err, grid)
		}
		parts, err := on.ScalarValue(&on.Arguments[2], m.Shapes[0].Dims, nil)
		if err != nil || int(parts) != 2*on.smsHere() {
			t.Errorf("%d SMs: %v parts (%v)", sms, parts, err)
		}
	}
	for _, edit := range [][2]string{{"shape: [N]}\n  - {name: parts", "shape: [SMS]}\n  - {name: parts"}, {"setting: 2*SMS", "value: 2*SMS"}} {
		_, err := Parse("kernel.yaml", []byte(strings.Replace(persistent, edit[0], edit[1], 1)))
		if err == nil || !strings.Contains(err.Error(), "is not known here (known: N; a launch, its scratch and a setting know SMS, because the rest is the same on every GPU)") {
			t.Errorf("%s: %v", edit[1], err)
		}
	}
	own, err := Parse("kernel.yaml", []byte(strings.NewReplacer("{N: 4096}", "{N: 4096, SMS: 4}", "setting: 2*SMS", "value: 2*SMS").Replace(persistent)))
	if err != nil {
		t.Fatal(err)
	}
	if steps, err := own.On(58).Steps("default", own.Shapes[0].Dims, nil); err != nil || steps[0].Grid[0] != 8 {
		t.Errorf("a dim SMS of 4: a grid of %v (%v)", steps, err)
	}
}
