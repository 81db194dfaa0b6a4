package actions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/attempts"
	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// TestWorkflowCommands checks that texts of the change neither end nor begin a command.
func TestWorkflowCommands(t *testing.T) {
	var log strings.Builder
	w := &workflow{out: &log, random: func() string { return "word" }}
	w.annotate(client.Annotation{Path: "a,b:c%d.cu", StartLine: 3, EndLine: 4, Level: "failure", Title: "one, two: 3%", Message: "50%: bad,\r\n::set-env name=PATH::evil"})
	w.annotate(client.Annotation{Path: "k.cu", StartLine: 1, EndLine: 1, Level: "notice", Title: "t", Message: "m"})
	w.say("warning", "two\nlines")
	w.print("::error::forged\n")
	want := "::error file=a%2Cb%3Ac%25d.cu,line=3,endLine=4,title=one%2C two%3A 3%25::50%25: bad,%0D%0A::set-env name=PATH::evil\n" +
		"::notice file=k.cu,line=1,endLine=1,title=t::m\n" +
		"::warning title=kernelgate::two%0Alines\n" +
		"::stop-commands::word\n::error::forged\n::word::\n"
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Error(diff)
	}
}

func TestOutputs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(file, []byte("other=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := setOutputs(file, End{Verdict: gates.Defer, Reason: "build", Results: "/r"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if want := "other=1\nverdict=DEFER\nreason=build\nresults=/r\n"; err != nil || string(data) != want {
		t.Errorf("%q, %v; want %q", data, err, want)
	}
	if err := setOutputs(file, End{Results: "/r\nverdict=PASS"}); err == nil {
		t.Error("a second line was let through")
	}
	if err := setOutputs("", End{}); err != nil {
		t.Errorf("outside of a job: %v", err)
	}
}

