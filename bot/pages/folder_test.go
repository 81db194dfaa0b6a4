package pages_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const shippedEvidence = "../../kernels/sdpa_fp8/evidence/"

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// serverOf serves a folder, and returns the address.
func serverOf(t *testing.T, f *pages.Folder) string {
	t.Helper()
	h, err := (&pages.Server{Source: f, Access: pages.Everybody{}}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func siteOf(t *testing.T, f *pages.Folder) func(path string) (int, string) {
	t.Helper()
	url := serverOf(t, f)
	return func(path string) (int, string) {
		t.Helper()
		answer, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
}

// TestResultsOfCheck reads a folder as check writes it: one folder per run, with the verdict next
// to the evidence.
func TestResultsOfCheck(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	copyFile(t, shippedEvidence+"stage6_fp8.json", filepath.Join(dir, "20260102T030405Z", "a~b", "evidence.json"))
	verdict, err := json.Marshal(gates.Verdict{Kernel: "sdpa_fp8", Outcome: gates.Pass, Summary: "It is proven."})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "20260102T030405Z", "a~b", "verdict.json"), verdict, 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "no.json"), []byte("{}"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := pages.OpenFolder(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Count() != 1 || len(f.Skipped()) != 1 {
		t.Errorf("%d results, left out: %v", f.Count(), f.Skipped())
	}
	get := siteOf(t, f)
	status, home := get("/")
	if status != http.StatusOK || !strings.Contains(home, "/runs/20260102T030405Z~1a~0b") {
		t.Errorf("%d %s", status, home)
	}
	if status, run := get("/runs/20260102T030405Z~1a~0b"); status != http.StatusOK || !strings.Contains(run, "It is proven.") || !strings.Contains(run, `class="chart strip"`) {
		t.Errorf("%d %.500s", status, run)
	}
	// A later result appears on the next visit.
	copyFile(t, shippedEvidence+"broken.json", filepath.Join(dir, "20260102T040000Z", "evidence.json"))
	if _, home := get("/"); !strings.Contains(home, "/runs/20260102T040000Z") {
		t.Error("a new result is not shown")
	}
	if err := os.RemoveAll(filepath.Join(dir, "20260102T040000Z")); err != nil {
		t.Fatal(err)
	}
	get("/")
	for _, path := range []string{"/runs/20260102T040000Z", "/runs/..%2F..%2Fetc%2Fpasswd/evidence.json", "/changes/pr-1-1"} {
		if status, _ := get(path); status != http.StatusNotFound {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.json")
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: file, filepath.Join(dir, "none"): "kernelgate check writes", file: "is not a folder"} {
		if _, err := pages.OpenFolder(path, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestVariantsOfAFolder checks that evidence next to a kernel shows how its variants compare, with
// the lessons from those that were not accepted.
func TestVariantsOfAFolder(t *testing.T) {
	text, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policy.Parse("h200.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "evidence")
	for _, name := range []string{"stage1", "stage2", "stage3a", "stage3b"} {
		copyFile(t, shippedEvidence+name+".json", filepath.Join(dir, name+".json"))
	}
	f, err := pages.OpenFolder(dir, func(e *gates.Evidence) *gates.Verdict { return gates.Judge(policy, "h200.yaml", e) }, map[string]string{"stage3a": "copies <i>were</i> hidden", "stage2": "it paid"})
	if err != nil {
		t.Fatal(err)
	}
	_, page := siteOf(t, f)("/kernels/results/evidence/sdpa_fp8")
	rows := regexp.MustCompile(`<tr><th scope="row"><code>(\w+)</code>`).FindAllStringSubmatch(page, -1)
	var names []string
	for _, r := range rows {
		names = append(names, r[1])
	}
	if got := strings.Join(names, " "); got != "stage0 stage1 stage2 stage3a stage3b" {
		t.Errorf("the variants are %s", got)
	}
	for _, want := range []string{"where it began", "as fast on", "105 registers", "Lesson:</strong> copies &lt;i&gt;were&lt;/i&gt; hidden", "stage3a</a> <span class=\"note\">over <code>stage2</code>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if _, found := siteOf(t, f)("/search?q=STAGE3A"); !strings.Contains(found, `<a href="/runs/stage3a">stage3a</a>`) || strings.Contains(found, "/runs/stage1") {
		t.Errorf("a search for a result finds %s", found)
	}
	if strings.Contains(page, "it paid") {
		t.Error("a variant that was taken is among those that were not")
	}
}

// TestResultWithoutTime checks that the pages omit the time, commit and host of imported evidence,
// which has none.
func TestResultWithoutTime(t *testing.T) {
	data, err := os.ReadFile(shippedEvidence + "stage1.json")
	if err != nil {
		t.Fatal(err)
	}
	e, err := gates.ParseEvidence("stage1.json", data)
	if err != nil {
		t.Fatal(err)
	}
	e.Provenance = gates.Provenance{}
	dir := filepath.Join(t.TempDir(), "results")
	for _, name := range []string{"one", "two"} {
		data, err = json.Marshal(e)
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, name), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name, "evidence.json"), data, 0o644)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name, "verdict.json"), []byte(`{"kernel": "sdpa_fp8", "outcome": "PASS", "device": {"name": "NVIDIA H200"}}`), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := pages.OpenFolder(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	get := siteOf(t, f)
	empty := regexp.MustCompile(`0001-01-01|\bat (on|<code></code>)|<dt>(by|measured)</dt><dd></dd>|· *</p>|never`)
	for _, path := range []string{"/", "/runs/one", "/compare?a=one&b=two", "/kernels/results/results/sdpa_fp8"} {
		if status, page := get(path); status != http.StatusOK || empty.MatchString(page) {
			t.Errorf("%s answers %d and says %q", path, status, empty.FindString(page))
		}
	}
}
