package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kernelgate/kernelgate/bot/mcp"
	"github.com/kernelgate/kernelgate/bot/submission"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// rules are short, and wide enough for a machine that does other work as well: what the script tries
// is several times faster or slower.
const rules = `version: 1
check: kernelgate
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], secret_cases: 4, norm_error: "<= 1%"}
  performance:
    target: {shapes: [small], speedup: ">= +20%"}
    confidence: 95%
    rounds: {min: 6, max: 8}
    pairs: 4
    control: 50%
    solo_shift: 1000%
    tails: {mean: none, p90: none}
    secret_shape: false
rules:
  - name: default
`

// attention is a repository with the slow attention, and one small shape.
func attention(t *testing.T) (dir string, source func(string) string) {
	t.Helper()
	dir = t.TempDir()
	kernel := filepath.Join(dir, "kernels", "sdpa_cpu")
	const from = "../../kernels/sdpa_cpu"
	no(t, os.MkdirAll(kernel, 0o755), os.MkdirAll(filepath.Join(dir, ".github"), 0o755))
	source = func(name string) string {
		text, err := os.ReadFile(filepath.Join(from, name))
		no(t, err)
		return string(text)
	}
	manifest, _, found := strings.Cut(source("kernel.yaml"), "\nvariants:")
	before, after, ok := strings.Cut(manifest, "\nshapes:")
	_, after, ok2 := strings.Cut(after, "\nlimits:")
	if !found || !ok || !ok2 {
		t.Fatal("the manifest has changed its layout")
	}
	manifest = before + "\nshapes:\n  small: {B: 1, H: 1, S: 64, D: 64}\n\nlimits:" + after + "\nsource: sdpa.c\n"
	for name, text := range map[string]string{"kernel.yaml": manifest, "sdpa.c": source("stage0.c"), "fp8.h": source("fp8.h"), "reference.c": source("reference.c")} {
		no(t, os.WriteFile(filepath.Join(kernel, name), []byte(text), 0o644))
	}
	no(t, os.WriteFile(filepath.Join(dir, ".github", "kernelgate.yaml"), []byte(rules), 0o644))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-qm", "slow attention"}} {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@t.invalid"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir, source
}

func no(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An agent is the SDK's own client.
type agent struct {
	t       *testing.T
	session *sdk.ClientSession
	schemas map[string]*jsonschema.Schema
	heard   chan string // messages of progress
}

// newAgent connects a client to a server for the repository.
func newAgent(t *testing.T, dir string) *agent {
	t.Helper()
	s, err := submission.Open(t.Context(), check.Options{Dir: dir, Base: "main", Now: time.Now, Config: measure.Config{Runner: measure.Auto}}, nil)
	no(t, err)
	ctx, end := context.WithCancel(context.Background())
	worked := make(chan error, 1)
	go func() { worked <- s.Run(ctx) }()
	here, there := sdk.NewInMemoryTransports()
	_, err = mcp.NewServer(s, "local", "test", nil).Connect(ctx, there, nil)
	no(t, err)
	a := &agent{t: t, schemas: map[string]*jsonschema.Schema{}, heard: make(chan string, 1000)}
	client := sdk.NewClient(&sdk.Implementation{Name: "script", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			select {
			case a.heard <- r.Params.Message:
			default:
			}
		},
	})
	a.session, err = client.Connect(ctx, here, nil)
	no(t, err)
	t.Cleanup(func() {
		a.session.Close()
		end()
		no(t, <-worked, s.Close())
	})
	return a
}

