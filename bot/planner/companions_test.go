package planner

import "testing"

// A reference in Python has no companions, whatever its comments look like to a reader of C: its sandbox shows it no other file.
func TestCompanionsOfReferences(t *testing.T) {
	const text = "# import of \"helper.h\" and others\n#include \"helper.h\"\nimport helper\n"
	if names, alone := companionNames("kernels/softmax/reference.py", []byte(text)); len(names) > 0 || !alone {
		t.Errorf("in Python: %v, alone %v", names, alone)
	}
	if names, alone := companionNames("kernels/softmax/reference.cu", []byte("#include \"helper.h\"\n")); len(names) != 1 || alone {
		t.Errorf("in CUDA: %v, alone %v", names, alone)
	}
}
