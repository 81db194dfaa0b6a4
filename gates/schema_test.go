package gates

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates/schema"
)

// The schema of verdict.json is for programs that read verdicts. A later version may add fields, so it refuses none.
func TestVerdictSchema(t *testing.T) {
	var w schema.Writer
	top := w.Of(reflect.TypeFor[Verdict]())
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["$id"] = "https://raw.githubusercontent.com/kernelgate/kernelgate/main/gates/verdict.schema.json"
	top["title"] = "kernelgate verdict (" + VerdictSchema + ")"
	top["$defs"] = w.Definitions
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(top); err != nil {
		t.Fatal(err)
	}
	const file = "verdict.schema.json"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (run with -update to accept):\n%s", file, diff)
	}
	conforms(t, w.Definitions)
}

// conforms checks that a verdict with a failed and a passed gate has only what the schema names, and all that it requires.
func conforms(t *testing.T, definitions map[string]any) {
	t.Helper()
	p := parsePolicy(t, "version: 1\ngates:\n  correctness: {shapes: [mission], seeds: [0], norm_error: '<= 1%'}\nrules:\n  - name: default\n")
	text, err := json.Marshal(Judge(p, "test.yaml", evidence("mission")))
	if err != nil {
		t.Fatal(err)
	}
	var verdict map[string]any
	if err := json.Unmarshal(text, &verdict); err != nil {
		t.Fatal(err)
	}
	known := definitions["Verdict"].(map[string]any)
	for name := range verdict {
		if known["properties"].(map[string]any)[name] == nil {
			t.Errorf("the schema does not know %s", name)
		}
	}
	for _, name := range known["required"].([]string) {
		if _, ok := verdict[name]; !ok {
			t.Errorf("the verdict has no %s", name)
		}
	}
}
