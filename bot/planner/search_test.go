package planner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/work/search"
	"github.com/kernelgate/kernelgate/runners/work/search/perform"
)

const searchedC = `#include <stdint.h>
void scale(const float *x, float *y, int32_t N)
{
    for (volatile int again = 0; again < 20000; again++) ;
    for (int i = 0; i < N; i++) y[i] = 2 * x[i];
}
`

const searchedPolicy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0], norm_error: "<= 1%"}
  performance: {target: {shapes: [mission], speedup: ">= +10%"}, rounds: {min: 6, max: 12}, interims: [6, 12], pairs: 6, control: 50%, solo_shift: 100%}
rules:
  - name: default
`

// searched creates a repository with a kernel that this machine can measure.
func searched(t *testing.T) *world {
	quick := strings.Replace(searchedC, "20000", "200", 1)
	two := strings.Replace(manifest, "source: scale.c\n", "variants: {plain: {source: scale.c}, quick: {source: quick.c}}\ndefault_variant: plain\n", 1)
	reference := "#include <stdint.h>\nvoid reference(const double *x, double *y, int32_t N) { for (int32_t i = 0; i < N; i++) y[i] = 2 * x[i]; }\n"
	return newWorld(t, usual().with(tree{
		folder + "/kernel.yaml": two, folder + "/scale.c": searchedC, folder + "/quick.c": quick, folder + "/reference.c": reference,
		policyFile: searchedPolicy,
	}))
}

// carryOut does what a runner does with a bundle.
func (w *world) carryOut(digest string) *search.Report {
	w.Helper()
	job, scratch := w.read(digest), w.TempDir()
	if err := os.Chmod(scratch, 0o755); err != nil {
		w.Fatal(err)
	}
	found, err := perform.Measure(measure.Config{Runner: measure.CPU})(w.Context(), job, scratch, &runners.Log{Now: time.Now})
	if err != nil || found.Evidence.Fault != "" || len(found.Artifacts) == 0 || filepath.Base(found.Artifacts[0]) != search.ReportFile {
		w.Fatalf("%q, %+v, %v", found.Evidence.Fault, found, err)
	}
	data, err := os.ReadFile(found.Artifacts[0])
	if err != nil {
		w.Fatal(err)
	}
	r, err := search.Parse(data)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// A bundle for a bisection has each state of the kernel once, and a runner finds the slow commit with it.
// Rules and reference come from the base branch, even if the commits change them.
func TestBisectBundle(t *testing.T) {
	w := searched(t)
	w.push("topic", tree{"README.md": "Better kernels.\n", policyFile: "version: 1\nrules: []\n"})
	w.push("topic", tree{folder + "/scale.c": "int\nx(\n"})
	w.push("topic", tree{folder + "/scale.c": searchedC})
	bad := w.push("topic", tree{folder + "/scale.c": strings.Replace(searchedC, "20000", "60000", 1)})
	head := w.push("topic", tree{"README.md": "The best kernels.\n"})
	id, facts := change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: 1}, change.Facts{Repo: w.repo.FullName(), Head: head, Base: "main", Open: true}
	digest, err := w.planner.Search(t.Context(), id, facts, planner.Search{Folder: folder, Bisect: &grammar.Bisect{Rounds: 12}})
	if err != nil {
		t.Fatal(err)
	}
	asked := w.read(digest).Search.Bisect
	var sides []int
	for _, c := range asked.Commits {
		sides = append(sides, c.Side)
	}
	if len(asked.Sides) != 3 || len(sides) != 5 || sides[0] != sides[2] || sides[3] != sides[4] {
		t.Errorf("%d states for the commits %v", len(asked.Sides), sides)
	}
	if r := w.carryOut(digest); !r.Found || r.First.SHA != bad || !r.Proven {
		t.Errorf("%+v", r)
	}
	for name, c := range map[string]struct {
		asked grammar.Bisect
		want  string
	}{
		"no such commit":  {grammar.Bisect{Good: "nowhere", Bad: "main"}, `"nowhere"`},
		"the wrong way":   {grammar.Bisect{Good: "topic", Bad: "main"}, "is not an ancestor"},
		"nothing between": {grammar.Bisect{Good: "main", Bad: "main"}, "has no commit"},
		"no such shape":   {grammar.Bisect{Shapes: []string{"huge"}}, `no shape "huge"`},
	} {
		if _, err := w.planner.Search(t.Context(), id, facts, planner.Search{Folder: folder, Bisect: &c.asked}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A bundle for a tuning has the search space of the head, and a runner finds the quick variant with it.
func TestTuneBundle(t *testing.T) {
	w := searched(t)
	head := w.push("topic", tree{"README.md": "Better kernels.\n", folder + "/scale.c": searchedC + "// longer\n"})
	id, facts := change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: 1}, change.Facts{Repo: w.repo.FullName(), Head: head, Base: "main", Open: true}
	digest, err := w.planner.Search(t.Context(), id, facts, planner.Search{Folder: folder, Tune: &grammar.Tune{Minutes: 1, Proposer: "grid"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.carryOut(digest); !r.Found || !strings.Contains(r.Diff, "+default_variant: quick") {
		t.Errorf("%+v", r)
	}
	for name, c := range map[string]struct {
		asked grammar.Tune
		want  string
	}{
		"no such variant": {grammar.Tune{Variants: []string{"wide"}}, `no variant "wide" (it has plain, quick)`},
		"no such shape":   {grammar.Tune{Shapes: []string{"huge"}}, `no shape "huge"`},
	} {
		if _, err := w.planner.Search(t.Context(), id, facts, planner.Search{Folder: folder, Tune: &c.asked}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
