package present

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

func TestInRepository(t *testing.T) {
	for _, c := range []struct {
		folder, file, want string
		ok                 bool
	}{
		{"kernels/sdpa", "stage1.cu", "kernels/sdpa/stage1.cu", true},
		{"kernels/sdpa", "./inc/a.cuh", "kernels/sdpa/inc/a.cuh", true},
		{"kernels/sdpa", "../common.cuh", "kernels/common.cuh", true},
		{"kernels/sdpa", "kernels/sdpa/stage1.cu", "kernels/sdpa/stage1.cu", true},
		{"", "k.cu", "k.cu", true},
		{"kernels/sdpa", "/usr/include/math.h", "", false},
		{"kernels/sdpa", "../../../etc/passwd", "", false},
		{"kernels/sdpa", "", "", false},
		{"kernels/sdpa", "a\nb", "", false},
		{"kernels/sdpa", ".repository/csrc/norm.cu", "csrc/norm.cu", true},
		{"kernels/sdpa", ".sets/cutlass/cutlass.h", "", false},
	} {
		if got, ok := inRepository(c.folder, c.file); ok != c.ok || ok && got != c.want {
			t.Errorf("%q in %q: %q, %v", c.file, c.folder, got, ok)
		}
	}
}

func TestAnnotationsAreBounded(t *testing.T) {
	v := judge(t, "spills", nil)
	v.Findings = nil
	for i := range 250 {
		v.Findings = append(v.Findings, gates.Diagnostic{File: "k.cu", Line: i, Severity: "warning", Message: "unused"})
	}
	v.Findings = append(v.Findings, gates.Diagnostic{File: "k.cu", Line: 999, Severity: "error", Message: "undefined"})
	s := tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", v)
	c := Checks(s.view)[1]
	if len(c.Annotations) != maxAnnotations || c.Annotations[0].StartLine != 999 || !strings.Contains(c.Text, "200 findings are shown on their lines, 51 more are not.") {
		t.Errorf("%d annotations, the first on line %d; the text says %q", len(c.Annotations), c.Annotations[0].StartLine, c.Text)
	}
}

func TestWaiting(t *testing.T) {
	h200 := func(busy bool) RunnerInfo { return RunnerInfo{Name: "r", Labels: []string{"gpu", "h200"}, Busy: busy} }
	for _, c := range []struct {
		name    string
		runners []RunnerInfo
		live    runners.LogEntry
		want    string
	}{
		{"none", nil, runners.LogEntry{}, "Waiting for a runner labelled h200: none is connected"},
		{"none that fits", []RunnerInfo{{Name: "r", Labels: []string{"l4"}}}, runners.LogEntry{}, "Waiting for a runner labelled h200: none is connected"},
		{"one, busy", []RunnerInfo{h200(true)}, runners.LogEntry{}, "Waiting for a runner labelled h200: it is busy"},
		{"two, busy", []RunnerInfo{h200(true), h200(true)}, runners.LogEntry{}, "Waiting for a runner labelled h200: all 2 are busy"},
		{"one is free", []RunnerInfo{h200(true), h200(false)}, runners.LogEntry{}, "Waiting for a runner labelled h200"},
		{"a place in line", nil, runners.LogEntry{Event: runners.Event{Text: "third in line"}}, "third in line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tell(t).seen(nil).planned(nil, "sdpa_fp8")
			s.view.Runners = c.runners
			s.view.Progress[s.job("sdpa_fp8")] = c.live
			if got := Checks(s.view)[0]; got.Title != c.want || got.Status != inProgress {
				t.Errorf("%s: %q, want %q", got.Status, got.Title, c.want)
			}
		})
	}
}

