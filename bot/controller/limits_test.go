package controller_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/scheduler"
)

// What a repository's limit holds back says so in its check; and where there is no limit, the check says how many go first.
func TestPlaceInLineIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		limits scheduler.Limits
		says   string
	}{
		"a limit": {scheduler.Limits{"olga/kernels": {Jobs: 1}}, "Held back: the repository may have 1 at runners at once"},
		"a line":  {nil, "one job is ahead, starts in about "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{absent: true, quota: test.limits, retold: test.limits != nil})
			w.propose("first", "// speed 1.5\n", embedded.PROptions{})
			w.until("a job for the runner", func() bool { return w.asks().Job != "" })
			second := w.propose("second", "// speed 1.6\n", embedded.PROptions{})
			third := w.propose("third", "// speed 1.7\n", embedded.PROptions{})
			w.until("what its check says", func() bool {
				a, _ := w.repo.Check(second.HeadSHA(), "kernelgate")
				b, _ := w.repo.Check(third.HeadSHA(), "kernelgate")
				return strings.Contains(a.Title+b.Title, test.says)
			})
		})
	}
}
