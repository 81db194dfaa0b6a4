package present

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// A kernel that is compiled ahead says what it waits for, stage by stage; that it goes on to a GPU is worth a write.
func TestBuilding(t *testing.T) {
	s := tell(t).seen(nil).planned(nil, "sdpa_fp8")
	job := s.job("sdpa_fp8")
	s.state.Runs[0].Build = "build-nvcc"
	s.view.Runners = nil
	expect := func(want string) string {
		t.Helper()
		c := Checks(s.view)[0]
		if c.Title != want || c.Status != inProgress {
			t.Errorf("%s: %q, want %q", c.Status, c.Title, want)
		}
		return c.Digest
	}
	expect("Waiting for a runner labelled h200: none is connected")
	s.view.Runners = []RunnerInfo{{Name: "build1", Labels: []string{"build-nvcc"}}}
	expect("Waiting for a host that builds")
	s.do(change.Started{Job: job, Token: s.state.Seq, Runner: "build1", Builds: true})
	before := expect("Building on build1")
	s.view.Progress[job] = runners.LogEntry{Event: runners.Event{Gate: gates.GateBuild, Text: "compiling the baseline", Detail: "sm_90"}}
	expect("Building on build1: compiling the baseline, sm_90")
	delete(s.view.Progress, job)
	s.do(change.Built{Job: job, Token: s.state.Seq, Compiled: change.Compiled{By: "build1"}})
	if after := expect("Built on build1, waiting for a runner labelled h200: none is connected"); after == before {
		t.Error("that it was built is not worth a write")
	}
	s.do(change.Started{Job: job, Token: s.state.Seq, Runner: "h200-1"})
	expect("Running on h200-1")

	faulty := tell(t).seen(nil).planned(nil, "sdpa_fp8")
	faulty.state.Runs[0].Build, faulty.view.Runners = "build-nvcc", s.view.Runners
	faulty.do(change.Built{Job: faulty.job("sdpa_fp8"), Token: faulty.state.Seq, Compiled: change.Compiled{By: "build1", Fault: change.BuildLost}})
	if got := Checks(faulty.view)[0].Title; got != "Waiting for a runner labelled h200: none is connected" {
		t.Errorf("after a fault: %q", got)
	}
}
