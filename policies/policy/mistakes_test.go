package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// good is a policy to make mistakes in. Each test changes one place.
const good = `version: 1
check: kernelgate
devices: [l4]
commands: {rebench: write}
forks: {run: never}
gates:
  build: {timeout: 5m}
  ptxas:
    registers: {max: 128}
    spill_stores: "<= 0B"
    blocks_per_sm: ">= 2"
  correctness:
    shapes: [small, mission]
    seeds: [0, 1]
    distributions: [normal]
    norm_error: "<= 1%"
    end_to_end: {max_abs_error: "<= 0.12"}
  performance:
    baseline: base
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -2%"}
    confidence: 95%
    rounds: {min: 6, max: 20}
    interims: [6, 12, 20]
    pairs: 50
    control: 2%
  profile:
    shapes: [mission]
    any:
      - dram__throughput.avg.pct_of_peak_sustained_elapsed: "< 50%"
rules:
  - name: perf
    when: {labels: [perf]}
  - name: default
`

// mistakes returns what the author of a policy reads, one line each.
func mistakes(t testing.TB, file, text string) []string {
	t.Helper()
	p, err := policy.Parse(file, []byte(text))
	if err == nil {
		return nil
	}
	if p != nil {
		t.Error("a refused policy is returned")
	}
	return strings.Split(err.Error(), "\n")
}

func TestGoodPolicy(t *testing.T) {
	if got := mistakes(t, "p.yaml", good); got != nil {
		t.Fatalf("%q", got)
	}
}

func TestTheMessageOfTheManual(t *testing.T) {
	text := `# What a change must show on an NVIDIA L4.
version: 1
check: kernelgate
devices: [l4]

commands:
 rebench: write
 override: maintain

forks:
 run: after-approval

gates:
 build: {timeout: 10m}
 ptxas:
  registers:
   max: "12x"
rules:
 - name: default
`
	want := []string{`policies/l4.yaml:17:9: gates.ptxas.registers.max: "12x" is not a number (write e.g. 128)`}
	if diff := cmp.Diff(want, mistakes(t, "policies/l4.yaml", text)); diff != "" {
		t.Error(diff)
	}
}

// A mistake is an edit of the good policy, and what its author will read.
type mistake struct {
	name, old, new string
	want           []string
}

