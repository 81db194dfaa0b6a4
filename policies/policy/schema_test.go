package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
)

func schema(t testing.TB) map[string]any {
	t.Helper()
	text, err := strict.Schema(policy.SchemaID, "kernelgate policy", policy.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaInStep(t *testing.T) {
	want, err := strict.Schema(policy.SchemaID, "kernelgate policy", policy.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("../schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Error("schema.json is out of step with the language (run go test ./policies/policy -update)")
	}
}

// validate checks a value against the keywords that our schema uses, and says where it does not
// fit. A keyword that it does not know fails the test: the schema must not use anything that is not
// tested.
func validate(t testing.TB, s map[string]any, v any, path string) (misfits []string) {
	t.Helper()
	miss := func(format string, args ...any) { misfits = append(misfits, path+" "+fmt.Sprintf(format, args...)) }
	text, isText := v.(string)
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		switch is := s[keyword]; keyword {
		case "$id", "$schema", "title", "description", "examples":
		case "type":
			number, isNumber := toFloat(v)
			_, isBool := v.(bool)
			fits := map[string]bool{
				"string": isText, "array": isList, "object": isObject, "boolean": isBool,
				"number": isNumber, "integer": isNumber && number == float64(int64(number)),
			}
			if !fits[is.(string)] {
				miss("is not of type %s", is)
			}
		case "enum":
			if !slices.Contains(is.([]any), v) {
				miss("is not one of %v", is)
			}
		case "const":
			if v != is {
				miss("is not %v", is)
			}
		case "anyOf":
			if !slices.ContainsFunc(is.([]any), func(option any) bool { return validate(t, option.(map[string]any), v, path) == nil }) {
				miss("fits none of the alternatives")
			}
		case "pattern":
			if isText && !regexp.MustCompile(is.(string)).MatchString(text) {
				miss("%q does not match %s", text, is)
			}
		case "format":
			if _, err := regexp.Compile(text); is != "regex" || isText && err != nil {
				miss("%q is not in the format %s", text, is)
			}
		case "minLength":
			if isText && float64(len(text)) < is.(float64) {
				miss("is too short")
			}
		case "minimum":
			if number, ok := toFloat(v); ok && number < is.(float64) {
				miss("is below %v", is)
			}
		case "minItems", "maxItems":
			if n := float64(len(list)); isList && (keyword == "minItems" && n < is.(float64) || keyword == "maxItems" && n > is.(float64)) {
				miss("has %v items", n)
			}
		case "minProperties", "maxProperties":
			if n := float64(len(object)); isObject && (keyword == "minProperties" && n < is.(float64) || keyword == "maxProperties" && n > is.(float64)) {
				miss("has %v properties", n)
			}
		case "items":
			for i, item := range list {
				misfits = append(misfits, validate(t, is.(map[string]any), item, fmt.Sprintf("%s[%d]", path, i))...)
			}
		case "required":
			for _, name := range is.([]any) {
				if _, ok := object[name.(string)]; isObject && !ok {
					miss("has no %s", name)
				}
			}
		case "propertyNames":
			for name := range object {
				misfits = append(misfits, validate(t, is.(map[string]any), name, path+" key")...)
			}
		case "properties", "additionalProperties": // handled together below
		default:
			t.Fatalf("%s: the schema uses %s, which this test does not know", path, keyword)
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, value := range object {
		rest, hasRest := s["additionalProperties"]
		if p, ok := properties[name]; ok {
			misfits = append(misfits, validate(t, p.(map[string]any), value, path+"."+name)...)
		} else if restSchema, ok := rest.(map[string]any); ok {
			misfits = append(misfits, validate(t, restSchema, value, path+"."+name)...)
		} else if hasRest && rest == false {
			miss("has %s, which is not known", name)
		}
	}
	return misfits
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func document(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// everything uses all features of the language.
const everything = `version: 1
check: kernel gate/l4
devices: [l4, h200]
commands: {rebench: read, cancel: triage, explain: write, override: admin, ok-to-test: maintain, approve-policy: admin, help: read}
forks: {run: after-approval}
gates:
  build: {timeout: 1h30m, required: true}
  ptxas:
    registers: {max: 128, increase: "<= +8"}
    static_shared_memory: {max: 48KiB}
    dynamic_shared_memory: {max: 65536, increase: none}
    shared_memory: "<= 99.5 KiB"
    spill_stores: none
    spill_loads: ~
    stack: {max: none, increase: "< 16B"}
    code_size: "<= 1MB"
    blocks_per_sm: ">= 2"
  correctness:
    shapes: all
    seeds: [0, 1]
    distributions: [normal, uniform, dominant, large, constant, zero, ones]
    secret_cases: 3
    max_abs_error: "<= 1e-6"
    mean_abs_error: none
    bad_elements: "<= 0.5 %"
    norm_error: "< 1%"
    bit_parity: false
    determinism: true
    end_to_end: {max_abs_error: "<= 0.1", mean_abs_error: "<= .02", bad_elements: "<= 1%", norm_error: none}
    timeout: 90s
  performance:
    required: ~
    baseline: ref:release/1.2
    target: {shapes: [mission], speedup: ">=+10%", latency_reduction: "> 9%", p50: "<= 5 us", p90: "<= 6µs", weighted: ">= +3 %", below_best: "<= 8 %"}
    guard: none
    confidence: 99.9%
    rounds: {min: 8, max: 12}
    pairs: 20
    interims: [8, 12]
    control: 2.5%
    solo_shift: 3%
    budget: 5m
    roofline: none
  profile: {required: false, shapes: all, all: [{a.b: ">= 50%"}], any: [{c__d: "< 1e3"}, {E: "> -1"}]}
rules:
  - name: all.of_it-1
    when: {labels: [a], branches: [main, "release/*"], paths: ["**/*.cu"], kernels: ["k?"], title: "^perf", draft: false}
    gates: {ptxas: none, profile: ~}
  - {name: default}
`

func TestSchemaAcceptsPolicies(t *testing.T) {
	texts := map[string]string{"good": good, "everything": everything}
	for _, name := range policies.ShippedNames() {
		text, err := policies.Shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			parse(t, text)
			if misfits := validate(t, schema(t), document(t, text), "policy"); misfits != nil {
				t.Error(strings.Join(misfits, "\n"))
			}
		})
	}
}

// TestSchemaRefusesMistakes checks that an editor marks what the linter would refuse in a single
// field, and that both know the same names.
func TestSchemaRefusesMistakes(t *testing.T) {
	for _, tt := range []struct{ name, old, new string }{
		{"unknown field", "pairs:", "pair:"},
		{"unknown field of a budget", "{max: 48KiB}", "{maximum: 48KiB}"},
		{"unknown condition", "labels: [a]", "label: a"},
		{"no version", "version: 1\n", ""},
		{"no name", "- {name: default}", "- {}"},
		{"a word that is not one", "rebench: read", "rebench: owner"},
		{"a number without its unit", "confidence: 99.9%", "confidence: 99.9"},
		{"a bound without its operator", `norm_error: "< 1%"`, "norm_error: 1%"},
		{"a bound of another unit", `p50: "<= 5 us"`, `p50: "<= 5"`},
		{"a size that is none", "max: 48KiB", "max: 48kb"},
		{"a negative number", "secret_cases: 3", "secret_cases: -3"},
		{"a time that is none", "budget: 5m", "budget: 5 min"},
		{"a baseline that is none", "ref:release/1.2", "release/1.2"},
		{"no shape", "[mission]", "[]"},
		{"a text for a list", "seeds: [0, 1]", "seeds: 0"},
		{"a text for a number", "seeds: [0, 1]", "seeds: [zero]"},
		{"two metrics in one", `{a.b: ">= 50%"}`, `{a.b: ">= 50%", c: "> 1"}`},
		{"a metric that is none", "E: ", "-E: "},
		{"a title that matches everything", `"^perf"`, "''"},
		{"yes for true", "draft: false", "draft: 'no'"},
		{"none where it means nothing", "rounds: {min: 8, max: 12}", "rounds: none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Count(everything, tt.old) != 1 {
				t.Fatalf("the text has %d of %q", strings.Count(everything, tt.old), tt.old)
			}
			text := strings.Replace(everything, tt.old, tt.new, 1)
			if mistakes(t, "p.yaml", text) == nil {
				t.Error("the linter takes it")
			}
			if validate(t, schema(t), document(t, text), "policy") == nil {
				t.Error("the schema takes it")
			}
		})
	}
}

// TestSchemaExamplesFit checks the examples, which editors show.
func TestSchemaExamplesFit(t *testing.T) {
	seen := 0
	var walk func(s map[string]any, path string)
	walk = func(s map[string]any, path string) {
		examples, _ := s["examples"].([]any)
		for _, example := range examples {
			seen++
			if misfits := validate(t, s, example, path); misfits != nil {
				t.Error(strings.Join(misfits, "\n"))
			}
		}
		for keyword, v := range s {
			switch v := v.(type) {
			case map[string]any:
				if keyword == "properties" {
					for name, p := range v {
						walk(p.(map[string]any), path+"."+name)
					}
				} else {
					walk(v, path)
				}
			case []any:
				for _, option := range v {
					if option, ok := option.(map[string]any); ok && keyword == "anyOf" {
						walk(option, path)
					}
				}
			}
		}
	}
	walk(schema(t), "policy")
	if seen < 30 {
		t.Errorf("only %d examples were found", seen)
	}
}
