package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

// A hub is a GitHub with a repository that has one CPU kernel, and an App installed in it.
type hub struct {
	hub   *embedded.Server
	app   *embedded.App
	repo  *embedded.Repo
	codes atomic.Int64 // kernels so far, all with different machine code
}

const (
	hubSecret = "a secret that GitHub knows"
	hubPages  = "pages: {public: [olga/kernels]}\n" // for judged
	// Few and short rounds: the kernels differ by a factor, not by a percentage.
	hubPolicy = `version: 1
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], secret_cases: 2, norm_error: "<= 1%"}
  performance: {target: {shapes: [mission], speedup: ">= +10%"}, rounds: {min: 6, max: 8}, pairs: 4, control: 50%, solo_shift: 100%}
rules:
  - name: default
`
)

// Kernels by the number of terms that they add up for each element. The result is the same.
const (
	faster   = 4
	baseline = 16
	slower   = 64
)

// hubKernel returns the source of a kernel. No problem has a negative size: with a different number, the machine code is different,
// and the bot has no evidence of it.
func hubKernel(terms int, number int64) string {
	return fmt.Sprintf(`void scale(const float *x, float *y, int n) {
	if (n < -%d) return;
	for (int i = 0; i < n; i++) {
		float sum = 0;
		for (int k = 0; k < %d; k++) sum += x[i] * %ff;
		y[i] = sum;
	}
}
`, number, terms, 2/float64(terms))
}

func newHub(t testing.TB) *hub {
	t.Helper()
	server, err := embedded.New(embedded.Options{Dir: t.TempDir(), Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	w := &hub{hub: server}
	if w.repo, err = server.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels"}); err != nil {
		t.Fatal(err)
	}
	if _, err = w.repo.Push("main", map[string]string{
		"kernels/scale/kernel.yaml": scripted.Manifest + "shapes:\n  mission: {N: 2000}\nlimits: {N: 1..100000}\nsecret: {N: 1..500}\n",
		"kernels/scale/scale.c":     hubKernel(baseline, 0),
		"kernels/scale/reference.c": "void reference(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n",
		".github/kernelgate.yaml":   hubPolicy,
	}, "Scale"); err != nil {
		t.Fatal(err)
	}
	if w.app, err = server.CreateApp(embedded.AppOptions{Slug: "kernelgate"}); err != nil {
		t.Fatal(err)
	}
	if _, err = w.app.Install(w.repo); err != nil {
		t.Fatal(err)
	}
	return w
}

// propose opens a pull request with a kernel of that many terms, and returns its head and the conclusion of its required check.
func (w *hub) propose(ctx context.Context, t testing.TB, branch string, terms int) (sha, conclusion string) {
	t.Helper()
	sha, err := w.repo.Push(branch, map[string]string{"kernels/scale/scale.c": hubKernel(terms, w.codes.Add(1))}, "Change")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.repo.OpenPR(embedded.PROptions{Author: "olga", Title: "Change", Head: branch}); err != nil {
		t.Fatal(err)
	}
	var c embedded.Check
	err = w.hub.WaitFor(ctx, func() bool {
		var ok bool
		c, ok = w.repo.Check(sha, "kernelgate")
		return ok && c.Status == "completed"
	})
	if err != nil {
		t.Errorf("%s has no verdict: %v", branch, err)
	}
	return sha, c.Conclusion
}

// verdicts opens n pull requests with a faster kernel and checks that all pass.
func verdicts(ctx context.Context, t *testing.T, w *hub, name string, n int) {
	t.Helper()
	for i := range n {
		if _, got := w.propose(ctx, t, fmt.Sprintf("%s-%d", name, i), faster); got != "success" {
			t.Fatalf("the pull request %s-%d got %q", name, i, got)
		}
	}
}

// proves opens a pull request with a faster kernel, which must pass, and one with a slower kernel, which must not. The bot has
// measured both.
func proves(ctx context.Context, t *testing.T, w *hub, bot, name string) {
	t.Helper()
	sha, got := w.propose(ctx, t, name+"-faster", faster)
	if got != "success" {
		t.Errorf("the check of the faster kernel concludes %q", got)
	}
	measured(ctx, t, bot, sha, gates.Pass, "")
	sha, got = w.propose(ctx, t, name+"-slower", slower)
	if got != "failure" {
		t.Errorf("the check of the slower kernel concludes %q", got)
	}
	measured(ctx, t, bot, sha, gates.Defer, gates.ReasonTooSlow)
}

// measured checks the verdict on a head and its evidence, which the bot's pages show: different machine code on both sides,
// correct outputs, and samples in every round.
func measured(ctx context.Context, t *testing.T, bot, sha string, outcome gates.Outcome, reason gates.Reason) {
	t.Helper()
	run := runOf(ctx, t, bot, sha)
	if run.Outcome != outcome || run.Reason != reason {
		t.Errorf("the verdict on %.7s is %s (%s): %s; want %s (%s)", sha, run.Outcome, run.Reason, run.Line, outcome, reason)
	}
	var e gates.Evidence
	fetchJSON(ctx, t, bot+"/runs/"+run.Job+"/evidence.json", &e)
	if e.SameCode || e.Fault != "" || e.Correctness == nil || len(e.Correctness.Cases) != 3 || e.Performance == nil || len(e.Performance.Rounds) < 6 {
		t.Fatalf("the evidence about %.7s: same code %v, fault %q, correctness %+v, performance %+v", sha, e.SameCode, e.Fault, e.Correctness, e.Performance)
	}
	for i, round := range e.Performance.Rounds {
		sides := map[rune]int{}
		for _, s := range round.Series {
			if s.Shape != "mission" {
				continue
			}
			for k, side := range strings.ReplaceAll(s.Order, " ", "") {
				if k < len(s.Nanos) && s.Nanos[k] > 0 {
					sides[side]++
				}
			}
		}
		if sides[gates.SideBaseline] < 4 || sides[gates.SideCandidate] < 4 {
			t.Errorf("round %d of %.7s has %v samples", i, sha, sides)
		}
	}
}

// runOf waits until the bot's pages show the run of a head with its outcome.
func runOf(ctx context.Context, t *testing.T, bot, sha string) pages.Row {
	t.Helper()
	for {
		var p pages.RepositoryPage
		for next := "/api/v1/kernels/olga/kernels"; next != ""; next = p.Older {
			p = pages.RepositoryPage{}
			fetchJSON(ctx, t, bot+next, &p)
			for _, run := range p.Runs {
				if run.Head == sha && run.Outcome != "" {
					return run
				}
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the pages of %s never show the verdict on %s", bot, sha)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func fetchJSON(ctx context.Context, t *testing.T, address string, into any) {
	t.Helper()
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(rq)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s", address, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
}