func TestMistakesInTheJob(t *testing.T) {
	event := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(event, []byte(`{"action":"opened"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": event, "GITHUB_REPOSITORY": "a/b", "GITHUB_TOKEN": "t"}
	for _, test := range []struct{ name, key, value, says string }{
		{"not in a job", "GITHUB_EVENT_NAME", "", "leave --github out"},
		{"another event", "GITHUB_EVENT_NAME", "schedule", "use on: pull_request, merge_group, issue_comment, pull_request_review and pull_request_review_comment"},
		{"no way to report", "KERNELGATE_REPORT", "email", "write \"status\" for commit statuses (the default) or \"checks\" for check runs"},
		{"no token", "GITHUB_TOKEN", "", "GITHUB_TOKEN: ${{ github.token }}"},
		{"no event", "GITHUB_EVENT_PATH", event + ".gone", "GITHUB_EVENT_PATH names its file"},
		{"half an event", "", "", "pull_request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Run(t.Context(), Config{Now: time.Now, Getenv: func(name string) string {
				if name == test.key {
					return test.value
				}
				return good[name]
			}})
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want it to say %q", err, test.says)
			}
		})
	}
}

func TestHistory(t *testing.T) {
	head, ended := strings.Repeat("ab", 20), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	runs := []change.Run{
		{KernelSpec: change.KernelSpec{Name: "a", Folder: "kernels/a", Rule: "default"}, Head: head, Attempt: 1, Phase: change.Done, Ended: ended, Result: &change.Result{Outcome: gates.Defer, Reason: "too-slow", Line: "--> <!-- no -->"}},
		{KernelSpec: change.KernelSpec{Name: "a", Folder: "kernels/a", Rule: "default"}, Head: head, Attempt: 2, Phase: change.Abandoned, Ended: ended},
		{KernelSpec: change.KernelSpec{Name: "b", Rule: "default"}, Head: head, Attempt: 1, Phase: change.Queued},
	}
	body := remember("text\n", runs)
	if strings.Count(body, "-->") != 1 || !strings.HasPrefix(body, "text\n\n<!-- kernelgate:history:") {
		t.Errorf("the block is not one hidden line: %s", body)
	}
	back := recall(strings.ReplaceAll(body, "\n", "\r\n")) // with a browser's line ends
	if diff := cmp.Diff(runs[:2], back); diff != "" {
		t.Error(diff)
	}
	if n := tried(back, change.Run{KernelSpec: change.KernelSpec{Folder: "kernels/a"}, Head: head}); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
	if n := tried(back, change.Run{KernelSpec: change.KernelSpec{Folder: "kernels/a"}, Head: strings.Repeat("cd", 20)}) + tried(back, change.Run{KernelSpec: change.KernelSpec{Folder: "kernels/b"}, Head: head}); n != 0 {
		t.Errorf("%d attempts at what was not begun", n)
	}
	long := strings.Repeat("x", client.MaxCommentText-300)
	if fit := remember(long, runs); len(fit) > client.MaxCommentText || len(recall(fit)) != 1 {
		t.Errorf("%d bytes with %d runs, want the newest run alone", len(fit), len(recall(fit)))
	}
	if full := strings.Repeat("x", client.MaxCommentText); remember(full, runs) != full {
		t.Error("a full comment was made longer")
	}
	var many []change.Run
	for range 200 {
		many = append(many, runs[0])
	}
	if n := len(recall(remember("", many))); n != maxHistory {
		t.Errorf("%d runs are remembered, want %d", n, maxHistory)
	}
	for name, text := range map[string]string{
		"none": "text", "empty": "", "no base64": "<!-- kernelgate:history:&& -->", "no JSON": "<!-- kernelgate:history:aGVsbG8= -->",
		"not the last line": body + "\nmore", "a bad head": "<!-- kernelgate:history:W3siayI6ImEiLCJoIjoiLi4iLCJuIjoxfV0= -->",
	} {
		if got := recall(text); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFewer(t *testing.T) {
	text := "version: 1\ngates:\n  correctness: {shapes: all, seeds: [0], norm_error: \"<= 1%\"}\n  performance: {target: {shapes: [a], speedup: \">= +10%\"}, rounds: {min: 6, max: 12}, interims: [6, 8, 12]}\nrules:\n" +
		"  - name: one\n    when: {labels: [x]}\n  - name: two\n    gates: {performance: {confidence: 90%}}\n    when: {labels: [y]}\n  - name: default\n"
	for _, test := range []struct {
		rounds int
		looks  []int
	}{
		{0, []int{6, 8, 12}},
		{7, []int{6, 7}},
		{20, []int{6, 8, 12}},
	} {
		p, err := policy.Parse("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		limited, note := fewer(p, test.rounds)
		if (note != "") != (test.rounds == 7) {
			t.Errorf("%d rounds: %q", test.rounds, note)
		}
		for _, rule := range limited.Rules {
			if diff := cmp.Diff(test.looks, rule.Gates.Performance.Interims); diff != "" {
				t.Errorf("%d rounds, rule %s: %s", test.rounds, rule.Name, diff)
			}
		}
	}
}

func someMark(pull int) attempts.Mark {
	hash := strings.Repeat("0a", 16)
	return attempts.Mark{Pull: pull, Code: "code-7-" + hash, Sources: "sources-7-" + hash, Author: "authorcodes-7-" + hash, Listed: hash}
}

// TestMarks checks that a mark is read only from the end of a summary, where the job puts it.
func TestMarks(t *testing.T) {
	m := someMark(3)
	forged := someMark(1)
	for name, test := range map[string]struct {
		text string
		want attempts.Mark
	}{
		"at the end":        {"text\n" + writeMark(m), m},
		"a browser's lines": {strings.ReplaceAll("text\n"+writeMark(m), "\n", "\r\n"), m},
		"behind a forgery":  {writeMark(forged) + "\n" + writeMark(m), m},
		"not at the end":    {writeMark(m) + "more", attempts.Mark{}},
		"none":              {"text", attempts.Mark{}},
		"a merge group":     {writeMark(someMark(0)), someMark(0)},
		"no number":         {strings.Replace(writeMark(m), ":3:", ":03:", 1), attempts.Mark{}},
		"a large number":    {strings.Replace(writeMark(m), ":3:", ":3000000000:", 1), attempts.Mark{}},
		"another hash":      {strings.Replace(writeMark(m), "0a", "xx", 1), attempts.Mark{}},
	} {
		if got, ok := readMark(test.text); got != test.want || ok != (test.want != attempts.Mark{}) {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
}

func FuzzMarks(f *testing.F) {
	f.Add(writeMark(someMark(3)))
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := readMark(text)
		if !ok {
			return
		}
		if again, ok := readMark(writeMark(m)); !ok || again != m || !strings.Contains(text, strings.TrimSpace(writeMark(m))) {
			t.Errorf("%q reads as %v, then %v", text, m, again)
		}
	})
}

func TestFolderName(t *testing.T) {
	for kernel, want := range map[string]string{"scale": "scale", "scale (kernels/a)": "scale-(kernels-a)", "../../x": "..-..-x",
		"scale (kernels/a:b\n\"ä\")": "scale-(kernels-a-b----)", strings.Repeat("x", 5000): strings.Repeat("x", 100)} {
		if got := folderName(kernel); got != want {
			t.Errorf("%s is kept in %s, want %s", kernel, got, want)
		}
	}
}

func TestClipBytes(t *testing.T) {
	for text, want := range map[string]string{
		"short": "short", "exactly ten": "exactly…", "ääääää": "äää…", "日本語カーネル": "日本…", "ab cdef ghi jkl": "ab cdef…",
	} {
		if got := clipBytes(text, 10); got != want || len(got) > 10 {
			t.Errorf("%s is clipped to %q, want %q", text, got, want)
		}
	}
}
