package planner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/planner"
)

// second is another kernel in the folder of the first, whose source lies elsewhere.
var second = tree{
	folder + "/twice.kernel.yaml": strings.NewReplacer("name: scale", "name: twice", "source: scale.c\n", "root: csrc\nsource: twice.c\n", "sources: [\"*.c\", \"*.h\"]\n", "", "source: reference.c", "source: twice_reference.c").Replace(manifest),
	folder + "/twice_reference.c": "// truth\n", "csrc/twice.c": "// base\n",
}

// Two kernels of one folder are two in everything that the bot keeps: keys, bundles,
// digests and reruns; what a rule says of a path is said of each of them.
func TestSeveralInOneFolder(t *testing.T) {
	key := folder + "/twice.kernel.yaml"
	w := newWorld(t, usual().with(second))
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n", "csrc/twice.c": "// head\n"})
	p := w.plan(id, facts)
	if len(p.Problems) > 0 || len(p.Kernels) != 2 || p.Kernels[0].Folder != folder || p.Kernels[1].Folder != key {
		t.Fatalf("%+v", p.Plan)
	}
	one, two := p.Kernels[0], p.Kernels[1]
	if one.Bundle == two.Bundle || one.Sources == two.Sources || one.RequirementsDigest == two.RequirementsDigest || one.Name != "scale" || two.Name != "twice" {
		t.Errorf("they share something: %+v", p.Kernels)
	}
	for _, k := range p.Kernels {
		again, err := w.planner.Rerun(t.Context(), id, facts, planner.Rerun{Folder: k.Folder})
		if err != nil {
			t.Fatal(err)
		}
		if job := w.read(again); job.Key != k.Folder || job.Manifest.Name != k.Name {
			t.Errorf("asked for %s, got %s, which is %s", k.Folder, job.Key, job.Manifest.Name)
		}
	}
	if job := w.read(two.Bundle); job.Of(job.Candidate).Root != "csrc" || job.ManifestText != second[key] {
		t.Errorf("the second is\n%s", job.ManifestText)
	}
	alone := w.plan(w.propose(tree{"csrc/twice.c": "// other\n"}))
	if len(alone.Kernels) != 1 || alone.Kernels[0].Folder != key || !slices.Equal(alone.Paths, []string{"csrc/twice.c"}) {
		t.Errorf("%+v", alone.Plan)
	}
}
