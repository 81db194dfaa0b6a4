package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
)

func TestRival(t *testing.T) {
	t.Parallel()
	job, config := trial{}.job(t)
	got, err := RunRival(t.Context(), job.Manifest.Rivals[0], job.Trusted, job.Manifest.Shapes, config)
	if err != nil {
		t.Fatal(err)
	}
	want := []gates.Rival{{Name: "other", Shape: "mission", Stats: stats.Describe([]float64{40, 42, 44, 40, 42, 44})}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ name, script, says string }{
		{"fails", "echo 'no module named torch' >&2; exit 1", "timing the rival other: the bench command ended with status 1: no module named torch (run its command by hand"},
		{"prints nothing", "echo hello", `timing the rival other: it printed no times (print lines such as {"shape":…,"us":[…]})`},
		{"prints garbage", "echo '{'", "timing the rival other: the bench command's results can not be read: standard output, line 1: the JSON object is cut off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(job.Trusted, "rival.sh"), []byte(c.script), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := RunRival(t.Context(), job.Manifest.Rivals[0], job.Trusted, job.Manifest.Shapes, config); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got  %v\nwant %s", err, c.says)
			}
		})
	}
}
