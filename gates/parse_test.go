package gates

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
)

func TestParseEvidenceRefuses(t *testing.T) {
	good, err := json.MarshalIndent(passing(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	edit := func(from, to string) string {
		if !strings.Contains(string(good), from) {
			t.Fatalf("the evidence has no %q to edit", from)
		}
		return strings.Replace(string(good), from, to, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "e.json:1:1: is not valid JSON: unexpected end of JSON input"},
		{"not JSON", "{\n \"schema\": oops}", "e.json:2:12: is not valid JSON: invalid character 'o' looking for beginning of value"},
		{"no schema", "{}", `e.json:1:1: schema: is missing (this program reads "kernelgate/evidence/v1"; gather the evidence with the same version)`},
		{"another schema", "{\n  \"schema\": \"kernelgate/evidence/v9\"}", `e.json:2:11: schema: is "kernelgate/evidence/v9" (this program reads "kernelgate/evidence/v1"; gather the evidence with the same version)`},
		{"wrong kind", edit(`"kernel": "k"`, `"kernel": 7`), "e.json:3:12: kernel: is a JSON number where a text is expected"},
		{"unknown field", edit(`"kernel": "k"`, `"kernal": "k"`), `e.json:3:2: unknown field "kernal" (this program reads kernelgate/evidence/v1)`},
		{"two objects", string(good) + "{}", "is not valid JSON: invalid character '{' after top-level value"},
		{"a series that does not add up", edit(`"order": "bca bca`, `"order": "bca bc`), "performance.rounds[0].series[0].ns: has 60 samples, but order names 59"},
		{"a letter that is no side", edit(`"order": "bca`, `"order": "bxa`), `performance.rounds[0].series[0].order: has 'x' (only b, c, a and spaces between blocks)`},
		{"a negative time", edit(`100000,`, `-100000,`), "performance.rounds[0].series[0].ns: has the time -100000, which is not above 0"},
		{"more disturbed than taken", edit(`"verified": 20`, `"verified": 20, "solo_ns": [5, 5], "solo_disturbed": 3`), "performance.rounds[0].series[0].solo_disturbed: is 3 of 2 samples"},
		{"fewer than no references", edit(`"verified": 20`, `"verified": 20, "referenced": -1`), "performance.rounds[0].series[0].referenced: is -1"},
		{"an unknown shape", edit(`"name": "mission"`, `"name": "missing"`), `performance.rounds[0].series[0].shape: "mission" is not among the shapes`},
		{"a rival of an unknown shape", edit(`"kernel": "k",`, `"kernel": "k", "rivals": [{"name": "torch", "shape": "moon", "stats": {}}],`), `e.json:3:53: rivals[0].shape: "moon" is not among the shapes`},
		{"a rival without a name", edit(`"kernel": "k",`, `"kernel": "k", "rivals": [{"name": "", "failure": "gone", "stats": {}}],`), "rivals[0].name: is empty"},
		{"a rival without a shape", edit(`"kernel": "k",`, `"kernel": "k", "rivals": [{"name": "torch", "stats": {"n": 1}}],`), "rivals[0].shape: is empty"},
		{"a rival without times", edit(`"kernel": "k",`, `"kernel": "k", "rivals": [{"name": "torch", "shape": "mission", "stats": {"n": 3, "min": 0}}],`), "rivals[0].stats: are no summary of times above 0"},
		{"a rival that failed and was timed", edit(`"kernel": "k",`, `"kernel": "k", "rivals": [{"name": "torch", "failure": "gone", "stats": {"n": 3}}],`), "rivals[0].failure: is given together with times (3 samples)"},
		{"code of nobody", edit(`"kernel": "k",`, `"kernel": "k", "machine_code": {"changes": [{"kernel": ""}]},`), "machine_code.changes[0].kernel: is empty or longer than any name"},
		{"a diff without end", edit(`"kernel": "k",`, `"kernel": "k", "machine_code": {"changes": [{"kernel": "k", "diff": "`+strings.Repeat("x", MaxCodeDiff+1)+`"}]},`), "machine_code.changes[0].diff: has 16385 bytes (at most 16384)"},
		{"fewer than no instructions", edit(`"kernel": "k",`, `"kernel": "k", "machine_code": {"changes": [{"kernel": "k", "candidate": {"tensor": -1}}]},`), "machine_code.changes[0].candidate: has a negative count"},
		{"too much code", edit(`"kernel": "k",`, `"kernel": "k", "machine_code": {"changes": [{"kernel":"a"},{"kernel":"a"},{"kernel":"a"},{"kernel":"a"},{"kernel":"a"}]},`), "machine_code.changes: are 5 (at most 4)"},
		{"fewer than no kernels more", edit(`"kernel": "k",`, `"kernel": "k", "machine_code": {"more": -1},`), "machine_code.more: is -1"},
		{"the best of an unknown shape", edit(`"kernel": "k",`, `"kernel": "k", "best": [{"shape": "moon"}],`), `best[0].shape: "moon" is not among the shapes`},
		{"the best of no commit", edit(`"kernel": "k",`, `"kernel": "k", "best": [{"shape": "mission", "commit": "main"}],`), `best[0].commit: "main" is not the id of a commit`},
		{"a baseline without speed", edit(`"kernel": "k",`, `"kernel": "k", "best": [{"shape": "mission", "commit": "`+bestCommit+`", "baseline": 0}],`), "best[0].baseline: is 0, which is not above 0"},
		{"fewer than no merges", edit(`"kernel": "k",`, `"kernel": "k", "best": [{"shape": "mission", "commit": "`+bestCommit+`", "baseline": 1, "unmeasured": -1}],`), "best[0].unmeasured: is -1"},
		{"a loss that gains", edit(`"kernel": "k",`, `"kernel": "k", "best": [{"shape": "mission", "commit": "`+bestCommit+`", "baseline": 1, "lost": [{"commit": "`+bestCommit+`", "speedup": 1}]}],`), "best[0].lost[0]: is no commit with a speedup from -1 to 0"},
		{"a machine code before the first", edit(`"attempt": 1`, `"attempt": 1, "code_number": -1`), "performance.rounds[0].code_number: is -1 (the first machine code of a change is number 1)"},
		{"rounds of two machine codes", edit(`"attempt": 1`, `"attempt": 1, "code_number": 7`), "performance.rounds[1].code_number: is 1, but the first round has 7 (all rounds measure one machine code)"},
		{"an attempt that goes back", edit(`"attempt": 1`, `"attempt": 0`), "performance.rounds[0].attempt: is 0 after attempt 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseEvidence("e.json", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "e.json:") {
				t.Errorf("the message does not name the file first: %v", err)
			}
		})
	}
}

