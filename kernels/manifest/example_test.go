package manifest_test

import (
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

const softmax = `version: 1
name: softmax
mode: cuda
entry: softmax
source: softmax.cu
arch: [sm_89, sm_90]
arguments:
  - {name: x, dtype: f16, access: in, shape: [R, C]}
  - {name: y, dtype: f16, access: out, shape: [R, C]}
  - {name: columns, dtype: i32, access: scalar, value: C}
launch: {grid: ["ceildiv(R, ROWS)"], block: [128], shared_memory: 4*ROWS}
reference: {source: reference.cu, entry: softmax_reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.001}
shapes: {small: {R: 7, C: 64}, wide: {R: 512, C: 4096}}
secret: {R: 1..100, C: 64|128}
toggles: {ROWS: {values: [1, 2, 4], default: 2, layer: micro}}
work: {flops: 5*R*C, bytes: 4*R*C, peak: fp32}
`

func ExampleParse() {
	m, err := manifest.Parse("softmax/kernel.yaml", []byte(softmax))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Name, m.Mode, m.ShapeNames())
	fmt.Println(m.CPrototype(m.Entry))
	// Output:
	// softmax cuda [small wide]
	// void softmax(const uint16_t *x, uint16_t *y, int32_t columns);
}

// Expressions are computed for every shape when the manifest is read.
func ExampleParse_mistakes() {
	_, err := manifest.Parse("scale/kernel.yaml", []byte(`version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
arguments: [{name: x, dtype: f32, access: inout, shape: [N/2]}]
reference: {source: reference.c, entry: scale_reference}
tolerance: {rel: 1e-6}
shapes: {even: {N: 8}, odd: {N: 9}}
`))
	fmt.Println(err)
	// Output:
	// scale/kernel.yaml:6:58: arguments[0].shape[0]: "N/2" is not a whole number but 4.5 at shape odd, N=9 (use ceildiv, ceil or floor)
}

// A launch in numbers, for a shape and for another value of a toggle.
func ExampleManifest_Steps() {
	m, err := manifest.Parse("softmax/kernel.yaml", []byte(softmax))
	if err != nil {
		log.Fatal(err)
	}
	wide, _ := m.Shape("wide")
	for _, toggles := range []map[string]int{nil, {"ROWS": 4}} {
		steps, err := m.Steps("default", wide.Dims, toggles)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(steps[0].Grid, steps[0].Block, steps[0].SharedMemory)
	}
	// Output:
	// [256 1 1] [128 1 1] 8
	// [128 1 1] [128 1 1] 16
}

// A change may bring sources, and never what it is judged by.
func ExampleManifest_IsSource() {
	m, err := manifest.Parse("softmax/kernel.yaml", []byte(softmax))
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range []string{"softmax.cu", "tile.cuh", "reference.c", "kernel.yaml", "../other.cu"} {
		fmt.Println(file, m.IsSource(file))
	}
	// Output:
	// softmax.cu true
	// tile.cuh true
	// reference.c false
	// kernel.yaml false
	// ../other.cu false
}

// Secret shapes come from the manifest's ranges; who knows the public shapes has
// learnt nothing of them.
func ExampleManifest_DrawSecret() {
	m, err := manifest.Parse("softmax/kernel.yaml", []byte(softmax))
	if err != nil {
		log.Fatal(err)
	}
	for _, shape := range m.DrawSecret(m.DefaultVariant, rand.New(rand.NewPCG(1, 2)), 3) {
		fmt.Println(shape)
	}
	// Output:
	// secret1 (R=77 C=128)
	// secret2 (R=79 C=64)
	// secret3 (R=5 C=64)
}
