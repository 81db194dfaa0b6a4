package present

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// on makes a plan for devices; those that inform begin with "?".
func on(devices ...string) func(*change.Plan) {
	return func(p *change.Plan) {
		var all []change.Kernel
		for _, k := range p.Kernels {
			for _, d := range devices {
				run := k
				run.Device = strings.TrimPrefix(d, "?")
				run.Informs = run.Device != d
				run.Name, run.Labels = gates.NameOn(k.Name, run.Device), []string{run.Device}
				all = append(all, run)
			}
		}
		p.Kernels = all
	}
}

// finishedOn ends the run of a kernel on a device.
func (s *story) finishedOn(device, kernel string, v *gates.Verdict) *story {
	s.t.Helper()
	r, ok := s.state.ByKey(change.KernelKey{Folder: "kernels/" + kernel, Device: device})
	if !ok {
		s.t.Fatalf("no run of %s on %s", kernel, device)
	}
	its := *v
	its.Provenance.Label = device
	if r.Informs {
		its.Enforce = policy.EnforceInform
	}
	return s.finishedJob(r.Job, kernel, &its)
}

func TestGoldenDevices(t *testing.T) {
	pass, slow, broken := judge(t, "stage1", nil), judge(t, "stage3a", nil), judge(t, "broken", nil)
	fault := judge(t, "stage1", func(e *gates.Evidence) { e.Fault = "the job waited so long that its bundle has expired" })
	for name, s := range map[string]*story{
		"devices-pass":      tell(t).seen(nil).planned(on("box2", "h200"), "sdpa_fp8").finishedOn("box2", "sdpa_fp8", pass).finishedOn("h200", "sdpa_fp8", pass),
		"devices-defer":     tell(t).seen(nil).planned(on("box2", "h200"), "sdpa_fp8").finishedOn("box2", "sdpa_fp8", slow).finishedOn("h200", "sdpa_fp8", pass),
		"devices-waits":     tell(t).seen(nil).planned(on("box2", "h200"), "sdpa_fp8").finishedOn("h200", "sdpa_fp8", pass),
		"devices-nobody":    tell(t).seen(nil).planned(on("box2", "box3"), "sdpa_fp8"),
		"devices-expired":   tell(t).seen(nil).planned(on("box2", "h200"), "sdpa_fp8").finishedOn("h200", "sdpa_fp8", pass).finishedOn("box2", "sdpa_fp8", fault),
		"devices-inform":    tell(t).seen(nil).planned(on("h200", "?box2"), "sdpa_fp8").finishedOn("h200", "sdpa_fp8", pass),
		"devices-informed":  tell(t).seen(nil).planned(on("h200", "?box2"), "sdpa_fp8").finishedOn("h200", "sdpa_fp8", pass).finishedOn("box2", "sdpa_fp8", slow),
		"devices-several":   tell(t).seen(nil).planned(on("h200", "box3", "?box2"), "sdpa_fp8", "gemm_fp8").finishedOn("h200", "sdpa_fp8", pass).finishedOn("box3", "sdpa_fp8", broken).finishedOn("h200", "gemm_fp8", pass),
		"devices-one":       tell(t).seen(nil).planned(on("box2"), "sdpa_fp8"),
		"devices-fork":      tell(t).seen(func(f *change.Facts) { f.Fork = true }).planned(on("box2", "h200"), "sdpa_fp8"),
		"devices-cancelled": tell(t).seen(nil).planned(on("box2", "h200"), "sdpa_fp8").finishedOn("h200", "sdpa_fp8", pass).commanded("comment-1", "ada", "/cancel", true, change.Effect{Cancel: sha1}),
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".txt", dump(Checks(s.view)))
			if text := Comment(s.view); text != "" {
				golden(t, name+".md", text)
			} else if _, err := os.Stat(filepath.Join("testdata", name+".md")); err == nil {
				t.Error("there is a golden comment, but no comment")
			}
		})
	}
}

// However the devices of a change stand, the required check succeeds only if each device that blocks has passed, and what informs
// moves nothing.
func TestDevicesDecide(t *testing.T) {
	verdicts := map[string]*gates.Verdict{
		"pass": judge(t, "stage1", nil), "defer": judge(t, "stage3a", nil), "error": judge(t, "stage1", func(e *gates.Evidence) { e.Fault = "the GPU is gone" }),
	}
	words := []string{"none", "pass", "defer", "error"}
	for _, one := range words {
		for _, two := range words {
			var with, without Check
			for _, informs := range append([]string{"absent"}, words...) {
				s := tell(t).seen(nil)
				if informs == "absent" {
					s.planned(on("box2", "h200"), "sdpa_fp8")
				} else {
					s.planned(on("box2", "h200", "?box3"), "sdpa_fp8")
				}
				for device, word := range map[string]string{"box2": one, "h200": two, "box3": informs} {
					if v := verdicts[word]; v != nil {
						s.finishedOn(device, "sdpa_fp8", v)
					}
				}
				c := Checks(s.view)[0]
				if passes := c.Conclusion == success; passes != (one == "pass" && two == "pass") {
					t.Errorf("box2 %s, h200 %s, box3 informs %s: %s %s: %s", one, two, informs, c.Status, c.Conclusion, c.Title)
				}
				if informs == "absent" {
					without = c
					continue
				}
				with = c
				if with.Status != without.Status || with.Conclusion != without.Conclusion || with.Title != without.Title {
					t.Errorf("box2 %s, h200 %s: %s %s %q, and with a device that informs %s %s %q", one, two, without.Status, without.Conclusion, without.Title, with.Status, with.Conclusion, with.Title)
				}
			}
		}
	}
}

// An override for the kernels of one pull request of a group covers all devices of these kernels, and no other kernel.
func TestOverrideOfDevices(t *testing.T) {
	slow := judge(t, "stage3a", nil)
	s := tell(t).seen(nil).planned(on("box2", "h200"), "sdpa_fp8", "gemm_fp8")
	for _, kernel := range []string{"sdpa_fp8", "gemm_fp8"} {
		s.finishedOn("box2", kernel, slow).finishedOn("h200", kernel, slow)
	}
	o := &change.Override{For: given(sha1), By: "grace", Reason: "needed", Folders: []string{"kernels/sdpa_fp8"}}
	s.commanded("comment-5", "grace", "/override needed", true, change.Effect{Override: o})
	if c := Checks(s.view)[0]; c.Conclusion != failure {
		t.Errorf("%s: %s", c.Conclusion, c.Title)
	}
	o.Folders = append(o.Folders, "kernels/gemm_fp8")
	if c := Checks(s.view)[0]; c.Conclusion != success {
		t.Errorf("%s: %s", c.Conclusion, c.Title)
	}
}

// The name of every check is another, so that GitHub keeps all of them.
func TestChecksOfDevices(t *testing.T) {
	pass := judge(t, "stage1", nil)
	s := tell(t).seen(nil).planned(on("box2", "h200"), "sdpa_fp8").finishedOn("box2", "sdpa_fp8", pass).finishedOn("h200", "sdpa_fp8", pass)
	var names []string
	for _, c := range Checks(s.view) {
		names = append(names, c.Name)
	}
	if want := []string{"kernelgate", "kernelgate / sdpa_fp8 on box2", "kernelgate / sdpa_fp8 on h200"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}
