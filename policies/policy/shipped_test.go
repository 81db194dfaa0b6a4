package policy_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

var update = flag.Bool("update", false, "rewrite schema.json and the golden files")

func shipped(t testing.TB, name string) *policy.Policy {
	t.Helper()
	text, err := policies.Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(name+".yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestShippedFilesAreTheEmbeddedOnes(t *testing.T) {
	files, err := filepath.Glob("../*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range policies.ShippedNames() {
		names = append(names, "../"+name+".yaml")
		onDisk, err := os.ReadFile("../" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		embedded, err := policies.Shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(onDisk), string(embedded)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff(files, names); diff != "" {
		t.Errorf("not every policy is shipped: %s", diff)
	}
	const want = `no policy named "a100" is shipped (there are cpu, default, h200, l4)`
	if _, err := policies.Shipped("a100"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestL4AsksWhatTheStagesHadToMeet checks the figures of the kernel's history on an L4: what each
// stage had to meet.
func TestL4AsksWhatTheStagesHadToMeet(t *testing.T) {
	p := shipped(t, "l4")
	if diff := cmp.Diff([]string{"tensor-cores", "warp-specialization", "refactoring", "default"}, p.RuleNames()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"l4"}, p.Devices.Prefer); diff != "" || p.Check != "kernelgate" || p.Forks.Run != policy.ForksAfterApproval {
		t.Errorf("devices %q, check %q, forks %q", p.Devices, p.Check, p.Forks.Run)
	}
	if p.Commands.Rebench != "write" || p.Commands.Override != "maintain" || p.Commands.OKToTest != "write" {
		t.Errorf("commands %+v", p.Commands)
	}
	for _, tt := range []struct {
		rule, label    string
		registers      quantity.Count
		shared         quantity.Bytes
		speedup, shape string
	}{
		{"default", "", 128, 48 << 10, ">= +10%", "mission"},
		{"tensor-cores", "tensor-cores", 128, 48 << 10, ">= +15%", "batch"},
		{"warp-specialization", "warp-specialization", 120, 64 << 10, ">= +10%", "mission"},
		{"refactoring", "refactoring", 128, 48 << 10, "", ""},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			rule := p.RuleFor(policy.Change{Labels: []string{tt.label}})
			if rule.Name != tt.rule {
				t.Fatalf("rule %s applies", rule.Name)
			}
			x, perf := rule.Gates.PTXAS, rule.Gates.Performance
			if *x.Registers.Max != tt.registers || *x.StaticShared.Max != tt.shared {
				t.Errorf("%v registers, %v static shared memory", *x.Registers.Max, *x.StaticShared.Max)
			}
			if x.Registers.Increase.String() != "<= 8" || *x.SpillStores.Max != 0 || *x.SpillLoads.Max != 0 || x.BlocksPerSM.String() != ">= 2" {
				t.Errorf("increase %v, spills %v and %v, %v blocks", x.Registers.Increase, *x.SpillStores.Max, *x.SpillLoads.Max, x.BlocksPerSM)
			}
			switch {
			case tt.speedup == "" && perf.Target != nil:
				t.Errorf("a target of %s", perf.Target)
			case tt.speedup != "" && (perf.Target.Speedup.String() != tt.speedup || perf.Target.Shapes.String() != tt.shape):
				t.Errorf("a target of %s", perf.Target)
			}
			if got := perf.Guard.String(); got != "speedup >= -2% on all shapes" {
				t.Errorf("a guard of %s", got)
			}
		})
	}
}

// TestShippedPolicies checks what every shipped policy has in common.
func TestShippedPolicies(t *testing.T) {
	for _, name := range policies.ShippedNames() {
		t.Run(name, func(t *testing.T) {
			p := shipped(t, name)
			// One suits any kernel: it knows no shape's name and no output's scale.
			anyKernel := name == "default"
			small := "small"
			if anyKernel {
				small = "the first shape"
			}
			for _, rule := range p.Rules {
				g := rule.Gates
				c, perf := g.Correctness, g.Performance
				if !g.Build.Decides() || !g.PTXAS.Decides() || !c.Decides() || !perf.Decides() {
					t.Errorf("%s: a gate does not decide", rule.Name)
				}
				if s := g.Sanitize; s == nil || !s.Decides() || s.Shapes.String() != small || s.SecretCases < 1 || !slices.Contains(s.Tools, policy.Memcheck) ||
					name != "cpu" && len(s.Tools) != 4 { // one thread has neither race nor barrier
					t.Errorf("%s: sanitize is %+v", rule.Name, g.Sanitize)
				}
				if len(c.Seeds) < 3 || len(c.Distributions) < 5 || c.SecretCases < 5 || !c.Determinism && !anyKernel {
					t.Errorf("%s: too few cases: %+v", rule.Name, c)
				}
				if c.Bad.String() != "<= 0%" {
					t.Errorf("%s: elements beyond the manifest's tolerance are allowed: %s", rule.Name, c.Bad)
				}
				if anyKernel {
					if c.MaxAbs != nil || c.MeanAbs != nil || c.EndToEnd != nil || !c.Shapes.All || !perf.Guard.Shapes.All || !slices.Contains(c.Distributions, distribution.Peaks) {
						t.Errorf("%s: correctness is %+v", rule.Name, c)
					}
				} else if c.MaxAbs.String() != "<= 0.06" || c.MeanAbs.String() != "<= 0.02" || c.Norm == nil || c.EndToEnd.Bad.String() != "<= 1%" {
					t.Errorf("%s: not the tolerance of the kernel: %v", rule.Name, c.Bounds())
				}
				if perf.Confidence != 0.95 || perf.Baseline.Kind != "base" || perf.Guard == nil || perf.Guard.Speedup == nil {
					t.Errorf("%s: performance is %+v", rule.Name, perf)
				}
				if time.Duration(perf.Budget) >= time.Duration(perf.Timeout) {
					t.Errorf("%s: the timeout %v comes before the budget %v is spent", rule.Name, perf.Timeout, perf.Budget)
				}
				if asks := anyKernel && rule.Name == "faster" || !anyKernel && rule.Name != "refactoring"; asks != (perf.Target != nil) {
					t.Errorf("%s: target %v", rule.Name, perf.Target)
				}
			}
		})
	}
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		golden, policy string
		change         policy.Change
	}{
		{"l4_default", "l4", policy.Change{Branch: "main"}},
		{"l4_tensor_cores", "l4", policy.Change{Labels: []string{"tensor-cores"}}},
		{"l4_warp_specialization", "l4", policy.Change{Labels: []string{"perf", "warp-specialization"}}},
		{"l4_refactoring", "l4", policy.Change{Labels: []string{"refactoring"}}},
		{"h200_default", "h200", policy.Change{}},
		{"h200_refactoring", "h200", policy.Change{Labels: []string{"refactoring"}}},
		{"cpu_default", "cpu", policy.Change{}},
		{"default_default", "default", policy.Change{}},
		{"default_faster", "default", policy.Change{Labels: []string{"faster"}}},
		{"cpu_refactoring", "cpu", policy.Change{Labels: []string{"refactoring"}}},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			golden(t, "explain_"+tt.golden+".txt", shipped(t, tt.policy).Explain(tt.policy+".yaml", tt.change))
		})
	}
	// Every condition, and gates that ask for nothing.
	p := parse(t, `version: 1
gates:
  ptxas: {}
  correctness: {required: false}
rules:
  - name: labelled
    when: {labels: [perf, fast], draft: true}
  - name: elsewhere
    when: {branches: [release/*], paths: ["docs/**"], kernels: ["sdpa_*"], title: "^docs:", draft: false}
  - name: drafts
    when: {draft: true}
    gates:
      correctness: {required: true, norm_error: "<= 1%", bit_parity: true}
      performance: {target: {p50: "<= 5us", p90: "<= 6us", latency_reduction: ">= 9%"}, baseline: "variant:stage1"}
      profile: {all: [{sm__throughput: ">= 50%"}, {sm__warps_active: ">= 40%"}], any: [{dram__throughput: "< 50%"}]}
  - name: default
`)
	change := policy.Change{Labels: []string{"perf"}, Branch: "main", Kernel: "gemm", Title: "Tidy"}
	golden(t, "explain_conditions.txt", p.Explain("p.yaml", change))
	change.Draft = true
	change.Labels = nil
	golden(t, "explain_informs.txt", p.Explain("p.yaml", change))
}

// golden compares with a file that -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run with -update to accept): %s", path, diff)
	}
}
