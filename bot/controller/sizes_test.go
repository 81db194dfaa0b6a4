package controller_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// sizes has the sizes of records in the journal, in bytes for one copy.
type sizes struct {
	deliveriesEach    float64 // deliveries for a pull request
	writesEach        float64 // writes to GitHub for it
	eventsEach        float64 // events of a pull request with one verdict
	delivery          float64 // one delivery, with the record of its state
	events            float64 // bytes of all events of a pull request with one verdict
	bundle            float64 // of a small repository
	evidence, verdict float64
}

// sizedWorld counts the requests that change something at GitHub.
func sizedWorld(t testing.TB) (*world, *atomic.Int64) {
	var writes atomic.Int64
	return newWorld(t, worldOptions{retold: true, limits: embedded.Limits{PerHour: -1}, refuse: func(rq *http.Request) *http.Response {
		if rq.Method != http.MethodGet && strings.Contains(rq.URL.Path, "/repos/") {
			writes.Add(1)
		}
		return nil
	}}), &writes
}

// measureSizes opens n pull requests and waits for a verdict on each. Then it compares the streams of the
// journal before and after. The sizes of evidence and verdicts come from recorded runs on a GPU.
func measureSizes(w *world, writes *atomic.Int64, n int) sizes {
	w.Helper()
	w.settle()
	before, written := w.usage(), writes.Load()
	var all []expectation
	for i := range n {
		pr := w.propose(fmt.Sprintf("size-%d", i), fmt.Sprintf("// speed 1.5%d\n", i), embedded.PROptions{Title: "Faster by tiles of 64"})
		all = append(all, expectation{pr: pr, conclusion: "success"})
	}
	w.rightInTheEnd(all)
	w.settle()
	after := w.usage()
	grown := func(stream string) float64 { return after[stream].bytes - before[stream].bytes }
	s := sizes{writesEach: float64(writes.Load()-written) / float64(n), events: grown("EVENTS") / float64(n), bundle: grown("OBJ_BUNDLES") / float64(n)}
	deliveries := after["DELIVERIES"].messages - before["DELIVERIES"].messages
	s.deliveriesEach = deliveries / float64(n)
	s.eventsEach = (after["EVENTS"].messages - before["EVENTS"].messages) / float64(n)
	s.delivery = (grown("DELIVERIES") + grown("KV_DELIVERY_STATE")) / deliveries
	s.evidence, s.verdict = w.artifactSizes()
	return s
}

type stored struct{ messages, bytes float64 }

func (w *world) usage() map[string]stored {
	w.Helper()
	list, err := w.running.journal.Usage(w.ctx)
	w.no(err)
	all := map[string]stored{}
	for _, u := range list {
		all[u.Stream] = stored{float64(u.Messages), float64(u.Bytes)}
	}
	return all
}

// artifactSizes stores the committed evidence of the attention kernel and the verdicts on this evidence. It
// returns the mean size of each.
func (w *world) artifactSizes() (evidence, verdict float64) {
	w.Helper()
	text, err := os.ReadFile("../../policies/h200.yaml")
	w.no(err)
	rules, err := policy.Parse("h200.yaml", text)
	w.no(err)
	files, err := filepath.Glob("../../kernels/sdpa_fp8/evidence/all/stage*.json")
	w.no(err)
	if len(files) < 10 {
		w.Fatalf("there are %d files of evidence", len(files))
	}
	put := func(name string, value any) float64 {
		w.Helper()
		data, err := json.Marshal(value)
		w.no(err)
		before := w.usage()["OBJ_ARTIFACTS"].bytes
		w.no(w.running.journal.Artifacts.Pack(w.ctx, name, data))
		return w.usage()["OBJ_ARTIFACTS"].bytes - before
	}
	for i, file := range files {
		data, err := os.ReadFile(file)
		w.no(err)
		e, err := gates.ParseEvidence(file, data)
		w.no(err)
		evidence += put(fmt.Sprint("size-evidence-", i), e) / float64(len(files))
		verdict += put(fmt.Sprint("size-verdict-", i), change.Judge(rules, "h200.yaml", e, nil)) / float64(len(files))
	}
	return evidence, verdict
}

// BenchmarkSizes says how many bytes the journal stores for a delivery, a pull request and an artifact.
func BenchmarkSizes(b *testing.B) {
	w, writes := sizedWorld(b)
	var s sizes
	for b.Loop() {
		s = measureSizes(w, writes, 10)
	}
	for unit, value := range map[string]float64{
		"deliveries/pull": s.deliveriesEach, "writes/pull": s.writesEach, "events/pull": s.eventsEach, "B/delivery": s.delivery, "B/pull_in_EVENTS": s.events, "B/bundle": s.bundle, "B/evidence": s.evidence, "B/verdict": s.verdict,
	} {
		b.ReportMetric(value, unit)
	}
}

// The page for operators states the sizes that this test measures, to a tenth, and computes a year from
// them.
func TestDocumentedSizes(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string) float64 {
		t.Helper()
		m := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \| ([0-9.,]+)`).FindStringSubmatch(string(page))
		if m == nil {
			t.Fatalf("docs/operate/scale.md has no row %q", name)
		}
		n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const deliveriesRow, writesRow, eventsRow = "deliveries for a pull request", "writes to GitHub for a pull request with one verdict", "events of a pull request with one verdict"
	w, writes := sizedWorld(t)
	s := measureSizes(w, writes, 4)
	for name, measured := range map[string]float64{
		deliveriesRow:       s.deliveriesEach,
		eventsRow:           s.eventsEach,
		writesRow:           s.writesEach,
		"a delivery, in KB": s.delivery / 1000,
		"the events of a pull request with one verdict, in KB": s.events / 1000,
		"the evidence of one verdict, in KB":                   s.evidence / 1000,
		"a verdict with its tables, in KB":                     s.verdict / 1000,
	} {
		most := 0.1
		switch name {
		case deliveriesRow: // a busy machine answers a delivery too late, and gets it again
			most = 0.2
		case eventsRow:
			most = 0.4
		case writesRow: // the bot publishes progress once in a while, and a run lasts longer on a busy machine
			most = 0.6
		}
		if said := row(name); math.Abs(said-measured) > most*measured {
			t.Errorf("%s: the page says %v, measured %.1f", name, said, measured)
		}
	}
	// A year of a busy repository, from the figures of the page.
	const pulls, heads, kernels, days, month = 40, 3.0, 2.0, 365, 30
	deliveries := pulls * heads * row(deliveriesRow) * row("a delivery, in KB") * month / 1e6
	events := pulls * (heads * kernels) * row("the events of a pull request with one verdict, in KB") * days / 1e6
	artifacts := pulls * heads * kernels * (row("the evidence of one verdict, in KB") + row("a verdict with its tables, in KB")) * days / 1e6
	for name, computed := range map[string]float64{
		"DELIVERIES, 30 days, in GB": deliveries, "EVENTS, in GB": events, "ARTIFACTS, in GB": artifacts, "all of it, in GB": deliveries + events + artifacts,
	} {
		if said := row(name); math.Abs(said-computed) > 0.051 {
			t.Errorf("%s: the page says %v, and its figures give %.2f", name, said, computed)
		}
	}
}