// A run's place in line, or what its repository's limit says, is told in the check.
func TestPlaceInLine(t *testing.T) {
	day := time.Date(2025, 3, 15, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		place scheduler.Position
		want  string
	}{
		"nothing before it":   {scheduler.Position{}, "Waiting for a runner labelled h200: it is busy"},
		"next":                {scheduler.Position{Wait: 6 * time.Minute}, "Waiting for a runner labelled h200: next in line, starts in about 6 min"},
		"second":              {scheduler.Position{Ahead: 1, Wait: 80 * time.Second, Took: 4 * time.Minute}, "Waiting for a runner labelled h200: one job is ahead, starts in about 1 min and takes about 4 min"},
		"far back":            {scheduler.Position{Ahead: 64, Wait: 3 * time.Hour, Took: 40 * time.Second}, "Waiting for a runner labelled h200: 64 jobs are ahead, starts in about 3 h and takes about 40 s"},
		"too many at once":    {scheduler.Position{Held: &scheduler.Held{Limit: scheduler.Limit{Jobs: 4}, Jobs: 4}}, "Held back: the repository may have 4 at runners at once"},
		"no minutes any more": {scheduler.Position{Held: &scheduler.Held{Limit: scheduler.Limit{GPUTime: 10 * time.Hour}, Until: day}}, "Held back: the repository's 600 GPU minutes of this day are used, and the next begin at 00:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t).seen(nil).planned(nil, "sdpa_fp8")
			before := Checks(s.view)[0].Digest
			s.view.Runners = []RunnerInfo{{Name: "r", Labels: []string{"h200"}, Busy: true}}
			s.view.Places = map[string]scheduler.Position{s.job("sdpa_fp8"): c.place}
			got := Checks(s.view)[0]
			if got.Title != c.want || got.Status != inProgress || got.Digest != before {
				t.Errorf("%s: %q, want %q", got.Status, got.Title, c.want)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		p    runners.LogEntry
		want string
	}{
		{runners.LogEntry{Event: runners.Event{Gate: "build"}}, "build"},
		{runners.LogEntry{Event: runners.Event{Gate: "build", Text: "candidate"}}, "build: candidate"},
		{runners.LogEntry{Event: runners.Event{Gate: "correctness", Done: 36, Total: 36, Unit: "cases"}}, "correctness: case 36 of 36"},
		{runners.LogEntry{Event: runners.Event{Gate: "performance", Text: "mission", Done: 3, Total: 20, Unit: "rounds", Detail: "+15.9 %", Left: 40}}, "performance: mission, round 4 of 20, +15.9 %, about 40 s left"},
		{runners.LogEntry{Event: runners.Event{Gate: "performance", Left: 3 * 3600}}, "performance: about 3 h left"},
	} {
		if got := progressLine(c.p.Event); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	s := running(t)
	s.view.Now = s.at.Add(10 * time.Minute)
	if got := Checks(s.view)[0].Summary; !strings.Contains(got, "(last report 10 min ago)") {
		t.Errorf("a runner that fell silent: %q", got)
	}
}

// A digest tells what is worth a write: news, but not progress.
func TestDigest(t *testing.T) {
	s := running(t)
	before, comment := Checks(s.view), CommentDigest(s.view)
	s.view.Progress, s.view.Now, s.view.Runners[0].Busy = nil, s.at.Add(time.Hour), false
	for i, c := range Checks(s.view) {
		if c.Digest != before[i].Digest {
			t.Errorf("progress changes the digest of %s", c.Name)
		}
	}
	if CommentDigest(s.view) != comment {
		t.Error("progress changes the comment's digest")
	}
	s.finished("sdpa_fp8", judge(t, "spills", nil))
	after := Checks(s.view)
	if len(after) != 2 || after[0].Digest != before[0].Digest || CommentDigest(s.view) != comment {
		t.Error("the first verdict of two is told by more than the kernel's own check")
	}
	s.finished("gemm_fp8", judge(t, "spills", nil))
	last := Checks(s.view)
	if len(last) != 3 || last[0].Digest == before[0].Digest || last[1].Digest != after[1].Digest || CommentDigest(s.view) == comment {
		t.Error("the last verdict is not told by its kernel's check, the required one and the comment")
	}
}

// What a runner has begun is told by the required check alone, until there is more to say.
func TestFirstWord(t *testing.T) {
	s := tell(t).seen(nil)
	reading := Checks(s.view)[0]
	s.planned(nil, "sdpa_fp8")
	waiting := Checks(s.view)
	s.started("sdpa_fp8")
	working := Checks(s.view)
	if len(waiting) != 1 || len(working) != 1 || waiting[0].Digest != working[0].Digest || waiting[0].Digest == reading.Digest {
		t.Errorf("queued: %+v\nrunning: %+v", waiting, working)
	}
	if text := Comment(s.view); text != "" {
		t.Errorf("a comment before there is a verdict: %s", text)
	}
}

func TestExternalID(t *testing.T) {
	s := tell(t).seen(nil).planned(nil, "sdpa/fp8").finished("sdpa/fp8", judge(t, "spills", nil))
	checks := Checks(s.view)
	for i, text := range []string{checks[0].ExternalID, checks[1].ExternalID, externalID(s.state.ID, change.KernelKey{Folder: "a@b/c on d", Device: "h200"})} {
		want := []change.KernelKey{{}, {Folder: "kernels/sdpa/fp8"}, {Folder: "a@b/c on d", Device: "h200"}}[i]
		if id, got, err := ParseExternalID(text); err != nil || id != s.state.ID || got != want {
			t.Errorf("%v, %+v, %v", id, got, err)
		}
	}
	if _, _, err := ParseExternalID("somebody else's"); err == nil {
		t.Error("a foreign id was read")
	}
}

// A check that the new plan does not have would hang for ever.
func TestLeftBehind(t *testing.T) {
	s := tell(t).seen(nil).planned(nil, "sdpa_fp8", "gemm")
	posted := map[string]change.Posted{}
	for i, name := range []string{"kernelgate", "kernelgate / sdpa_fp8", "kernelgate / gemm"} { // measured again, say
		posted[change.CheckKey(name, sha1)] = change.Posted{ID: int64(i + 1)}
	}
	s.do(change.Published{Checks: posted}).seen(func(f *change.Facts) { f.Labels = []string{"docs"} }).planned(nil, "sdpa_fp8")
	checks := Checks(s.view)
	last := checks[len(checks)-1]
	if len(checks) != 3 || last.Name != "kernelgate / gemm" || last.Conclusion != cancelled || last.Title != "No longer part of this change" {
		t.Errorf("%s", dump(checks))
	}
}

// A kernel whose verdict is not at hand still has its line.
func TestWithoutVerdict(t *testing.T) {
	s := tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", judge(t, "spills", nil))
	clear(s.view.Verdicts)
	c := Checks(s.view)[1]
	if c.Conclusion != failure || !strings.HasPrefix(c.Title, "DEFER (resources) sdpa_fp8: Over budget") {
		t.Errorf("%s: %s", c.Conclusion, c.Title)
	}
	if text := Comment(s.view); !strings.Contains(text, "Over budget") {
		t.Error(text)
	}
}

func TestButtons(t *testing.T) {
	for _, buttons := range []bool{false, true} {
		s := tell(t).seen(nil).planned(nil, "sdpa_fp8").finished("sdpa_fp8", judge(t, "spills", nil))
		s.view.Buttons = buttons
		for _, c := range Checks(s.view) {
			if (len(c.Actions) > 0) != buttons {
				t.Errorf("buttons %v: %s has %s", buttons, c.Name, fmt.Sprint(c.Actions))
			}
		}
	}
}

// A status says how the change stands, whatever words its title begins with.
func TestStatusIsNotReadFromTheTitle(t *testing.T) {
	for _, c := range []struct {
		outcome gates.Outcome
		line    string
		want    string
	}{
		{gates.Defer, "Runner: a line that anybody may have written", "failure"},
		{gates.Error, "ERROR (runner) sdpa_fp8: it is lost", "error"},
		{gates.Pass, "Runner: a line that anybody may have written", "success"},
	} {
		s := tell(t).seen(nil).planned(nil, "sdpa_fp8")
		s.do(change.Finished{Job: s.job("sdpa_fp8"), Token: s.state.Seq, Result: change.Result{Outcome: c.outcome, Line: c.line}})
		for _, check := range Checks(s.view) {
			if state, description := check.CommitStatus(); state != c.want {
				t.Errorf("%s of %s is %s (%s), want %s", check.Name, c.outcome, state, description, c.want)
			}
		}
	}
}
