package controller_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// onDevices is the policy with different devices. The labels are made up: every runner is scripted.
func onDevices(devices string) string {
	return strings.Replace(policyYAML, "devices: [cpu]", "devices: "+devices, 1)
}

// newDevices is a world whose policy names devices, and that knows a runner for each of l4 and h200. Both say that they have the
// same hardware, so that only the label tells them apart.
func newDevices(t *testing.T, devices string, opt worldOptions) *world {
	t.Helper()
	opt.absent = true
	opt.others = map[string]fleet.Credential{"one": fleet.NewCredential("one's", "l4"), "two": fleet.NewCredential("two's", "h200")}
	w := newWorld(t, opt)
	w.policy(devices)
	return w
}

// policy changes the devices of the base's policy.
func (w *world) policy(devices string) {
	w.Helper()
	_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": onDevices(devices)}, "Devices "+devices)
	w.no(err)
}

// hireFor starts the runner of a device. A source says what it would see there: "// speed 1.5; h200: speed 1.0".
func (w *world) hireFor(device string) (stop func()) {
	own := regexp.MustCompile(device + `: ([^;\n]*)`)
	script := func(source string) string {
		if m := own.FindStringSubmatch(source); m != nil {
			return m[1]
		}
		return strings.Split(source, ";")[0]
	}
	return w.hireTo(device, scripted.Runner{Hold: w.hold, Script: script}.Measure)
}

func (w *world) hireTo(device string, measure func(context.Context, measuring.Job, string, measuring.Progress) (measuring.Measured, error)) (stop func()) {
	w.Helper()
	return w.hire(agent.Config{Name: map[string]string{"l4": "one", "h200": "two"}[device], Labels: []string{device}, Measure: measure})
}

// passesOn waits for the check of the kernel on a device.
func (w *world) passesOn(sha, device, conclusion string) {
	w.Helper()
	w.until("scale on "+device+": "+conclusion, func() bool {
		c, _ := w.repo.Check(sha, "kernelgate / scale on "+device)
		return c.Status == "completed" && c.Conclusion == conclusion
	})
}

// runsOf is the runs of a commit that runners have measured, oldest first, such as "l4 1 PASS".
func (w *world) runsOf(pr *embedded.PR) (runs []string) {
	w.Helper()
	s, err := w.running.ledger.Change(w.ctx, change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()})
	w.no(err)
	for _, r := range append(s.Past, s.Runs...) {
		if r.Head == pr.HeadSHA() && r.Runner != "" && r.Result != nil {
			runs = append(runs, fmt.Sprintf("%s %d %s", r.Device, r.Attempt, r.Result.Outcome))
		}
	}
	return runs
}

func (w *world) ran(pr *embedded.PR, want ...string) {
	w.Helper()
	if got := w.runsOf(pr); strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.Errorf("measured %q, want %q", got, want)
	}
}

// A change passes if it passes on every device. Evidence of one device counts for no other, though both build the same machine code
// and say that they are the same hardware.
func TestDevicesMustAgree(t *testing.T) {
	w := newDevices(t, "{all: [l4, h200]}", worldOptions{})
	w.hireFor("l4")
	both := w.propose("faster", "// speed 1.5\n", embedded.PROptions{Title: "Faster"})
	w.passesOn(both.HeadSHA(), "l4", "success") // the first device spends more of the error rate, and takes fewer rounds
	leave := w.hireFor("h200")
	w.concluded(both.HeadSHA(), "success")
	w.passesOn(both.HeadSHA(), "h200", "success")
	leave()
	one := w.propose("faster-on-l4", "// speed 1.5; h200: speed 1.0\n", embedded.PROptions{Title: "Faster on one"})
	w.passesOn(one.HeadSHA(), "l4", "success")
	w.hireFor("h200")
	w.concluded(one.HeadSHA(), "failure")
	w.passesOn(one.HeadSHA(), "h200", "failure")
	w.said(one, "DEFER: 1 of 2 runs (scale on h200: too-slow)")
	w.ran(one, "l4 1 PASS", "h200 1 DEFER")
	if one.MergeRefusal("walt") == "" {
		t.Error("a kernel that is slower on one device may be merged")
	}
	w.golden("devices", []*embedded.PR{both, one})

	w.reacted(one, w.comment(one, "walt", "/rebench on h200"), "rocket")
	w.settle()
	w.ran(one, "h200 1 DEFER", "l4 1 PASS", "h200 2 DEFER")
	w.reacted(one, w.comment(one, "walt", "/rebench on a100"), "confused")
	w.said(one, "The policy does not ask for a run on `a100`. It asks for `h200`, `l4`.")
	w.reacted(one, w.comment(one, "mara", "/override the h200 goes out of service"), "rocket")
	w.concluded(one.HeadSHA(), "success")
}

