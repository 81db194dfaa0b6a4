package change

import "testing"

// A head that moves away and back, whoever pushes it or however late the word of it
// comes, is planned again: the runs of its plan have ended, and a plan without runs would
// read as a change without kernels.
func TestHeadThatComesBack(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("gemm")).seen(facts(headTwo)).seen(facts(headOne))
	if !s.NeedsPlan() || s.Current() != nil {
		t.Errorf("the plan of before still counts, with %d runs", len(s.Runs))
	}
	s.plan(kernel("gemm"))
	if len(s.Wanted()) != 1 {
		t.Errorf("%d jobs are wanted, want 1", len(s.Wanted()))
	}
}