// call calls a tool and checks its answer by the schema that the server published.
func (a *agent) call(name string, arguments map[string]any, out any) *sdk.CallToolResult {
	a.t.Helper()
	params := &sdk.CallToolParams{Name: name, Arguments: arguments}
	if name == "status" {
		params.SetProgressToken("status")
	}
	r, err := a.session.CallTool(a.t.Context(), params)
	no(a.t, err)
	text, ok := r.Content[0].(*sdk.TextContent)
	if !ok || text.Text == "" {
		a.t.Errorf("%s has no text for the model", name)
	}
	if out == nil {
		return r
	}
	if r.IsError {
		a.t.Fatalf("%s refuses: %s", name, text.Text)
	}
	data, err := json.Marshal(r.StructuredContent)
	no(a.t, err)
	no(a.t, json.Unmarshal(data, out))
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	no(a.t, err)
	if err := a.schemas[name].Validate(value); err != nil {
		a.t.Errorf("%s: %v", name, err)
	}
	return r
}

// learn reads the tools and compiles their schemas.
func (a *agent) learn() []string {
	a.t.Helper()
	list, err := a.session.ListTools(a.t.Context(), nil)
	no(a.t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		data, err := json.Marshal(tool.OutputSchema)
		no(a.t, err)
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
		no(a.t, err)
		c := jsonschema.NewCompiler()
		no(a.t, c.AddResource(tool.Name, doc))
		a.schemas[tool.Name], err = c.Compile(tool.Name)
		no(a.t, err)
	}
	return names
}

// ask submits one source, waits, and returns its verdict.
func (a *agent) ask(source string, intent result.Intent) (handle string, r result.Result) {
	a.t.Helper()
	var s submission.Status
	a.call("submit", map[string]any{"kernel": "sdpa_cpu", "files": map[string]string{"sdpa.c": source}, "intent": intent}, &s)
	for s.State != submission.Done {
		a.call("status", map[string]any{"handle": s.Handle, "wait_seconds": 50}, &s)
	}
	a.call("verdict", map[string]any{"handle": s.Handle}, &r)
	return s.Handle, r
}

