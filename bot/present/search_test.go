package present

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/work/search"
)

// TestSearchReports writes the comment for each result of a search. The texts of a report do not notify
// anybody and do not end a code block, and none of their lines is a command.
func TestSearchReports(t *testing.T) {
	tune, bisect := grammar.Read("/tune scale"), grammar.Read("/bisect scale v1..main")
	ends := []struct {
		name    string
		request *grammar.Request
		line    string
		report  *search.Report
	}{
		{"a winner", &tune, "", &search.Report{Kind: search.Tune, Found: true, Device: "NVIDIA H200", Headline: "wide wins.", Text: "a table\n", Diff: "-default_variant: plain\n+default_variant: wide\n", Seconds: 61.4}},
		{"nothing better", &tune, "", &search.Report{Kind: search.Tune, Device: "NVIDIA H200", Headline: "Nothing is better than the incumbent.", Text: "a table\n"}},
		{"a commit", &bisect, "", &search.Report{Kind: search.Bisect, Found: true, Device: "NVIDIA L4", Headline: "scale became slower with 1a2b3c4 cc @everyone", First: &checkout.Commit{SHA: strings.Repeat("1a", 20)}, Text: "```\n/override because\n<script>\n"}},
		{"a fault", &bisect, "the device fell off the bus, cc @everyone", nil},
	}
	var b strings.Builder
	for _, end := range ends {
		run := change.Run{KernelSpec: change.KernelSpec{Name: "scale"}, Job: "job", Phase: change.Done, Search: end.request, Command: "comment-7", Result: &change.Result{Outcome: gates.Error, Line: end.line}}
		s := &change.State{Searches: []change.Run{run}, Commands: []change.Command{{Asked: change.Asked{ID: "comment-7", By: "ada", Request: *end.request}}}}
		v := View{State: s, Reports: map[string]*search.Report{}}
		if end.report != nil {
			v.Reports["job"] = end.report
		}
		if end.name == "a winner" {
			v.Pages = map[string]Page{"job": {URL: "https://bot.example/searches/job"}}
		}
		if len(v.NewReports()) != 1 {
			t.Errorf("%s: there is no report", end.name)
		}
		text := v.SearchReport(run)
		if r, ok := grammar.Parse(text); ok {
			t.Errorf("%s commands %v", end.name, r)
		}
		b.WriteString("# " + end.name + "\n\n" + text + "\n")
	}
	const golden = "testdata/searches.md"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), b.String()); err != nil || diff != "" {
		t.Errorf("%s differs (-golden +got; -update accepts): %v\n%s", golden, err, diff)
	}
}
