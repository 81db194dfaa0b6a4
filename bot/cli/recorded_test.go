package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates/report"
	programs "github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/runners/host/recordings/recordingstest"
)

// A check fails on a recorded input. Nothing that it says or leaves behind has a value of the recording, nor one that is computed
// from it. The failing case can be repeated, and shows only where elements are wrong.
func TestRecordedValuesAreHidden(t *testing.T) {
	file := recordingstest.File(t)
	recordingstest.CheckFiles(t, filepath.Dir(put(t, []byte("nothing recorded, 12.5\n"), t.TempDir(), "clean")))
	r := recordingstest.Open(t, "decode.safetensors", file)
	put(t, []byte(recordingstest.Clamped), r.Dir, "k", "scale.c")
	out := filepath.Join(t.TempDir(), "results")
	all := map[string]string{}
	tell := func(want int, args ...string) string {
		t.Helper()
		status, text := said(args...)
		if status != want {
			t.Fatalf("kernelgate %s exits with %d\n%s", strings.Join(args, " "), status, text)
		}
		all[strings.Join(args[:min(2, len(args))], " ")+" "+args[len(args)-1]] = text
		return text
	}
	text := tell(exitDefer, "check", "--dir", r.Dir, "--base", "main", "--results", out)
	if !strings.Contains(text, "recorded:decode") {
		t.Fatalf("the check does not fail on the recording\n%s", text)
	}
	tell(exitDefer, "check", "--dir", r.Dir, "--base", "main", "--results", filepath.Join(t.TempDir(), "again"), "--json")
	folders, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("results in %v, %v", folders, err)
	}
	for _, format := range []string{"terminal", "markdown", "json"} {
		tell(exitDefer, "judge", filepath.Join(folders[0], "evidence.json"), "--policy", filepath.Join(r.Dir, ".github", "kernelgate.yaml"), "--format", format)
	}
	for _, args := range [][]string{{"why", folders[0]}, {"why", folders[0], "--json"}, {"compare", folders[0], folders[0]}} {
		tell(0, args...)
	}
	repeated := tell(exitDefer, "replay", "--dir", r.Dir, folders[0]+"#"+wrongCase(t, text))
	for _, want := range []string{"recorded:decode inputs", "Values of recorded inputs are not shown", "4096 of 4096 elements are bad"} {
		if !strings.Contains(repeated, want) {
			t.Errorf("replay does not say %q:\n%s", want, repeated)
		}
	}
	for what, text := range all {
		recordingstest.CheckHidden(t, "kernelgate "+what, text)
	}
	if files := recordingstest.CheckFiles(t, out); files < 3 {
		t.Errorf("the check has left %d files", files)
	}
	checkPagesHide(t, out)
	run, err := readRun(folders[0], nil, "")
	if err != nil {
		t.Fatal(err)
	}
	for what, answer := range map[string]*programs.Result{"a claim": programs.Redacted(run.Verdict, run.Evidence), "a probe": programs.Probed(run.Verdict, run.Evidence)} {
		recordingstest.CheckHidden(t, "the verdict on "+what, answer.Text()+asJSON(t, answer))
	}
	recordingstest.CheckHidden(t, "the one line", report.OneLine(run.Verdict))
}

// Every command that measures fetches recordings, from public addresses only.
func TestCommandsFetchRecordings(t *testing.T) {
	r := recordingstest.Open(t, "https://127.0.0.1:9/decode.safetensors", recordingstest.File(t))
	r.Commit("clamp", map[string]string{"k/scale.c": recordingstest.Clamped})
	for _, args := range [][]string{
		{"check", "k", "--base", "HEAD~1", "--head", "HEAD", "--results", t.TempDir()}, {"check", "k", "--base", "HEAD~1", "--shape", "mission"},
		{"tune", "k"}, {"bisect", "k", "HEAD~1..HEAD"},
	} {
		if status, text := said(append(args, "--dir", r.Dir)...); status == exitPass || !strings.Contains(text, "127.0.0.1 is no public address") {
			t.Errorf("kernelgate %s exits with %d: %s", strings.Join(args, " "), status, text)
		}
	}
}

// wrongCase is the number of the case that a check suggests to repeat.
func wrongCase(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(line, "#"); ok && strings.Contains(line, "kernelgate replay") && strings.Contains(line, "recorded:decode") {
			number, _, _ := strings.Cut(rest, " ")
			return number
		}
	}
	t.Fatalf("no case is to be repeated:\n%s", text)
	return ""
}

// checkPagesHide reads the pages of the results, and what they link to.
func checkPagesHide(t *testing.T, dir string) {
	t.Helper()
	f, err := pages.OpenFolder(dir, nil, nil)
	if err != nil || f.Count() != 1 {
		t.Fatalf("%d results: %v", f.Count(), err)
	}
	site, err := (&pages.Server{Source: f, Access: pages.Everybody{}}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	job := entries[0].Name()
	read := 0
	for _, path := range []string{"/", "/runs/" + job, "/api/v1/runs/" + job, "/runs/" + job + "/evidence.json", "/runs/" + job + "/verdict.json", "/runs/" + job + "/log", "/compare?a=" + job + "&b=" + job} {
		answer := httptest.NewRecorder()
		site.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if answer.Code == http.StatusOK {
			read++
		}
		recordingstest.CheckHidden(t, path, answer.Body.String())
	}
	if read < 3 {
		t.Errorf("only %d pages of %s can be read", read, job)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