// Where a device only informs, its verdict moves nothing, and nobody waits for it.
func TestDeviceThatInforms(t *testing.T) {
	w := newDevices(t, "{block: [l4], inform: [h200]}", worldOptions{})
	w.hireFor("l4")
	pr := w.propose("faster-on-l4", "// speed 1.5; h200: speed 1.0\n", embedded.PROptions{})
	w.decided(pr.HeadSHA(), "success") // no h200 is there
	w.said(pr, "This device only informs, so the check does not wait for it.")
	w.hireFor("h200")
	w.passesOn(pr.HeadSHA(), "h200", "success")
	w.said(pr, "inform: would be DEFER (too-slow)")
	w.concluded(pr.HeadSHA(), "success")
	wrong := w.propose("faster-on-h200", "// speed 1.0; h200: speed 1.5\n", embedded.PROptions{})
	w.concluded(wrong.HeadSHA(), "failure")

	// What was measured for information spent no error rate of the change. Once the device blocks, it is measured again.
	w.policy("{all: [l4, h200]}")
	w.concluded(pr.HeadSHA(), "failure")
	w.ran(pr, "l4 1 PASS", "h200 1 DEFER", "h200 1 DEFER")
}

// A runner that is lost in the middle of its work leaves the verdict of the other device as it is. Once it is back, the head gets
// its verdict.
func TestRunnerOfOneDeviceIsLost(t *testing.T) {
	w := newDevices(t, "{all: [l4, h200]}", worldOptions{lease: time.Second})
	w.hireFor("l4")
	begun := make(chan bool, 10)
	stop := w.hireTo("h200", func(ctx context.Context, _ measuring.Job, _ string, _ measuring.Progress) (measuring.Measured, error) {
		begun <- true
		<-ctx.Done()
		return measuring.Measured{}, ctx.Err()
	})
	pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{})
	<-begun
	w.passesOn(pr.HeadSHA(), "l4", "success")
	stop()
	w.until("one device is decided", func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Status == "in_progress"
	})
	if pr.MergeRefusal("walt") == "" {
		t.Error("it may be merged without the verdict of the h200")
	}
	w.hireFor("h200")
	w.concluded(pr.HeadSHA(), "success")
	w.ran(pr, "l4 1 PASS", "h200 1 PASS")
}

// A device without any runner holds the head, the bot says so, and after some days the run ends as an error that says why.
func TestDeviceThatNobodyHas(t *testing.T) {
	if present.RunExpiry != journal.KeepBundles {
		t.Errorf("a run waits %v, and the comment says %v", journal.KeepBundles, present.RunExpiry)
	}
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	w := newDevices(t, "{all: [l4, h200]}", worldOptions{now: now, watchful: true})
	w.hireFor("l4")
	pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{})
	w.said(pr, "No runner with the label `h200` is connected. The check waits for it.")
	w.shows(pr.HeadSHA(), "kernelgate runner --labels h200")
	s, err := w.running.ledger.Change(w.ctx, change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()})
	w.no(err)
	run, ok := s.ByKey(change.KernelKey{Folder: "kernels/scale", Device: "h200"})
	if !ok || run.Phase != change.Queued {
		t.Fatalf("the run on the h200 is %+v", run)
	}
	w.no(w.running.journal.Bundles.Delete(w.ctx, run.Bundle)) // as its time does
	later.Store(int64(journal.KeepBundles))
	c := w.decided(pr.HeadSHA(), "failure")
	if want := "no runner labelled h200 took the job within 7 days"; !strings.Contains(c.Summary+c.Text, want) {
		t.Errorf("the check says %q\n%s", c.Title, c.Summary)
	}
	w.passesOn(pr.HeadSHA(), "l4", "success")
	w.hireFor("h200")
	w.reacted(pr, w.comment(pr, "walt", "/rebench on h200"), "rocket")
	w.concluded(pr.HeadSHA(), "success")
}

// The base's policy asks for a second device while a pull request is open: the verdict of one device lets nothing in any more, its
// evidence counts where the same runners measured it, and the new device is measured.
func TestDevicesOfTheBaseChange(t *testing.T) {
	w := newDevices(t, "[l4]", worldOptions{})
	w.hireFor("l4")
	stop := w.hireFor("h200")
	pr := w.propose("faster-on-l4", "// speed 1.5; h200: speed 1.0\n", embedded.PROptions{})
	w.concluded(pr.HeadSHA(), "success")
	stop()
	w.policy("{all: [l4, h200]}")
	w.until("the h200 is awaited", func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Status == "in_progress" && strings.Contains(c.Title+c.Summary, "1 of 2 runs done")
	})
	if pr.MergeRefusal("walt") == "" {
		t.Error("the verdict of one device lets it in")
	}
	w.hireFor("h200")
	w.concluded(pr.HeadSHA(), "failure")
	w.ran(pr, " 1 PASS", "h200 1 DEFER")
	w.policy("{all: [l4]}")
	w.concluded(pr.HeadSHA(), "success")
	w.ran(pr, " 1 PASS", "h200 1 DEFER")
}

