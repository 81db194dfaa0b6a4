package gates

import "testing"

// TestStatic checks which gates need no run. The precision gate has no evidence of its own, and still needs the cases of correctness.
func TestStatic(t *testing.T) {
	for gate, want := range map[Gate]bool{GateBuild: true, GatePTXAS: true, GateCubinGrowth: true, GateCorrectness: false, GatePrecision: false, GatePerformance: false, GateProfile: false} {
		if gate.Static() != want {
			t.Errorf("%s: %v", gate, gate.Static())
		}
	}
}
