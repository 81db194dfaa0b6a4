package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

func example() *Report {
	return &Report{Schema: schema, Kind: Bisect, Kernel: "scale", Device: "a device", Found: true, Headline: "It became slower.", Text: "a table\n", Seconds: 3,
		First: &checkout.Commit{SHA: "c", Subject: "Slower"}, Proven: true}
}

// Parse returns the report that was written. A text that is too long is cut after a whole character.
func TestReportRoundTrip(t *testing.T) {
	r := example()
	r.Text = strings.Repeat("é", maxText)
	file := filepath.Join(t.TempDir(), ReportFile)
	if err := r.Write(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(data)
	if err != nil || cmp.Diff(r, got) != "" || !strings.HasSuffix(got.Text, "é…") {
		t.Errorf("%v, %s", err, cmp.Diff(r, got))
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(*Report)
		want string
	}{
		"another version":         {func(r *Report) { r.Schema = "kernelgate/search/v9" }, "schema is"},
		"another kind":            {func(r *Report) { r.Kind = "guess" }, `kind is "guess"`},
		"no headline":             {func(r *Report) { r.Headline = "" }, "headline has 0 bytes"},
		"a long text":             {func(r *Report) { r.Text = strings.Repeat("x", maxText+4) }, "text or diff has more than"},
		"a diff of a bisection":   {func(r *Report) { r.Diff = "+x" }, "diff must be empty"},
		"no commit":               {func(r *Report) { r.First = nil }, "first must be set"},
		"a commit and nothing":    {func(r *Report) { r.Found = false }, "first must be set"},
		"more than a report":      {func(r *Report) { r.Text = strings.Repeat("\x01", maxReport/4) }, "bytes (at most"},
		"a commit that was tuned": {func(r *Report) { r.Kind = Tune }, "first must be set"},
	} {
		r := example()
		c.bend(r)
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "{}", `{"schema": 1}`, `{"unknown": 1}`, "[]"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is a report", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, _ := json.Marshal(example())
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := Parse(again); err != nil || cmp.Diff(r, same) != "" {
			t.Fatalf("%v: %s", err, cmp.Diff(r, same))
		}
	})
}
