package controller_test

import (
	"strings"
	"testing"
)

// While a manifest of the base branch has a mistake, every check fails with its line, wherever the
// sources lie: the bot cannot tell whether a change touches the kernel. The change that repairs it
// is measured, and merged once somebody has approved it; then the others are judged.
func TestMistakeInAManifestOfTheBase(t *testing.T) {
	const file = "gate/scale/kernel.yaml"
	w := newWorld(t, worldOptions{})
	apart := strings.Replace(strings.Replace(manifestYAML, "name: scale", "name: apart", 1), "source: scale.c\n", "root: src\nsource: scale.c\n", 1)
	_, err := w.repo.Push("main", map[string]string{
		file: strings.Replace(apart, "mode: cpu\n", "mode: cpu\nflavor: mild\n", 1), "gate/scale/reference.c": "// truth\n", "src/scale.c": "// speed 1\n",
	}, "A manifest with a mistake")
	w.no(err)
	w.settle()
	worse := w.bring("worse", map[string]string{"src/scale.c": "// WRONG speed 9\n"})
	docs := w.bring("docs", map[string]string{"README.md": "Read me.\n"})
	for _, pr := range []string{worse.HeadSHA(), docs.HeadSHA()} {
		w.concluded(pr, "failure")
	}
	w.said(worse, file+":4")
	if err := docs.Merge("olga"); err == nil {
		t.Error("a change was merged although a manifest cannot be read")
	}

	repair := w.bring("repair", map[string]string{file: apart, "src/scale.c": "// speed 1.3\n"})
	w.said(repair, "waits for /approve-policy")
	w.said(repair, "judged by the repaired one")
	w.settle()
	if err := repair.Merge("olga"); err == nil {
		t.Error("a repair was merged without approval")
	}
	w.comment(repair, "mara", "/approve-policy "+repair.HeadSHA())
	w.concluded(repair.HeadSHA(), "success")
	w.no(repair.Merge("olga"))
	w.settle()
	w.concluded(docs.HeadSHA(), "success")
	w.said(worse, "the output is wrong")
	w.concluded(worse.HeadSHA(), "failure")
}
