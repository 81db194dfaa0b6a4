package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

const tritonManifest = `version: 1
name: scale
mode: cuda
compiler: triton
entry: k
source: k.py
arch: [sm_90]
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
constants: {BLOCK: 256, SIZE: N}
launch: {grid: ["ceildiv(N, 256)"]}
reference: {source: reference.cu, entry: reference, launch: {grid: [N], block: [32]}}
tolerance: {abs: 0.1}
shapes: {one: {N: 10}}
limits: {N: 1..100}
`

// TestSameCodeOfAKernelThatFollowsSizes checks a Triton kernel, which has different machine code at
// different sizes. Both sides have equal code at every size that was compiled. They are the same
// kernel only if the sources and the constants are the same too. The bot, which has no folders,
// reaches the same result as a runner.
func TestSameCodeOfAKernelThatFollowsSizes(t *testing.T) {
	const source = "k/k.py"
	for name, c := range map[string]struct {
		edit map[string]string
		same bool
	}{
		"policy":     {map[string]string{".github/kernelgate.yaml": policyYAML + "# more\n"}, true},
		"source":     {map[string]string{source: "# another kernel where SIZE == 77\n"}, false},
		"constant":   {map[string]string{"k/kernel.yaml": strings.Replace(tritonManifest, "SIZE: N", "SIZE: \"N == 77 ? 78 : N\"", 1)}, false},
		"num_warps":  {map[string]string{"k/kernel.yaml": tritonManifest + "num_warps: \"N == 77 ? 8 : 4\"\n"}, false},
		"grid":       {map[string]string{"k/kernel.yaml": strings.Replace(tritonManifest, "ceildiv(N, 256)", "N == 77 ? 1 : ceildiv(N, 256)", 1)}, false},
		"more files": {map[string]string{"k/more.py": "# tuned\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t)
			base := r.commit(map[string]string{"k/kernel.yaml": tritonManifest, source: "# k\n", "k/reference.cu": "// truth\n", ".github/kernelgate.yaml": policyYAML})
			job, err := r.job(plan.Options{Base: base, Head: r.commit(c.edit), Kernels: []string{"k"}})
			if err != nil || len(job.Broken) > 0 {
				t.Fatal(err, job.Broken)
			}
			was, is := &gates.Build{OK: true, Code: "c"}, &gates.Build{OK: true, Code: "c"}
			if job.SameCode(was, is) != c.same {
				t.Errorf("the runner takes them for the same: %v", !c.same)
			}
			var file bytes.Buffer
			if _, err := bundle.Write(&file, job); err != nil {
				t.Fatal(err)
			}
			if job, err = bundle.Peek(&file); err != nil || job.SameCode(was, is) != c.same {
				t.Errorf("the bot takes them for the same: %v (%v)", !c.same, err)
			}
			job.Candidate.Sources, job.Baseline.Sources = "", ""
			if job.SameCode(was, is) {
				t.Error("sources that nobody has hashed are taken for the same")
			}
		})
	}
}
