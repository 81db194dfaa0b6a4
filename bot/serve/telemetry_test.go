package serve_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/trace"
	"github.com/kernelgate/kernelgate/bot/trace/tracetest"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

const timedPolicy = policy + `    gates:
      performance:
        target: {shapes: [mission], speedup: ">= +10%"}
        rounds: {min: 6, max: 6}
`

// One pull request with a kernel is one trace, from its webhook to what GitHub shows: every
// step is there once, a part of what it belongs to, and within its time. No secret is in it.
func TestTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": timedPolicy}, "Time it")
	w.no(err)
	collector := tracetest.New(t)
	o := w.options()
	o.Telemetry.Endpoint, o.TraceEvery = collector.URL, 10*time.Millisecond
	o.Secrets.Telemetry = http.Header{"Api-Key": {"the collector's own key"}}
	o.Config.Runners = []serve.RemoteRunner{{Name: "cpu1", Labels: []string{"cpu"}}}
	o.Secrets.Runners = map[string]string{"cpu1": "a token of sixteen or more"}
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	w.runScripted(s, "cpu1", o.Secrets.Runners["cpu1"])
	w.app.SetHook(s.URL()+"/webhook", secret)
	_, err = w.repo.Push("change", map[string]string{"kernels/scale/scale.c": "/* speed 1.5 */ void scale(const float *x, float *y, int n);\n"}, "Change")
	w.no(err)
	pr := w.propose("README.md", "The password is hunter2-hunter2.\n")
	if c := w.completed(pr.HeadSHA()); c.Conclusion != "success" {
		t.Fatalf("the check concludes %s %q", c.Conclusion, c.Title)
	}
	id := change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()}
	of := trace.Head{Change: id, SHA: pr.HeadSHA()}.TraceID().String()
	spans := collector.WaitFor(w.ctx, func(all []tracetest.Span) bool {
		return slices.ContainsFunc(all, func(s tracetest.Span) bool { return s.Trace == of && s.Name == "change" })
	})

	byID, names := map[string]tracetest.Span{}, map[string]int{}
	for _, s := range spans {
		if s.Trace == of {
			byID[s.ID] = s
		}
	}
	for _, s := range byID {
		path := s.Name
		for at := s; at.Parent != ""; path = at.Name + " > " + path {
			parent, ok := byID[at.Parent]
			if !ok {
				t.Fatalf("what %s is a part of did not come", path)
			}
			after := parent.Name == "change" && at.Name != "run" && at.Name != "plan" // news may come when GitHub shows the verdict
			if at.From < parent.From || at.To > parent.To && !after {
				t.Errorf("%s lasts from %d to %d, beyond %s, %d to %d", path, at.From, at.To, parent.Name, parent.From, parent.To)
			}
			at = parent
		}
		if names[path]++; path == "change" && s.About["kernelgate.outcome"] != "PASS" {
			t.Errorf("the whole is %+v", s)
		}
		if s.About["kernelgate.change"] != id.String() || s.About["vcs.repository.name"] != "olga/kernels" || s.About["vcs.ref.head.revision"] != pr.HeadSHA() {
			t.Errorf("%s is about %v", path, s.About)
		}
	}
	// GitHub may tell of the same head more than once, and is written to as often as there is news;
	// what fails is done again.
	for _, path := range []string{"change > accept", "change > look", "change > plan", "change > publish"} {
		if names[path] == 0 {
			t.Errorf("%s did not come", path)
		}
		delete(names, path)
	}
	run := "change > run > "
	want := map[string]int{
		"change": 1, "change > run": 1, run + "queue": 1, run + "measure": 1, run + "judge": 1,
		run + "measure > build": 1, run + "measure > correctness": 1, run + "measure > performance": 1, run + "measure > performance > round": 6,
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
	traces := map[string]bool{}
	for _, s := range spans {
		if s.About["kernelgate.change"] == id.String() {
			traces[s.Trace] = true
		}
	}
	if len(traces) != 1 {
		t.Errorf("the change has the traces %v", slices.Collect(maps.Keys(traces)))
	}
	if collector.Header("Api-Key") == "" {
		t.Error("the collector's own key was not sent with the traces")
	}
	hidden := []string{secret, "the collector's own key", o.Secrets.Runners["cpu1"], "hunter2", string(o.Secrets.PrivateKey[100:140]), "Bearer", "ghs_"}
	for _, text := range hidden {
		if collector.Holds([]byte(text)) {
			t.Errorf("the collector was sent %q", text)
		}
	}
}

