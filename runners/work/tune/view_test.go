package tune

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestView reads a log after each of its lines, as a page does while the search runs. Each view shows the
// search at this moment, and the last view shows the result of the search.
func TestView(t *testing.T) {
	lab := newFakeLab(testSpace(), testSpeed)
	lab.faults = map[string]map[string]int{testBest: {"confirm": 1}, "two,FAST=1,ROWS=2": {"screen": 1}, "two,FAST=1,STAGES=8": {"build": 1}}
	dir := t.TempDir()
	log, err := CreateLog(dir, testHeader("local"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	result, err := newSearch(t, log, lab).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, LogFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	seconds, states := 0.0, map[string]bool{}
	for n := 1; n < len(lines)-2; n += 1 + n/40 {
		v, err := ReadView("log", []byte(strings.Join(lines[:n], "")+`{"rou`))
		if err != nil {
			t.Fatalf("after %d lines: %v", n, err)
		}
		if v.Seconds < seconds || v.Ended || v.Now == "" || v.Result != "" {
			t.Errorf("after %d lines: %+v", n, v)
		}
		seconds = v.Seconds
		words := strings.Fields(v.Now)
		states[words[0]+" "+words[len(words)-1]] = true
	}
	for _, want := range []string{"The candidates.", "Candidates compiled.", "Candidates other."} {
		if !states[want] {
			t.Errorf("the search was never at %q: %v", want, states)
		}
	}
	if v, err := ReadView("log", []byte(strings.Join(lines[:len(lines)-2], ""))); err != nil || !v.Ended {
		t.Errorf("without the line that says so, the search has not ended: %v", err)
	}
	v, err := ReadView("log", text)
	if err != nil {
		t.Fatal(err)
	}
	if !v.Ended || v.Now != "" || v.Result != result.Conclusion() || v.Winner != result.name(result.Find(result.Winner)) || v.Seconds != result.Seconds || len(v.Failed) != 3 || len(v.Verdicts) != 2 {
		t.Errorf("the view of the whole log is %+v", v)
	}
	if v.Headline() == "" || len(v.Elite) == 0 || v.Elite[0].Place != 1 {
		t.Errorf("%q, elite %+v", v.Headline(), v.Elite)
	}
	if _, err := json.Marshal(v); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "{}\n", "x\n"} {
		if _, err := ReadView("log", []byte(bad)); err == nil {
			t.Errorf("%q is taken for a log", bad)
		}
	}
}

// TestViewOfRecordings checks that the recorded searches have views.
func TestViewOfRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recorded, "*.jsonl"))
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := ReadView(file, text)
		if err != nil {
			t.Fatal(err)
		}
		if !v.Ended || v.Now != "" || len(v.Raced)+len(v.Failed) < 3 || v.Kernel == "" || v.Result == "" || strings.Contains(file, "matmul-search") != (len(v.Verdicts) == 3) {
			t.Errorf("%s: %+v", file, v)
		}
	}
}
