package actions_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/actions"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// TestDiskErrors checks that a disk that refuses writes ends the check as an error. A check that
// stays in progress would block the change forever.
func TestDiskErrors(t *testing.T) {
	// Put files where folders are needed.
	file := func(w *world, path string) {
		w.Helper()
		w.no(os.WriteFile(path, []byte("a file\n"), 0o600))
	}
	for name, c := range map[string]struct {
		with func(w *world, c *actions.Config)
		says string
	}{
		"the results cannot be kept": {func(w *world, c *actions.Config) {
			c.Results = filepath.Join(w.dir, "full")
			file(w, c.Results)
		}, "making the results folder"},
		"the second job cannot be unpacked": {func(w *world, c *actions.Config) {
			measure := c.Measure
			c.Measure = func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
				// The job of the first kernel removes the bundles that wait for their turn.
				w.no(os.RemoveAll(filepath.Join(filepath.Dir(filepath.Dir(scratch)), "bundles")))
				return measure(ctx, job, scratch, p)
			}
		}, "bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{
				"kernels/twin/kernel.yaml": strings.Replace(manifest, "name: scale", "name: twin", 1),
				"kernels/twin/scale.c":     "// speed 1.0\n", "kernels/twin/reference.c": "// the truth\n",
			}, mayWrite)
			pr := w.propose("faster", map[string]string{"kernels/scale/scale.c": "// speed 1.3\n", "kernels/twin/scale.c": "// speed 1.3\n"}, embedded.PROptions{})
			j := w.actIn(t.Context(), "pull_request", func(config *actions.Config) { c.with(w, config) })
			if j.err != nil || j.Verdict != gates.Error || j.Exit != 3 {
				t.Errorf("the job ends with %+v, %v", j.End, j.err)
			}
			check, ok := w.repo.Check(pr.HeadSHA(), "kernelgate")
			if !ok || check.Status != "completed" || check.Conclusion != "failure" || !strings.Contains(check.Title+check.Summary+check.Text, c.says) {
				t.Errorf("the check is %+v", check)
			}
			for _, kernel := range []string{"scale", "twin"} {
				if c, ok := w.repo.Check(pr.HeadSHA(), "kernelgate / "+kernel); ok && c.Status != "completed" {
					t.Errorf("the check of %s is %s", kernel, c.Status)
				}
			}
		})
	}
}