// Whatever parses can be judged, and what was judged can be written down.
func FuzzParseEvidence(f *testing.F) {
	small := passing()
	for i := range small.Performance.Rounds {
		for k := range small.Performance.Rounds[i].Series {
			s := &small.Performance.Rounds[i].Series[k]
			s.Order, s.Nanos = "bca bca", s.Nanos[:6]
		}
	}
	first := &small.Performance.Rounds[0].Series[0]
	first.Wall, first.Solo, first.SoloDisturbed, first.Disturbed = slices.Clone(first.Nanos), []float64{1e5, 1e5}, 1, []int{0, 0, 4}
	first.Single, first.Stateful, first.Referenced = &Singles{Baseline: []float64{1e5}, Candidate: []float64{9e4}}, []float64{8e4}, 1
	small.MachineCode = &MachineCode{Tool: "nvdisasm 13", Changes: []CodeChange{{Kernel: "k", Shapes: []string{"mission"}, Baseline: &Instructions{Memory: 2}, Candidate: &Instructions{Tensor: 1}, Diff: "@@ -1,1 +1,1 @@ k.cu:3\n-A\n+B", Cut: 2}}, More: 1}
	rival := Rival{Name: "torch", Shape: small.Shapes[0].Name, Stats: stats.Describe([]float64{40, 42})}
	for _, rivals := range [][]Rival{nil, {rival, {Name: "cudnn", Failure: "not installed"}}} {
		small.Rivals = rivals
		data, err := json.Marshal(small)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := ParseEvidence("e.json", data); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	policies := []string{fullPolicy, `{version: 1, gates: {}, rules: [{name: default}]}`}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ParseEvidence("e.json", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		for _, text := range policies {
			p := parsePolicy(t, text)
			Next(p, e)
			if _, err := json.Marshal(Judge(p, "test.yaml", e)); err != nil {
				t.Errorf("the verdict cannot be written: %v", err)
			}
		}
	})
}