func TestMistakes(t *testing.T) {
	for name, table := range map[string][]mistake{"file": fileMistakes, "rules": ruleMistakes, "gates": gateMistakes, "performance": performanceMistakes} {
		for _, tt := range table {
			t.Run(name+": "+tt.name, func(t *testing.T) {
				if strings.Count(good, tt.old) != 1 {
					t.Fatalf("the good policy has %d of %q", strings.Count(good, tt.old), tt.old)
				}
				want := make([]string, len(tt.want))
				for i, w := range tt.want {
					want[i] = "p.yaml:" + w
				}
				if diff := cmp.Diff(want, mistakes(t, "p.yaml", strings.Replace(good, tt.old, tt.new, 1))); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

var fileMistakes = []mistake{
	{"half a version", "devices: [l4]", "toolchains: {nvcc: {version: 13}}", []string{`3:30: toolchains.nvcc.version: "13" is not a compiler's whole version (write e.g. 13.0.88, as kernelgate doctor prints it)`}},
	{"a compiler of one's own", "devices: [l4]", "toolchains: {nvcc: {version: ../../nvcc}}", []string{`3:30: toolchains.nvcc.version: "../../nvcc" is not a compiler's whole version (write e.g. 13.0.88, as kernelgate doctor prints it)`}},
	{"a path to one", "devices: [l4]", "toolchains: {triton: {version: 3.6.0, path: /tmp/triton}}", []string{`3:39: toolchains.triton.path: unknown field (known here: digest, version)`}},
	{"half a digest", "devices: [l4]", "toolchains: {triton: {version: 3.6.0, digest: sha256:12}}", []string{`3:47: toolchains.triton.digest: "sha256:12" is not a digest (write sha256: and 64 hexadecimal digits, as kernelgate doctor prints it)`}},
	{"no version", "devices: [l4]", "toolchains: {triton: {}}", []string{`3:22: toolchains.triton.version: is required (write e.g. version: 13.0.88)`}},
	{"another version", "version: 1", "version: 2", []string{"1:10: version: 2 is not a version this program reads (write 1)"}},
	{"another version, oddly written", "version: 1", "version: 00", []string{"1:10: version: 0 is not a version this program reads (write 1)"}},
	{"no number as version", "version: 1", "version: v1", []string{`1:10: version: "v1" is not a whole number (write e.g. 128)`}},
	{"no version", "version: 1\n", "", []string{"1:1: version: is required (write e.g. version: 1)"}},
	{"no gates", "gates:\n  build", "notes:\n  build", []string{
		`1:1: gates: is required (write e.g. gates: {correctness: {norm_error: "<= 1%"}})`,
		"6:1: notes: unknown field (known here: check, commands, devices, forks, gates, rules, toolchains, version)"}},
	{"no rules", "rules:", "rule:", []string{
		"1:1: rules: is required (write e.g. rules: [{name: default}])",
		"31:1: rule: unknown field (did you mean rules?)"}},
	{"a check that GitHub would not take", "check: kernelgate", "check: ' gate'", []string{`2:8: check: " gate" is not a check name (write e.g. kernelgate)`}},
	{"a check that is a list", "check: kernelgate", "check: [a]", []string{"2:8: check: is a list (write a text)"}},
	{"devices with spaces, and twice", "devices: [l4]", "devices: [l4, an l4, l4, '']", []string{
		`3:15: devices[1]: "an l4" is not a runner's label (write letters, digits, '_' and '-')`,
		`3:22: devices[2]: "l4" is named twice (delete one)`,
		`3:26: devices[3]: "" is not a runner's label (write letters, digits, '_' and '-')`}},
	{"a role that GitHub does not have", "rebench: write", "rebench: owner", []string{`4:21: commands.rebench: "owner" is not one of read, triage, write, maintain, admin`}},
	{"a role that is left open", "rebench: write", "rebench: ~", []string{"4:21: commands.rebench: is not one of read, triage, write, maintain, admin"}},
	{"a command that is not known", "rebench: write", "re-bench: write", []string{"4:12: commands.re-bench: unknown field (did you mean rebench?)"}},
	{"a fork mode that is not known", "run: never", "run: always", []string{`5:14: forks.run: "always" is not one of after-approval, never`}},
	{"a fork mode that is a list", "run: never", "run: [never]", []string{"5:14: forks.run: is not one of after-approval, never"}},
	{"gates twice", "  - name: default\n", "  - name: default\ngates: {}\n", []string{"35:1: gates: is set twice (delete one)"}},
}

var ruleMistakes = []mistake{
	{"none", "rules:\n  - name: perf\n    when: {labels: [perf]}\n  - name: default", "rules: []", []string{"31:8: rules: is empty (write at least - name: default)"}},
	{"rules written twice, the second longer", "rules:\n", "rules: [{name: default}]\nrules:\n", []string{"32:1: rules: is set twice (delete one)"}},
	{"rules written twice, the second shorter", "  - name: default\n", "  - name: default\nrules: []\n", []string{"35:1: rules: is set twice (delete one)"}},
	{"no default", "  - name: default\n", "", []string{`32:11: rules[0].name: the last rule is "perf", but a rule named default is required at the end (write - name: default)`}},
	{"a default with a condition", "  - name: default\n", "  - name: default\n    when: {draft: true}\n", []string{
		"35:11: rules[1].when: the default rule applies to everything else (delete when)"}},
	{"the default first", "name: perf", "name: default", []string{
		"32:11: rules[0].name: the default rule hides the rules behind it (move it to the end)",
		`34:11: rules[1].name: "default" is the name of an earlier rule too (choose another)`}},
	{"no condition", "    when: {labels: [perf]}\n", "", []string{
		"32:5: rules[0].when: a rule without a condition hides the rules behind it (add e.g. when: {labels: [perf]})"}},
	{"an empty condition", "{labels: [perf]}", "{}", []string{"33:11: rules[0].when: is empty: it would match everything (add e.g. labels: [perf])"}},
	{"a condition that is left open", "when: {labels: [perf]}", "when:", []string{
		"33:10: rules[0].when: is empty (write a mapping with labels, branches, paths, kernels, title, draft)"}},
	{"draft alone, left open", "{labels: [perf]}", "{draft: ~}", []string{"33:11: rules[0].when: is empty: it would match everything (add e.g. labels: [perf])"}},
	{"no name", "name: perf", "when: {draft: true}", []string{
		"32:5: rules[0].name: is required (write e.g. name: optimisation)",
		"33:5: rules[0].when: is set twice (delete one)"}},
	{"a name that is left open", "name: perf", "name:", []string{"32:10: rules[0].name: is empty (write a text)"}},
	{"a name with spaces", "name: perf", "name: a | b", []string{`32:11: rules[0].name: "a | b" is not a name (write letters, digits, '.', '_' and '-')`}},
	{"two of a name", "  - name: default", "  - name: perf\n    when: {draft: true}\n  - name: default", []string{
		`34:11: rules[1].name: "perf" is the name of an earlier rule too (choose another)`}},
	{"empty lists", "{labels: [perf]}", "{labels: [], branches: [main]}", []string{"33:20: rules[0].when.labels: is empty (write at least one, or delete it)"}},
	{"patterns that match nothing", "{labels: [perf]}", `{labels: [" "], branches: ["", "{a,b}"], paths: [/a, ./b, a/../b, c/, "*.[ch]", "!d", ""], kernels: ["a\\b"]}`, []string{
		`33:21: rules[0].when.labels[0]: is empty (write the name of a label)`,
		`33:38: rules[0].when.branches[0]: is empty (write e.g. "**")`,
		`33:42: rules[0].when.branches[1]: "{a,b}": only *, ** and ? have a meaning here (write one pattern for each alternative)`,
		`33:60: rules[0].when.paths[0]: "/a" matches no file: paths start at the repository's root, without a slash (write e.g. kernels/**)`,
		`33:64: rules[0].when.paths[1]: "./b" matches no file: paths start at the repository's root, without a slash (write e.g. kernels/**)`,
		`33:69: rules[0].when.paths[2]: "a/../b" matches no file: paths start at the repository's root, without a slash (write e.g. kernels/**)`,
		`33:77: rules[0].when.paths[3]: "c/" matches no file: it ends in a slash (write c/**)`,
		`33:81: rules[0].when.paths[4]: "*.[ch]": only *, ** and ? have a meaning here (write one pattern for each alternative)`,
		`33:91: rules[0].when.paths[5]: "!d": only *, ** and ? have a meaning here (write one pattern for each alternative)`,
		`33:97: rules[0].when.paths[6]: is empty (write e.g. "**")`,
		`33:112: rules[0].when.kernels[0]: "a\\b": only *, ** and ? have a meaning here (write one pattern for each alternative)`}},
	{"a list in a list", "{labels: [perf]}", "{labels: [[a], ~, b]}", []string{
		"33:21: rules[0].when.labels[0]: is a list (write a text)",
		"33:26: rules[0].when.labels[1]: is empty (write a text)"}},
	{"a title that is no expression", "{labels: [perf]}", "{title: '(perf'}", []string{"33:19: rules[0].when.title: \"(perf\" is not a regular expression: missing closing ): `(perf`"}},
	{"a title that matches everything", "{labels: [perf]}", "{title: ''}", []string{`33:19: rules[0].when.title: is not a regular expression (write e.g. "^perf:")`}},
	{"a title that is a list", "{labels: [perf]}", "{title: [a]}", []string{`33:19: rules[0].when.title: is not a regular expression (write e.g. "^perf:")`}},
	{"draft: yes", "{labels: [perf]}", "{draft: yes}", []string{`33:19: rules[0].when.draft: "yes" is not true or false`}},
	{"an unknown condition", "{labels: [perf]}", "{label: perf}", []string{"33:12: rules[0].when.label: unknown field (did you mean labels?)"}},
}

// TestTooMuchToRead checks a file with too many values. Values that were not read are reported, and
// code that walks the policy does not use them.
func TestTooMuchToRead(t *testing.T) {
	var labels strings.Builder
	for i := range 99_989 {
		fmt.Fprintf(&labels, "x%d,", i)
	}
	const full = "holds more than 100000 values, aliases unfolded (shorten the file)"
	tests := []struct{ name, old, new, want string }{
		{"before the rules", "devices: [l4]", "devices: [" + labels.String() + "x]", "gates.build: " + full},
		{"in a rule, before the gates are laid", "labels: [perf]", "labels: [" + strings.Repeat("perf,", 99_899) + "perf]", "gates.performance.confidence: " + full},
		{"in the shared gates, times the rules", "[6, 12, 20]", "[" + strings.Repeat("6,", 49_000) + "6]", "gates.performance.interims: " + full},
		{"in a rule's own gates", "{labels: [perf]}", "{draft: true}\n    gates: {performance: {interims: [" + strings.Repeat("6,", 99_000) + "6]}}", "rules[0].gates.performance.interims: " + full},
		{"shapes", "small, mission", strings.Repeat("x,", 64) + "x", "gates.correctness.shapes: has 65 shapes (write at most 64)"},
		{"seeds", "[0, 1]", "[" + strings.Repeat("7,", 100) + "7]", "gates.correctness.seeds: has 101 seeds (write at most 100)"},
		{"rules", "rules:\n", "rules:\n" + strings.Repeat("  - {name: a, when: {draft: true}}\n", 99), "rules: has 101 rules (write at most 100)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mistakes(t, "p.yaml", strings.Replace(good, tt.old, tt.new, 1))
			if !slices.ContainsFunc(got, func(line string) bool { return strings.HasSuffix(line, ": "+tt.want) }) {
				t.Errorf("got %.1000q, want %s", got, tt.want)
			}
		})
	}
}

func TestSeveralMistakesAtOnce(t *testing.T) {
	text := `version: 3
check: kernelgate
device: [l4]
commands: {rebench: everyone}
gates:
  build: {timeout: 10 minutes}
  ptxas:
    registers: {max: 12x, increase: 8}
    smem: 48KiB
    spill_stores: ">= 0B"
  correctness:
    shapes: every
    seeds: [0, one]
  performance:
    baseline: main
    target: {speedup: 10%}
    rounds: 6
rules:
  - name: perf
    when: {labels: perf}
    gates: {performance: {target: {p50: "<= 5"}}}
  - name: other
`
	want := []string{
		`p.yaml:1:10: version: 3 is not a version this program reads (write 1)`,
		`p.yaml:3:1: device: unknown field (did you mean devices?)`,
		`p.yaml:4:21: commands.rebench: "everyone" is not one of read, triage, write, maintain, admin`,
		`p.yaml:6:20: gates.build.timeout: "10 minutes" is not a time (write e.g. 30s)`,
		`p.yaml:8:22: gates.ptxas.registers.max: "12x" is not a number (write e.g. 128)`,
		`p.yaml:8:37: gates.ptxas.registers.increase: "8" has no comparison (write e.g. "<= 128" or ">= 128")`,
		`p.yaml:9:5: gates.ptxas.smem: unknown field (known here: blocks_per_sm, code_size, dynamic_shared_memory, registers, required, shared_memory, spill_loads, spill_stores, stack, static_shared_memory)`,
		`p.yaml:10:19: gates.ptxas.spill_stores: ">= 0B" is not an upper limit (write "<= 0B")`,
		`p.yaml:12:13: gates.correctness.shapes: "every" is not a list of shapes (write all, first, or [mission, long])`,
		`p.yaml:13:16: gates.correctness.seeds[1]: "one" is not a whole number (write e.g. 128)`,
		`p.yaml:15:15: gates.performance.baseline: "main" is not a baseline (write base, best, ref:main, tag:v1.2 or variant:stage1)`,
		`p.yaml:16:23: gates.performance.target.speedup: "10%" has no comparison (write e.g. "<= 10%" or ">= 10%")`,
		`p.yaml:17:13: gates.performance.rounds: is "6" (write a mapping with min, max)`,
		`p.yaml:20:20: rules[0].when.labels: is "perf" (write a list: [a, b])`,
		`p.yaml:21:41: rules[0].gates.performance.target.p50: "<= 5": "5" is not a latency (write e.g. "<= 5us")`,
		`p.yaml:22:11: rules[1].name: the last rule is "other", but a rule named default is required at the end (write - name: default)`,
	}
	if diff := cmp.Diff(want, mistakes(t, "p.yaml", text)); diff != "" {
		t.Error(diff)
	}
}