// runScripted is a runner of the server's until the test ends.
func (w *world) runScripted(s *serve.Server, name, token string) {
	w.runAgent(agent.Config{
		Servers: []string{s.URL()}, Token: token, Name: name, Labels: []string{"cpu"}, StateDir: w.TempDir(), Measure: scripted.Runner{}.Measure,
	})
}

// runAgent runs a runner until the test ends.
func (w *world) runAgent(c agent.Config) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, c) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
}

// With a collector that never answers, or is not there, a pull request gets its check and the
// server ends: it would do neither here if anything waited.
func TestTracesHoldUpNothing(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer hangs.Close()
	defer close(over)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	missing := "http://" + l.Addr().String()
	l.Close()
	for name, endpoint := range map[string]string{"hangs": hangs.URL, "missing": missing} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.options()
			o.Telemetry.Endpoint, o.TraceEvery = endpoint, time.Millisecond
			s, stop := w.start(o)
			w.no(s.Ready(w.ctx))
			w.app.SetHook(s.URL()+"/webhook", secret)
			pr := w.propose("README.md", "Kernels, and nothing else.\n")
			if c := w.completed(pr.HeadSHA()); c.Conclusion != "success" {
				t.Errorf("the check concludes %s %q", c.Conclusion, c.Title)
			}
			w.no(w.hub.Quiet(w.ctx))
			for _, d := range w.app.Hook().Deliveries() {
				if d.StatusCode/100 != 2 {
					t.Errorf("%s %s was answered %d", d.Event, d.Action, d.StatusCode)
				}
			}
			w.no(stop())
		})
	}
}

// OpenTelemetry's own variable counts where the configuration is silent, and mistakes in
// either are told by their place.
func TestTelemetryAddress(t *testing.T) {
	const env = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, tt := range []struct {
		name, file, env, want, mistake string
	}{
		{"nobody", "", "", "", ""},
		{"the environment's", "", "http://a:4318", "http://a:4318", ""},
		{"the file's goes first", "telemetry: {endpoint: 'http://b:4318'}\n", "http://a:4318", "http://b:4318", ""},
		{"no address", "", "a:4318", "", env + `: "a:4318" is not an address`},
		{"with a password", "telemetry: {endpoint: 'http://u:p@b:4318'}\n", "", "", "telemetry.endpoint: a user or a password does not belong here"},
		{"headers for nobody", "telemetry: {headers_file: /k/headers}\n", "", "", "telemetry.headers_file: has no effect without an endpoint"},
		{"a header in place of its file", "telemetry: {endpoint: 'http://b:4318', headers_file: 'Api-Key: abc'}\n", "", "", "should be the name of a file"},
		{"a header in the file", "telemetry: {endpoint: 'http://b:4318', headers: 'Api-Key: abc'}\n", "", "", "name that as headers_file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := load(t, good+tt.file, map[string]string{env: tt.env}, nil)
			if tt.mistake != "" {
				if err == nil || !strings.Contains(err.Error(), tt.mistake) || strings.Contains(err.Error(), "abc") {
					t.Errorf("%v, want %q", err, tt.mistake)
				}
				return
			}
			if err != nil || c.Telemetry.Endpoint != tt.want {
				t.Errorf("%q, %v, want %q", c.Telemetry.Endpoint, err, tt.want)
			}
		})
	}
}

func TestTelemetryHeaders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headers")
	read := func(text string) (http.Header, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := serve.Config{Telemetry: serve.Telemetry{HeadersFile: file}}
		s, err := c.ReadSecrets(func(string) string { return "" }, func(text string) { t.Error(text) })
		return s.Telemetry, err
	}
	got, err := read("authorization: Bearer a:b\n\n x-team:  7\n")
	if want := (http.Header{"Authorization": {"Bearer a:b"}, "X-Team": {"7"}}); err != nil || !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"secret-without-a-name", "a b: c", "a:", ": c", "a: b\x01c"} {
		if _, err := read("x: y\n" + text + "\n"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("line 2 of %s is not a header", file)) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
