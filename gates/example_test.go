package gates_test

import (
	"fmt"
	"log"
	"os"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Evidence that was stored is judged again, by any policy: nothing is measured.
func ExampleJudge() {
	text, err := os.ReadFile("../kernels/sdpa_fp8/evidence/all/stage6_split.json")
	if err != nil {
		log.Fatal(err)
	}
	evidence, err := gates.ParseEvidence("stage6_split.json", text)
	if err != nil {
		log.Fatal(err)
	}
	for _, asked := range []string{">= +5%", ">= +300%"} {
		policy, err := policy.Parse("policy.yaml", []byte(`
version: 1
gates:
  correctness: {norm_error: "<= 3%", seeds: [0]}
  performance: {target: {shapes: [mission], speedup: "`+asked+`"}}
rules: [{name: default}]
`))
		if err != nil {
			log.Fatal(err)
		}
		v := gates.Judge(policy, "policy.yaml", evidence)
		fmt.Printf("%s. %s\n", v.Outcome, v.Summary)
	}
	// Output:
	// PASS. Proven: speedup +84.4 % [+83.1 %, +85.6 %] on mission (asked speedup >= +5%)
	// DEFER. Too slow: speedup +84.4 % [+83.1 %, +85.6 %] on mission (asked speedup >= +300%)
}

// A runner asks what to gather until the verdict can fall.
func ExampleNext() {
	policy, err := policy.Parse("policy.yaml", []byte(`{version: 1, gates: {correctness: {norm_error: "<= 1%"}}, rules: [{name: default}]}`))
	if err != nil {
		log.Fatal(err)
	}
	e := &gates.Evidence{Kernel: "scale"}
	fmt.Println(gates.Next(policy, e).Gate)

	e.Candidate = &gates.Build{OK: true}
	fmt.Println(gates.Next(policy, e).Gate)

	e.Candidate = &gates.Build{OK: false}
	fmt.Printf("%q\n", gates.Next(policy, e).Gate) // what does not compile is not run
	// Output:
	// build
	// correctness
	// ""
}

// Occupancy follows from what the compiler reports, without a GPU.
func ExampleBlocksPerSM() {
	for _, registers := range []int{64, 128, 255} {
		blocks, limit, _ := gates.BlocksPerSM("sm_90", 256, registers, 48<<10)
		fmt.Printf("%d registers: %d at a time, limited by %s\n", registers, blocks, limit)
	}
	// Output:
	// 64 registers: 4 at a time, limited by registers
	// 128 registers: 2 at a time, limited by registers
	// 255 registers: 1 at a time, limited by registers
}
