package policy_test

import (
	"fmt"
	"log"

	"github.com/kernelgate/kernelgate/policies/policy"
)

const faster = `version: 1
gates:
  correctness: {norm_error: "<= 2%"}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {speedup: ">= -2%"}
rules:
  - name: refactoring
    when: {labels: [refactoring]}
    gates: {performance: {target: none}}
  - name: default
`

func ExampleParse() {
	p, err := policy.Parse("kernelgate.yaml", []byte(faster))
	if err != nil {
		log.Fatal(err)
	}
	gate := p.Rules[1].Gates.Performance
	fmt.Println(gate.Target)
	fmt.Println("confidence", gate.Confidence, "after", gate.Rounds.Min, "to", gate.Rounds.Max, "rounds")
	// Output:
	// speedup >= +10% on mission
	// confidence 95% after 6 to 20 rounds
}

// ExampleParse_mistakes shows that every mistake is reported at once, with its place and what to
// write.
func ExampleParse_mistakes() {
	_, err := policy.Parse("kernelgate.yaml", []byte(`version: 1
gates:
  correctness: {norm_eror: "<= 2%"}
  performance: {confidence: 99, target: {speedup: "+10%"}}
rules: [{name: default}]
`))
	fmt.Println(err)
	// Output:
	// kernelgate.yaml:3:17: gates.correctness.norm_eror: unknown field (did you mean norm_error?)
	// kernelgate.yaml:4:29: gates.performance.confidence: "99" is not a percentage (write 99%)
	// kernelgate.yaml:4:51: gates.performance.target.speedup: "+10%" has no comparison (write e.g. "<= 10%" or ">= 10%")
}

// ExamplePolicy_RuleFor shows that the first rule that matches applies.
func ExamplePolicy_RuleFor() {
	p, err := policy.Parse("kernelgate.yaml", []byte(faster))
	if err != nil {
		log.Fatal(err)
	}
	for _, labels := range [][]string{{"refactoring", "docs"}, {"docs"}} {
		rule := p.RuleFor(policy.Change{Labels: labels, Branch: "main", Kernel: "sdpa_fp8"})
		fmt.Println(rule.Name, "asks for a gain:", rule.Gates.Performance.Target != nil)
	}
	// Output:
	// refactoring asks for a gain: false
	// default asks for a gain: true
}

func ExamplePolicy_Explain() {
	p, err := policy.Parse("kernelgate.yaml", []byte(faster))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(p.Explain("kernelgate.yaml", policy.Change{}))
	// Output:
	// kernelgate.yaml: rule default applies.
	//   (refactoring does not: it is for labels refactoring)
	//
	// It asks, in this order:
	//   build        the kernel compiles within 10m
	//   correctness  all shapes × seeds 0, 1, 2 × normal inputs: no element beyond the tolerance, norm error <= 2%
	//   precision    norm error of every output <= 4 times the baseline's
	//   performance  against base: speedup >= +10% on mission; guard: speedup >= -2% on all shapes and on one random size; mean and p90 at most 3% short of that; proven at 95% in 6 to 20 rounds of 50 pairs, interims after 6, 13, 20, within 5m
}
