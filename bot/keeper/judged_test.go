package keeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	measuring "github.com/kernelgate/kernelgate/runners"
)

// Whoever sees to the runners hears of every verdict, and of which of them the runner is at fault.
func TestFaultsOfRunnersAreTold(t *testing.T) {
	broken := func(context.Context, measuring.Job, string, measuring.Progress) (measuring.Measured, error) {
		return measuring.Measured{}, errors.New("the GPU has fallen off the bus")
	}
	for name, test := range map[string]struct {
		opt   worldOptions
		ends  string
		fault string
	}{
		"at fault": {worldOptions{retold: true, measure: broken}, "failure", "the GPU has fallen off the bus"},
		"in order": {worldOptions{retold: true}, "success", ""},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan [3]string, 100)
			test.opt.judged = func(_ context.Context, runner, kernel, fault string) { told <- [3]string{runner, kernel, fault} }
			w := newWorld(t, test.opt)
			pr := w.propose("change", "// speed 1.5\n", embedded.PROptions{})
			w.concluded(pr.HeadSHA(), test.ends)
			got := <-told // before the verdict is shown
			if got[0] != "runner" || got[1] != "olga/kernels scale" || (got[2] == "") != (test.fault == "") || !strings.Contains(got[2], test.fault) {
				t.Errorf("told %q", got)
			}
		})
	}
}
