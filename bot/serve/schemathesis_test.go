package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/internal/long"
)

// schemathesis returns the Python that make setup has installed Schemathesis for.
func schemathesis(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../runners/build/toolchain/fetch-python.sh", "schemathesis", "--check").Output()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no Schemathesis: %v", err)
		}
		t.Skip("no Schemathesis: make setup fetches it")
	}
	return filepath.Join(strings.TrimSpace(string(out)), "bin", "python")
}

// A tally counts the answers of a server by their status.
type tally struct {
	sync.Mutex
	all      int
	statuses map[int]int
	failed   []string // requests that were answered with 5xx
}

func (c *tally) add(r *http.Response) error {
	c.Lock()
	defer c.Unlock()
	c.all++
	c.statuses[r.StatusCode]++
	if r.StatusCode >= http.StatusInternalServerError {
		c.failed = append(c.failed, fmt.Sprintf("%d %s %q", r.StatusCode, r.Request.Method, r.Request.URL))
	}
	return nil
}

// TestSchemathesis sends thousands of requests to a server with a measured change. None may be answered with 5xx, each answer must
// be one that /api/v1/openapi.json describes, and a validator must accept the description itself.
func TestSchemathesis(t *testing.T) {
	long.Test(t)
	python := schemathesis(t)
	w := newWorld(t)
	_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": timedPolicy}, "Time it")
	w.no(err)
	o := w.options()
	o.Pages.Public = []string{"Olga/Kernels"}
	o.Config.Runners = []serve.RemoteRunner{{Name: "cpu1", Labels: []string{"cpu"}}}
	o.Secrets.Runners = map[string]string{"cpu1": "a token of sixteen or more"}
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	w.runScripted(s, "cpu1", o.Secrets.Runners["cpu1"])
	w.app.SetHook(s.URL()+"/webhook", secret)
	pr := w.propose("kernels/scale/scale.c", "/* speed 1.5 */ void scale(const float *x, float *y, int n);\n")
	if c := w.completed(pr.HeadSHA()); c.Conclusion != "success" {
		t.Fatalf("the check concludes %s %q", c.Conclusion, c.Title)
	}

	text, names := w.description(s)
	file := filepath.Join(t.TempDir(), "openapi.json")
	w.no(os.WriteFile(file, text, 0o600))
	if out, err := exec.CommandContext(w.ctx, python, "-I", "-m", "openapi_spec_validator", file).CombinedOutput(); err != nil {
		t.Fatalf("the description: %v\n%s", err, out)
	}
	answers := tally{statuses: map[int]int{}}
	target, err := url.Parse(s.URL())
	w.no(err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = answers.add
	between := httptest.NewServer(proxy)
	t.Cleanup(between.Close)

	report := t.TempDir()
	cmd := exec.CommandContext(w.ctx, python, "-I", "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run", file, "--url", between.URL, "--phases", "examples,coverage,fuzzing",
		"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance",
		"--exclude-path-regex", "live$", "--max-examples", "380", "--seed", "1", "--workers", "2", "--continue-on-failure", "--generation-database", "none",
		"--report-dir", report, "--no-color", "--warnings", "off",
		"--suppress-health-check", "all") // no random text has the form of a kernel's address
	cmd.Dir = report
	out, err := cmd.CombinedOutput()
	t.Logf("%d answers by status: %v; values of parameters: %v", answers.all, answers.statuses, names)
	if err != nil {
		t.Errorf("%v\n%.20000s", err, out)
	}
	if len(answers.failed) > 0 {
		t.Errorf("%d answers are 5xx, the first: %s", len(answers.failed), answers.failed[0])
	}
	if answers.all < 5000 || answers.statuses[http.StatusOK] < 500 {
		t.Errorf("%d requests, %d of them found something: that is too few", answers.all, answers.statuses[http.StatusOK])
	}
}

// description returns the server's description, in which parameters also have the values that exist here: random texts find
// nothing.
func (w *world) description(s *serve.Server) (text []byte, names map[string][]string) {
	w.Helper()
	_, body := w.get(s.URL() + "/api/v1/openapi.json")
	var api map[string]any
	w.no(json.Unmarshal([]byte(body), &api))
	_, page := w.get(s.URL() + "/api/v1")
	var home struct {
		Recent []struct{ Job, Change string }
	}
	w.no(json.Unmarshal([]byte(page), &home))
	names = map[string][]string{"owner": {"olga"}, "repo": {"kernels"}, "kernel": {"kernels/scale"}, "q": {"scale", "olga"}, "shape": {"mission"}, "before": {"1"}}
	for _, r := range home.Recent {
		names["job"], names["change"] = append(names["job"], r.Job), append(names["change"], r.Change)
	}
	names["a"], names["b"] = names["job"], names["job"]
	if len(names["job"]) == 0 {
		w.Fatalf("no runs in %.2000s", page)
	}
	for _, path := range api["paths"].(map[string]any) {
		parameters, _ := path.(map[string]any)["get"].(map[string]any)["parameters"].([]any)
		for _, p := range parameters {
			p := p.(map[string]any)
			if known := names[p["name"].(string)]; known != nil {
				p["schema"] = map[string]any{"anyOf": []any{map[string]any{"enum": known}, p["schema"]}}
			}
		}
	}
	text, err := json.Marshal(api)
	w.no(err)
	return text, names
}
