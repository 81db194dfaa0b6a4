package pages_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/watch"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// watched appends an event of a watched kernel to the journal.
func (w *world) watched(repo int64, folder string, e watch.Event) {
	w.Helper()
	seq := uint64(len(w.events) + 1)
	data, err := json.Marshal(e)
	w.no(err)
	w.events = append(w.events, journal.Event{Seq: seq, Run: watch.Subject(repo, folder, ""), Kind: watch.KindOf(e), At: epoch.Add(time.Duration(seq) * time.Second), Data: data})
}

// looked appends a look at a kernel that was due some hours ago.
func (w *world) looked(repo int64, kernel string, hours int, speed float64, change func(*watch.Look)) {
	w.Helper()
	l := watch.Look{
		Change: fmt.Sprint("watch ", hours), Job: "job", Due: epoch.Add(time.Hour - time.Duration(hours)*time.Hour), Kernel: kernel, Against: watch.Release, Tag: "v1.2.0",
		Base: strings.Repeat("b", 40), Head: fmt.Sprintf("%040d", hours), Branch: "main", Slower: 0.01, Cell: watch.Cell{Sources: fmt.Sprint(hours), Device: "NVIDIA H200"},
		Shapes: []watch.Shape{{Name: "mission", Dims: "S=512", Speed: speed, Lower: speed - 0.004, Upper: speed + 0.004, Baseline: 100, Candidate: 100 / speed}},
	}
	if change != nil {
		change(&l)
	}
	w.watched(repo, "kernels/"+kernel, watch.Looked{Repo: repo, Folder: "kernels/" + kernel, Look: l})
}

// regressions creates three watched repositories: one with a kernel of each kind of regression, one without
// a regression, and one that is compared with the best state of each kernel.
func regressions(w *world) {
	w.Helper()
	story(w)
	w.looked(1, "sdpa", 27, 1, nil)
	w.looked(1, "sdpa", 3, 0.968, nil)
	w.watched(1, "kernels/sdpa", watch.Bisected{Bisection: watch.Bisection{Good: fmt.Sprintf("%040d", 27), Bad: fmt.Sprintf("%040d", 3), First: strings.Repeat("d", 40)}})
	w.watched(1, "kernels/sdpa", watch.IssueWritten{Number: 12, Digest: "x"})
	w.looked(1, "softmax", 3, 0.9, nil)
	w.watched(1, "kernels/softmax", watch.IssueRefused{Status: 403})
	w.looked(1, "gemm", 27, 1, nil)
	w.looked(1, "gemm", 3, 1, func(l *watch.Look) { l.Compiler, l.Shapes[0].Baseline = "nvcc 13", 110 })
	w.watched(1, "kernels/gemm", watch.IssueWritten{Number: 13})
	w.watched(1, "kernels/gemm", watch.IssueDismissed{})
	w.looked(1, "scan", 3, 1.2, nil)
	w.looked(1, "gone", 27, 0.9, nil)
	w.watched(1, "kernels/gone", watch.Dropped{})
	w.finishAs(w.open(change.ID{Kind: change.Push, Repo: 2, SHA: strings.Repeat("8", 40)}, "org/fine", "", "sdpa"), recordOf(w, "stage1"))
	w.looked(2, "sdpa", 5, 1, nil)
	w.looked(2, "scan", 5, 0.991, nil)
	w.finishAs(w.open(change.ID{Kind: change.Push, Repo: 3, SHA: strings.Repeat("9", 40)}, "org/quick", "", "sdpa"), recordOf(w, "stage1"))
	w.looked(3, "sdpa", 5, 1, func(l *watch.Look) { l.Against, l.Tag = watch.Best, "" })
	w.settle()
}

// TestRegressions checks that the first page says for each watched repository whether its default branch
// regressed, and which kernel did.
func TestRegressions(t *testing.T) {
	w := newWorld(t)
	regressions(w)
	site := w.site(pages.Everybody{}).URL
	_, body := w.get(site + "/")
	section := regexp.MustCompile(`(?s)<section aria-label="Regressions">.*?</section>`).FindString(body)
	file := filepath.Join("testdata", "regressions.html")
	if *update {
		w.no(os.WriteFile(file, []byte(section+"\n"), 0o644))
	}
	want, err := os.ReadFile(file)
	w.no(err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(section+"\n", "\n")); diff != "" {
		t.Errorf("%s differs (-golden +got; -update accepts):\n%s", file, diff)
	}
	var home pages.HomePage
	_, text := w.get(site + "/api/v1")
	w.no(json.Unmarshal([]byte(text), &home))
	if len(home.Watches) != 3 || home.Watches[1].Repo != "org/fine" || home.Watches[1].Undecided != 1 || len(home.Watches[0].Regressed) != 3 || home.Watches[0].Kernels != 4 || home.Watches[2].Since != "" {
		t.Errorf("the API says %+v", home.Watches)
	}
}

// TestNothingIsWatched checks that the first page says nothing about regressions where nothing is watched.
func TestNothingIsWatched(t *testing.T) {
	w := newWorld(t)
	story(w)
	if _, body := w.get(w.site(pages.Everybody{}).URL + "/"); strings.Contains(body, "regressed") {
		t.Error("the page speaks of regressions")
	}
}

// TestRegressionsInBrowser inspects the first page with regressions in a browser.
func TestRegressionsInBrowser(t *testing.T) {
	w := newWorld(t)
	regressions(w)
	site := w.site(pages.Everybody{}).URL
	b := browser.Open(t)
	if says := b.Everything(site + "/"); !strings.Contains(says, "regressed since v1.2.0") {
		t.Errorf("the page says %q", says)
	}
}
