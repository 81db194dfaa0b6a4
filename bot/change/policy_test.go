package change

import (
	"encoding/json"
	"testing"
)

const minimal = "version: 1\ngates: {correctness: {norm_error: \"<= 1%\"}}\nrules: [{name: default}]\n"

// A stored plan's policy is parsed once, for every copy of the plan.
func TestPolicyIsParsedOnce(t *testing.T) {
	data, err := json.Marshal(Planned{Plan{PolicyFile: "p.yaml", Policy: minimal}})
	if err != nil {
		t.Fatal(err)
	}
	event, err := Decode("planned", data)
	if err != nil {
		t.Fatal(err)
	}
	plan := event.(Planned).Plan
	again := plan
	first, err := plan.ReadPolicy()
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := again.ReadPolicy(); second != first {
		t.Error("a copy of the plan has a different policy")
	}
	var set Plan
	set.SetPolicy(minimal, first)
	if got, _ := set.ReadPolicy(); got != first || set.Policy != minimal {
		t.Error("the policy that the plan was given is parsed again")
	}
	again.Policy = "version: ["
	if _, err := again.ReadPolicy(); err == nil {
		t.Error("a plan with a different text has the policy of the first")
	}
}