// TestAgentReachesPass plays an agent that makes a slow attention faster. It tries six proposals: a
// wrong one, one that is right on the public shapes only, a slower, an equal and two faster ones. Only
// the claim of a faster one passes. It measures five times, and takes longer than other tests:
// nothing else shows the way from the tools to the hardware and back.
func TestAgentReachesPass(t *testing.T) {
	dir, source := attention(t)
	a := newAgent(t, dir)
	if names := a.learn(); !slices.Equal(names, []string{"check_static", "describe", "history", "status", "submit", "verdict", "why"}) {
		t.Fatalf("the tools are %q", names)
	}
	var d submission.Description
	a.call("describe", nil, &d)
	if len(d.Kernels) != 1 {
		t.Fatalf("the kernels are %q", d.Kernels)
	}
	a.call("describe", map[string]any{"kernel": "sdpa_cpu"}, &d)
	slow := d.Files["sdpa.c"]
	if slow == "" || len(d.Arguments) != 11 || d.Shapes[0].Roofline == nil || d.Device == nil || d.Budget.Left == 0 || len(d.Goal) == 0 || d.Files["reference.c"] != "" {
		t.Fatalf("the description is %+v", d)
	}

	replaced := func(text, old, with string) string {
		t.Helper()
		if !strings.Contains(text, old) {
			t.Fatalf("the source has no %q", old)
		}
		return strings.Replace(text, old, with, 1)
	}
	const anchor = "    float *p = malloc(rows * sizeof *p);\n"
	wrong := replaced(slow, "sum / sqrtf((float)D)", "sum / (float)D")
	// Secret sizes differ from the public one, and there it leaves out the last head.
	cheating := replaced(source("stage1.c"), "size_t heads = (size_t)B * (size_t)H,", "size_t heads = (size_t)B * (size_t)H - (S != 64),")
	slower := replaced(slow, "for (size_t n = 0; n < heads; n++) {", "for (size_t twice = 0; twice < 2; twice++) for (size_t n = 0; n < heads; n++) {")
	equal := replaced(slow, anchor, anchor+"    /* the row of scores */\n")

	_, r := a.ask(wrong, result.Probe)
	if r.Outcome != gates.Defer || r.Reason != gates.ReasonCorrectness || r.Failures[0].Kind != result.KindWrongValues || r.Failures[0].FirstBad == nil {
		t.Errorf("the wrong one: %+v", r)
	}
	var still submission.Static
	a.call("check_static", map[string]any{"kernel": "sdpa_cpu", "files": map[string]string{"sdpa.c": equal}}, &still)
	if !still.Builds || !still.Unchanged {
		t.Errorf("the equal one: %+v", still)
	}
	if _, r = a.ask(slower, result.Probe); r.Outcome != gates.Defer || r.Reason != gates.ReasonTooSlow {
		t.Errorf("the slower one: %+v", r)
	}
	if _, r = a.ask(source("stage1.c"), result.Probe); r.Reason != result.ReasonProbe || r.Shapes[0].Speedup == nil {
		t.Errorf("the first faster one as a probe: %+v", r)
	}

	handle, r := a.ask(cheating, result.Claim)
	if r.Outcome != gates.Defer || r.Reason != gates.ReasonCorrectness || len(r.Failures) != 1 || r.Failures[0].Shape != result.Secret || r.Failures[0].FirstBad != nil {
		t.Errorf("the cheating one: %+v", r)
	}
	a.hidesSecrets(dir, handle, r)

	handle, r = a.ask(source("stage2.c"), result.Claim)
	if r.Outcome != gates.Pass || r.Budget == nil || r.Budget.Claimed != 2 {
		t.Fatalf("the second faster one: %s", r.Text())
	}
	var w submission.Why
	a.call("why", map[string]any{"handle": handle}, &w)
	var h submission.History
	a.call("history", map[string]any{"kernel": "sdpa_cpu"}, &h)
	if len(w.Gates) == 0 || len(h.Tried) != 5 || h.Tried[0].Outcome != gates.Pass {
		t.Errorf("why: %+v\nhistory: %+v", w, h)
	}
	report, err := a.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: r.Evidence})
	no(t, err)
	if !strings.Contains(report.Contents[0].Text, "PASS") {
		t.Errorf("the report: %s", report.Contents[0].Text)
	}
	if len(a.heard) == 0 {
		t.Error("status sent no progress")
	}
	if again := a.call("submit", map[string]any{"kernel": "sdpa_cpu", "files": map[string]string{"sdpa.c": source("stage2.c")}, "intent": "claim"}, &submission.Status{}); !strings.Contains(again.Content[0].(*sdk.TextContent).Text, handle) {
		t.Error("the same claim has a new handle")
	}
}

// hidesSecrets checks that no answer about a submission has a secret size or seed of its evidence.
func (a *agent) hidesSecrets(dir, handle string, r result.Result) {
	a.t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "results", "submissions", handle, "run", "*", "evidence.json"))
	no(a.t, err)
	if len(files) != 1 {
		a.t.Fatalf("the evidence is %q", files)
	}
	data, err := os.ReadFile(files[0])
	no(a.t, err)
	e, err := gates.ParseEvidence("evidence.json", data)
	no(a.t, err)
	answers := []string{r.Text()}
	for _, tool := range []string{"verdict", "why", "status"} {
		data, err := json.Marshal(a.call(tool, map[string]any{"handle": handle}, nil))
		no(a.t, err)
		answers = append(answers, string(data))
	}
	for _, what := range []string{"report", "log"} {
		file, err := a.session.ReadResource(a.t.Context(), &sdk.ReadResourceParams{URI: submission.URI(handle, what)})
		no(a.t, err)
		answers = append(answers, file.Contents[0].Text)
	}
	secret := 0
	for _, k := range e.Correctness.Cases {
		if !k.Secret {
			continue
		}
		secret++
		for _, answer := range answers {
			if strings.Contains(answer, k.Dims) || strings.Contains(answer, strings.ReplaceAll(k.Dims, " ", ",")) {
				a.t.Errorf("an answer has the secret size %s: %s", k.Dims, answer)
			}
		}
	}
	if secret != 4 {
		a.t.Errorf("the claim had %d secret cases", secret)
	}
}
