package embedded_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

func annotations(n int) []*github.CheckRunAnnotation {
	var out []*github.CheckRunAnnotation
	for i := range n {
		out = append(out, &github.CheckRunAnnotation{Path: github.String("a.cu"), StartLine: github.Int(i + 1), EndLine: github.Int(i + 1),
			AnnotationLevel: github.String("warning"), Message: github.String(fmt.Sprint("spill ", i))})
	}
	return out
}

func TestCheckRun(t *testing.T) {
	t.Parallel()
	var written []string
	w := newWorld(t, embedded.Options{OnCheck: func(sha string, c embedded.Check) { written = append(written, sha+" "+c.Status+" "+c.Conclusion) }})
	pr := w.opened()
	c := w.bot()
	run, _, err := c.Checks.CreateCheckRun(w.ctx, "alice", "kernels", github.CreateCheckRunOptions{Name: "kernelgate", HeadSHA: pr.HeadSHA(),
		Status: github.String("in_progress"), ExternalID: github.String("run-1")})
	w.no(err)
	if run.Conclusion != nil || run.GetStatus() != "in_progress" || len(run.PullRequests) != 1 || run.PullRequests[0].GetNumber() != 1 {
		t.Fatalf("created: %v", run)
	}
	output := func(n int) *github.CheckRunOutput {
		return &github.CheckRunOutput{Title: github.String("PASS"), Summary: github.String("+16.1 %"), Annotations: annotations(n)}
	}
	actions := []*github.CheckRunAction{{Label: "Re-run", Description: "Measure again", Identifier: "rebench"}}
	for _, n := range []int{50, 10} {
		_, _, err = c.Checks.UpdateCheckRun(w.ctx, "alice", "kernels", run.GetID(), github.UpdateCheckRunOptions{Name: "kernelgate",
			Conclusion: github.String("success"), Output: output(n), Actions: actions})
		w.no(err)
	}
	done := pr.HeadSHA() + " completed success"
	if want := []string{pr.HeadSHA() + " in_progress ", done, done}; !slices.Equal(written, want) {
		t.Errorf("OnCheck was told %q, want %q", written, want)
	}
	check, ok := w.repo.Check(pr.HeadSHA(), "kernelgate")
	if !ok || len(check.Annotations) != 60 || check.Conclusion != "success" || check.Title != "PASS" {
		t.Errorf("after two updates: check %+v", check)
	}
	list, _, err := c.Checks.ListCheckRunsForRef(w.ctx, "alice", "kernels", "faster", &github.ListCheckRunsOptions{CheckName: github.String("kernelgate")})
	w.no(err)
	if list.GetTotal() != 1 || list.CheckRuns[0].Output.GetAnnotationsCount() != 60 {
		t.Errorf("list for the branch: %d", list.GetTotal())
	}
	w.quiet()
	if e := last[*github.CheckSuiteEvent](w); e.GetAction() != "completed" || e.CheckSuite.GetConclusion() != "success" {
		t.Errorf("suite: %v", e)
	}

	w.no(check.RequestAction("alice", "rebench"))
	w.quiet()
	if e := last[*github.CheckRunEvent](w); e.GetAction() != "requested_action" || e.RequestedAction.Identifier != "rebench" || e.Sender.GetLogin() != "alice" {
		t.Errorf("button: %v", e)
	}
	if check.RequestAction("alice", "unheard-of") == nil || check.Rerequest("nobody") == nil {
		t.Error("an unknown button, or one pressed by a stranger, worked")
	}
	w.no(check.Rerequest("alice"))
	w.no(check.RerequestSuite("alice"))
	w.quiet()
	if e := last[*github.CheckRunEvent](w); e.GetAction() != "rerequested" || e.CheckRun.GetStatus() != "completed" || w.repo.Checks(pr.HeadSHA())[0].Status != "queued" || e.CheckRun.CheckSuite.GetHeadBranch() != "faster" {
		t.Errorf("rerequested: %v", e)
	}
	if e := last[*github.CheckSuiteEvent](w); e.GetAction() != "rerequested" || e.CheckSuite.GetHeadSHA() != pr.HeadSHA() {
		t.Errorf("rerequested suite: %v", e)
	}
}

