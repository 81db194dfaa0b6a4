package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

const tritonYAML = `version: 1
name: scale
mode: cuda
compiler: triton
entry: scale_kernel
arch: [sm_90]
root: src
source: kernelpkg/ops/scale.py
include: [common]
arguments:
  - {name: y, dtype: f32, access: out, shape: [N]}
launch: {grid: [1]}
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.1}
shapes: {small: {N: 64}}
`

// pythonPackage is a kernel in a package, whose manifest lies elsewhere.
func pythonPackage(manifest string) map[string]string {
	return map[string]string{
		".github/kernelgate.yaml": policyYAML, "k/kernel.yaml": manifest, "k/reference.cu": "// truth\n",
		"src/kernelpkg/__init__.py": "# p\n", "src/kernelpkg/util.py": "# u\n", "src/kernelpkg/ops/__init__.py": "# o\n", "src/kernelpkg/ops/scale.py": "from ..util import x\n", "common/sizes.py": "# s\n", "tools/run.py": "# t\n",
	}
}

// Files next to the manifest are no part of a build whose sources lie elsewhere, and the reason does not blame the branch.
func TestReferenceBesideManifest(t *testing.T) {
	r := newTree(t)
	files := pythonPackage(strings.Replace(tritonYAML, "{source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}", "{source: reference.py, entry: reference}", 1))
	delete(files, "k/reference.cu")
	files["k/reference.py"] = "def reference(N):\n    return [0] * N\n"
	base := r.commit(files)
	job, err := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"src/kernelpkg/util.py": "# edited\n"})}).Job(t.Context(), "k")
	if err != nil || len(job.Broken) > 0 {
		t.Fatal(err, job.Broken)
	}
	why := map[string]string{}
	for _, d := range job.Candidate.Differs {
		why[d.Path] = d.Why
	}
	if len(why) != 2 || !strings.Contains(why["k/reference.py"], "a build gets only the files below root and include") || !strings.Contains(why["k/kernel.yaml"], "it is a manifest") {
		t.Errorf("the differences are %q", why)
	}
}

// Every file that an import may read is the kernel's: its helper, the package's own file, an included module. The head's go to
// the candidate, and none of them to the baseline.
func TestPythonPackage(t *testing.T) {
	for name, c := range map[string]struct {
		manifest, file string
		touches        bool
	}{
		"a helper":                 {tritonYAML, "src/kernelpkg/util.py", true},
		"the package's own file":   {tritonYAML, "src/kernelpkg/__init__.py", true},
		"an included module":       {tritonYAML, "common/sizes.py", true},
		"a new module":             {tritonYAML, "src/kernelpkg/more.py", true},
		"elsewhere":                {tritonYAML, "tools/run.py", false},
		"a helper, from the top":   {strings.NewReplacer("root: src", "root: .", "source: ", "source: src/").Replace(tritonYAML), "src/kernelpkg/util.py", true},
		"elsewhere, from the top":  {strings.NewReplacer("root: src", "root: .", "source: ", "source: src/").Replace(tritonYAML), "tools/run.py", true},
		"an entry file":            {strings.NewReplacer("root: src", "root: .", "source: kernelpkg/ops/", "source: k/").Replace(tritonYAML), "k/scale.py", true},
		"the folder's own helpers": {strings.NewReplacer("root: src\n", "", "include: [common]\n", "", "source: kernelpkg/ops/", "source: ").Replace(tritonYAML), "k/sub/util.py", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t)
			files := pythonPackage(c.manifest)
			files["k/scale.py"] = "# own\n"
			base := r.commit(files)
			head := r.commit(map[string]string{c.file: "# edited\n"})
			p := r.plan(plan.Options{Base: base, Head: head})
			keys, err := p.Kernels(t.Context())
			if err != nil || (strings.Join(keys, " ") == "k") != c.touches {
				t.Fatalf("the change touches %q (%v)", keys, err)
			}
			if !c.touches {
				return
			}
			job, err := p.Job(t.Context(), "k")
			if err != nil || len(job.Broken) > 0 {
				t.Fatal(err, job.Broken)
			}
			file := filepath.Join(".repository", c.file)
			if rel, own := strings.CutPrefix(c.file, "k/"); own && name != "an entry file" {
				file = rel
			}
			text, err := os.ReadFile(filepath.Join(job.Candidate.Dir, file))
			if err != nil || string(text) != "# edited\n" {
				t.Errorf("the candidate has %q (%v)", text, err)
			}
			if text, _ := os.ReadFile(filepath.Join(job.Baseline.Dir, file)); string(text) == "# edited\n" {
				t.Error("the baseline has the head's file")
			}
			if job.Candidate.Sources == job.Baseline.Sources {
				t.Error("another helper is the same source")
			}
			if same, err := r.plan(plan.Options{Base: head, Head: head, Kernels: []string{"k"}}).Job(t.Context(), "k"); err != nil || same.Candidate.Sources != same.Baseline.Sources {
				t.Errorf("the same files are other sources (%v)", err)
			}
			for _, d := range job.Candidate.Differs {
				if strings.HasSuffix(d.Path, ".py") && (!strings.HasPrefix(d.Path, "k/") || strings.HasPrefix(name, "the folder")) {
					t.Errorf("a checkout has %s otherwise: %s", d.Path, d.Why)
				}
			}
		})
	}
}