// Evidence of whichever runner came first, by an order of preference, stands for none of the devices that must agree.
func TestEvidenceOfAnEarlierSetOfDevices(t *testing.T) {
	w := newDevices(t, "[l4, h200]", worldOptions{retold: true})
	stop := w.hireFor("h200")
	pr := w.propose("faster-on-h200", "// speed 1.0; h200: speed 1.5\n", embedded.PROptions{})
	w.concluded(pr.HeadSHA(), "success")
	stop()
	w.hireFor("l4")
	w.policy("{all: [l4]}")
	w.concluded(pr.HeadSHA(), "failure")
	w.ran(pr, " 1 PASS", "l4 1 DEFER")
}

// The author of a change cannot drop a device: the base says which there are, and a change of them waits for an approval.
func TestAuthorDropsADevice(t *testing.T) {
	w := newDevices(t, "{all: [l4, h200]}", worldOptions{retold: true})
	w.hireFor("l4")
	w.hireFor("h200")
	for i, devices := range []string{"{all: [l4]}", "{block: [l4], inform: [h200]}", "[l4]"} {
		pr := w.change(fmt.Sprint("drop-", i), map[string]string{sourceFile: fmt.Sprintf("// speed 1.5; h200: speed 1.0%d\n", i), ".github/kernelgate.yaml": onDevices(devices)}, "failure")
		w.passesOn(pr.HeadSHA(), "h200", "failure")
		w.ran(pr, "l4 1 PASS", "h200 1 DEFER")
		fast := w.change(fmt.Sprint("fast-", i), map[string]string{sourceFile: fmt.Sprintf("// speed 1.5%d\n", i), ".github/kernelgate.yaml": onDevices(devices)}, "action_required")
		w.ran(fast, "l4 1 PASS", "h200 1 PASS")
	}
}

// A merge group is measured on each device too.
func TestDevicesInAMergeGroup(t *testing.T) {
	w := newDevices(t, "{all: [l4, h200]}", worldOptions{})
	w.hireFor("l4")
	w.hireFor("h200")
	const other = "kernels/other/scale.c"
	_, err := w.repo.Push("main", map[string]string{"kernels/other/kernel.yaml": strings.Replace(manifestYAML, "name: scale", "name: other", 1), other: "// speed 1.0\n", "kernels/other/reference.c": "// the truth\n"}, "Another")
	w.no(err)
	good := w.change("good", map[string]string{sourceFile: "// speed 1.5\n"}, "success")
	bad := w.change("bad", map[string]string{other: "// speed 1.5; h200: speed 1.0\n"}, "failure")
	group := w.enqueued(good, bad)
	w.checkIn(w.repo, group, "failure")
	rows, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{Limit: 100})
	w.no(err)
	var runs []string
	for _, r := range rows {
		if r.Head == group {
			runs = append(runs, r.Kernel+" "+string(r.Outcome))
		}
	}
	for _, want := range []string{"scale on l4 PASS", "scale on h200 PASS", "other on l4 PASS", "other on h200 DEFER"} {
		if !strings.Contains(strings.Join(runs, ", "), want) {
			t.Errorf("the group was measured as %q, and %s is not there", runs, want)
		}
	}
	w.dequeued(good, bad)
	w.checkIn(w.repo, w.enqueued(good), "success")
}

// All machine codes of a pull request share one error rate, on all devices that block: see attempts.Key.OfPull.
func TestErrorRateOfDevices(t *testing.T) {
	w := newDevices(t, "{block: [l4, h200]}", worldOptions{retold: true})
	w.hireFor("l4")
	w.hireFor("h200")
	pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{})
	w.concluded(pr.HeadSHA(), "success")
	numbers := map[int]bool{}
	s, err := w.running.ledger.Change(w.ctx, change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()})
	w.no(err)
	for _, r := range s.Runs {
		data, err := w.running.journal.Artifacts.Read(w.ctx, r.Result.Evidence)
		w.no(err)
		e, err := gates.ParseEvidence("evidence", data)
		w.no(err)
		if e.Provenance.Label != r.Device {
			t.Errorf("the evidence on %s is of %q", r.Device, e.Provenance.Label)
		}
		numbers[e.Performance.CodeNumber()] = true
	}
	if !numbers[1] || !numbers[2] {
		t.Errorf("the machine codes have the numbers %v, want 1 and 2", numbers)
	}
}