func TestCheckRunValidation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	sha := w.repo.Head("main")
	output := func(change func(*github.CheckRunOutput)) *github.CheckRunOutput {
		o := &github.CheckRunOutput{Title: github.String("t"), Summary: github.String("s")}
		change(o)
		return o
	}
	button := func(label string) *github.CheckRunAction {
		return &github.CheckRunAction{Label: label, Description: "d", Identifier: "i"}
	}
	tests := map[string]struct {
		change func(*github.CreateCheckRunOptions)
		field  string
	}{
		"unknown conclusion": {func(o *github.CreateCheckRunOptions) { o.Conclusion = github.String("passed") }, "conclusion"},
		"completed, no word": {func(o *github.CreateCheckRunOptions) { o.Status = github.String("completed") }, "conclusion"},
		"unknown status":     {func(o *github.CreateCheckRunOptions) { o.Status = github.String("running") }, "status"},
		"unknown commit":     {func(o *github.CreateCheckRunOptions) { o.HeadSHA = strings.Repeat("1", 40) }, ""},
		"no name":            {func(o *github.CreateCheckRunOptions) { o.Name = "" }, "name"},
		"51 annotations": {func(o *github.CreateCheckRunOptions) {
			o.Output = output(func(o *github.CheckRunOutput) { o.Annotations = annotations(51) })
		}, "output.annotations"},
		"no title": {func(o *github.CreateCheckRunOptions) {
			o.Output = output(func(o *github.CheckRunOutput) { o.Title = nil })
		}, "output.title"},
		"text too long": {func(o *github.CreateCheckRunOptions) {
			o.Output = output(func(o *github.CheckRunOutput) { o.Text = github.String(strings.Repeat("x", 65536)) })
		}, "output.text"},
		"annotation level": {func(o *github.CreateCheckRunOptions) {
			o.Output = output(func(o *github.CheckRunOutput) {
				o.Annotations = annotations(1)
				o.Annotations[0].AnnotationLevel = github.String("error")
			})
		}, "output.annotations.annotation_level"},
		"four buttons": {func(o *github.CreateCheckRunOptions) {
			o.Actions = []*github.CheckRunAction{button("1"), button("2"), button("3"), button("4")}
		}, "actions"},
		"button's label long": {func(o *github.CreateCheckRunOptions) {
			o.Actions = []*github.CheckRunAction{button(strings.Repeat("x", 21))}
		}, "actions.label"},
	}
	c := w.bot()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			opt := github.CreateCheckRunOptions{Name: "kernelgate", HeadSHA: sha}
			tt.change(&opt)
			_, _, err := c.Checks.CreateCheckRun(w.ctx, "alice", "kernels", opt)
			refusal := w.in(t).wantStatus(err, 422)
			if tt.field == "" {
				if want := "No commit found for SHA: " + opt.HeadSHA; refusal.Message != want || len(refusal.Errors) > 0 {
					t.Errorf("refused for %q, want %q", refusal.Message, want)
				}
				return
			}
			if len(refusal.Errors) != 1 || refusal.Errors[0].Field != tt.field {
				t.Errorf("refused for %+v, want field %s", refusal.Errors, tt.field)
			}
		})
	}
	if n := len(w.repo.Checks(sha)); n != 0 {
		t.Errorf("%d check runs were made by refused requests", n)
	}
}

func TestChecksNeedAnApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	sha := w.repo.Head("main")
	opt := github.CreateCheckRunOptions{Name: "kernelgate", HeadSHA: sha}
	_, _, err := w.person("alice").Checks.CreateCheckRun(w.ctx, "alice", "kernels", opt)
	if refusal := w.wantStatus(err, 403); refusal.Message != "Resource not accessible by personal access token" {
		t.Errorf("refused with %q", refusal.Message)
	}
	run := w.check(w.bot(), sha, "kernelgate", "success")
	key, err := testKey()
	w.no(err)
	other, err := w.hub.CreateApp(embedded.AppOptions{Slug: "other", Key: key})
	w.no(err)
	inst, err := other.Install(w.repo)
	w.no(err)
	_, _, err = w.client(inst.Token()).Checks.UpdateCheckRun(w.ctx, "alice", "kernels", run.GetID(), github.UpdateCheckRunOptions{Name: "kernelgate"})
	w.wantStatus(err, 403)
	weak, err := w.hub.CreateApp(embedded.AppOptions{Slug: "weak", Key: key, Permissions: map[string]string{"metadata": "read"}})
	w.no(err)
	inst, err = weak.Install(w.repo)
	w.no(err)
	_, _, err = w.client(inst.Token()).Checks.CreateCheckRun(w.ctx, "alice", "kernels", opt)
	if refusal := w.wantStatus(err, 403); refusal.Message != "Resource not accessible by integration" {
		t.Errorf("refused with %q", refusal.Message)
	}
}

func TestStatusesWithAPersonalToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	sha := w.repo.Head("main")
	w.hub.CreateUser("carol")
	status := func(state string) *github.RepoStatus {
		return &github.RepoStatus{State: &state, Context: github.String("kernelgate"), Description: github.String("words")}
	}
	_, _, err := w.person("carol").Repositories.CreateStatus(w.ctx, "alice", "kernels", sha, status("success"))
	w.wantStatus(err, 403)
	w.no(w.repo.Grant("carol", embedded.Write))
	c := w.person("carol")
	for _, state := range []string{"pending", "success"} {
		_, _, err := c.Repositories.CreateStatus(w.ctx, "alice", "kernels", sha, status(state))
		w.no(err)
	}
	if newest := w.repo.Statuses(sha); len(newest) != 1 || newest[0].State != "success" || newest[0].Creator != "carol" {
		t.Errorf("statuses: %+v", newest)
	}
	_, _, err = c.Repositories.CreateStatus(w.ctx, "alice", "kernels", sha, status("green"))
	w.wantStatus(err, 422)
}
