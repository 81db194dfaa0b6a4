package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// agentsPolicy is the policy of the repository of agents.
const agentsPolicy = `version: 1
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], secret_cases: 2, norm_error: "<= 1%"}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    rounds: {min: 6, max: 20}
    secret_shape: false
rules:
  - name: default
`

// agents is a server with three tokens: ann and bob may ask about the repository, eve about another one.
type agents struct {
	*world
	o      serve.Options
	s      *serve.Server
	stop   func() error
	tokens string // file
	hold   chan struct{}
}

func secretOf(name string) string { return "the-secret-of-" + name }

func newAgents(t testing.TB) *agents {
	t.Helper()
	a := agentsWithoutServer(t)
	a.o = a.options()
	forAgents(&a.o, a.tokens)
	a.begin()
	return a
}

func agentsWithoutServer(t testing.TB) *agents {
	t.Helper()
	a := &agents{world: newWorld(t), tokens: filepath.Join(t.TempDir(), "agents"), hold: make(chan struct{})}
	_, err := a.repo.Push("main", map[string]string{".github/kernelgate.yaml": agentsPolicy}, "Time it")
	a.no(err)
	a.allow("ann olga/kernels", "bob Olga/Kernels", "eve olga/elsewhere")
	return a
}

// forAgents has a server take submissions, and know a runner.
func forAgents(o *serve.Options, tokens string) {
	o.MCP.TokensFile = tokens
	o.Secrets.Runners = map[string]string{"cpu1": runnerToken}
	o.Config.Runners = []serve.RemoteRunner{{Name: "cpu1", Labels: []string{"cpu", "pull"}}}
}

const runnerToken = "the runner's own token"

// begin starts the server.
func (a *agents) begin() {
	a.Helper()
	a.s, a.stop = a.start(a.o)
	a.no(a.s.Ready(a.ctx))
	a.until("the bot knows its repositories", a.s.Bot.Listed)
}

// measure runs a runner of the server. A kernel with the word HOLD waits for hold.
func (a *agents) measure() {
	a.runAgent(agent.Config{
		Servers: []string{a.s.URL()}, Token: runnerToken, Name: "cpu1", Labels: []string{"cpu"}, StateDir: a.TempDir(),
		Measure: scripted.Runner{Hold: a.hold}.Measure,
	})
}

// allow writes the file of tokens: a name and repositories each.
func (a *agents) allow(lines ...string) {
	a.Helper()
	var b strings.Builder
	for _, l := range lines {
		name, repos, _ := strings.Cut(l, " ")
		fmt.Fprintf(&b, "%s %s %s\n", name, secretOf(name), repos)
	}
	a.no(os.WriteFile(a.tokens+".new", []byte(b.String()), 0o600), os.Rename(a.tokens+".new", a.tokens))
}

func (a *agents) no(errs ...error) {
	a.Helper()
	for _, err := range errs {
		a.world.no(err)
	}
}

// An answer is that of a tool.
type answer struct {
	Status  int // of HTTP
	Text    string
	IsError bool
	Data    map[string]any
}

// post sends a request as the holder of a secret.
func (a *agents) post(secret string, body []byte) (int, string) {
	a.Helper()
	r, err := toAgents(a.ctx, a.s.URL(), secret, body)
	a.no(err)
	return a.do(r)
}

// toAgents is a request to a server as the holder of a secret.
func toAgents(ctx context.Context, server, secret string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/mcp", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", "2025-06-18")
	return r, nil
}

// callOf is the message that calls a tool.
func callOf(tool string, arguments map[string]any) ([]byte, error) {
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments}})
}

// call calls a tool.
func (a *agents) call(name, tool string, arguments map[string]any) answer {
	a.Helper()
	body, err := callOf(tool, arguments)
	a.no(err)
	return a.rpc(name, string(body))
}

// rpc sends a message.
func (a *agents) rpc(name, body string) answer {
	a.Helper()
	out, err := answerOf(a.post(secretOf(name), []byte(body)))
	a.no(err)
	return out
}

// answerOf reads what a server has sent.
func answerOf(status int, text string) (answer, error) {
	out := answer{Status: status, Text: text}
	for line := range strings.Lines(text) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			text = data
		}
	}
	var whole struct {
		Error  *struct{ Message string }
		Result struct {
			Content           []struct{ Text string }
			IsError           bool
			StructuredContent map[string]any
		}
	}
	if status != http.StatusOK {
		return out, nil
	}
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return out, err
	}
	if whole.Error != nil {
		return answer{Status: status, Text: whole.Error.Message, IsError: true}, nil
	}
	if len(whole.Result.Content) == 0 { // a resource
		return out, nil
	}
	return answer{status, whole.Result.Content[0].Text, whole.Result.IsError, whole.Result.StructuredContent}, nil
}

// must is call for what is not refused.
func (a *agents) must(name, tool string, arguments map[string]any) answer {
	a.Helper()
	got := a.call(name, tool, arguments)
	if got.Status != http.StatusOK || got.IsError {
		a.Fatalf("%s of %s: %d %s", tool, name, got.Status, got.Text)
	}
	return got
}

// refused is call for what is.
func (a *agents) refused(name, tool string, arguments map[string]any, want string) {
	a.Helper()
	if got := a.call(name, tool, arguments); !got.IsError || !strings.Contains(got.Text, want) || strings.Contains(got.Text, "\n") {
		a.Errorf("%s of %s: %d %+v, want %s", tool, name, got.Status, got, want)
	}
}

// files is a submission of the kernel with another source.
func files(intent, source string) map[string]any {
	return map[string]any{"kernel": "scale", "intent": intent, "files": map[string]string{"scale.c": source}}
}

// submit returns a handle.
func (a *agents) submit(name, intent, source string) string {
	a.Helper()
	return a.must(name, "submit", files(intent, source)).Data["handle"].(string)
}

// verdict waits for a result.
func (a *agents) verdict(name, handle string) answer {
	a.Helper()
	for {
		if st := a.must(name, "status", map[string]any{"handle": handle, "wait_seconds": 20}); st.Data["state"] == "done" {
			return a.must(name, "verdict", map[string]any{"handle": handle})
		}
	}
}

// TestAgentsOnServe takes an agent from the list of kernels to a PASS, on a server with a fleet. GitHub hears
// nothing of it, and neither do the pages.
func TestAgentsOnServe(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.measure()
	if got := a.must("ann", "describe", nil); fmt.Sprint(got.Data["kernels"]) != "[olga/kernels:kernels/scale]" {
		t.Fatalf("the kernels are %v", got.Data["kernels"])
	}
	d := a.must("ann", "describe", map[string]any{"kernel": "olga/kernels:kernels/scale"})
	if d.Data["files"].(map[string]any)["scale.c"] == nil || d.Data["budget"].(map[string]any)["claims_left"] == 0.0 || len(d.Data["shapes"].([]any)) != 1 {
		t.Errorf("the description is %v", d.Data)
	}
	static := a.must("ann", "check_static", map[string]any{"kernel": "scale", "files": map[string]string{"scale.c": "// BROKEN\n"}})
	if static.Data["builds"] != false || !strings.Contains(static.Text, "it is broken") {
		t.Errorf("check_static of a broken draft: %s", static.Text)
	}
	if static = a.must("ann", "check_static", map[string]any{"kernel": "scale", "files": map[string]string{"scale.c": "// speed 2\n"}}); static.Data["accepted"] != true {
		t.Errorf("check_static of a draft: %s", static.Text)
	}
	probe := a.verdict("ann", a.submit("ann", "probe", "// speed 1.5\n"))
	if probe.Data["reason"] != "probe" || probe.Data["outcome"] != "DEFER" {
		t.Errorf("a probe: %s", probe.Text)
	}
	if wrong := a.verdict("ann", a.submit("ann", "claim", "// WRONG speed 3\n")); wrong.Data["reason"] != "correctness" {
		t.Errorf("a wrong claim: %s", wrong.Text)
	}
	handle := a.submit("ann", "claim", "// speed 1.5\n")
	claim := a.verdict("ann", handle)
	if claim.Data["outcome"] != "PASS" || claim.Data["budget"].(map[string]any)["claims_spent"] != 2.0 {
		t.Fatalf("a claim: %s\n%v", claim.Text, claim.Data["budget"])
	}
	// The same machine code has one verdict, whatever stands in its comments.
	again := a.verdict("ann", a.submit("ann", "claim", "// speed 1.5\n/* once more */"))
	if again.Data["outcome"] != "PASS" || again.Data["budget"].(map[string]any)["claims_spent"] != 2.0 {
		t.Errorf("the same code again: %s\n%v", again.Text, again.Data["budget"])
	}
	if why := a.must("ann", "why", map[string]any{"handle": handle}); len(why.Data["gates"].([]any)) == 0 {
		t.Errorf("why: %s", why.Text)
	}
	if h := a.must("ann", "history", map[string]any{"kernel": "scale"}); len(h.Data["tried"].([]any)) != 4 {
		t.Errorf("the history: %s", h.Text)
	}
	if got := a.must("bob", "describe", map[string]any{"kernel": "scale"}); got.Data["budget"].(map[string]any)["claims_spent"] != 0.0 {
		t.Errorf("bob's budget: %v", got.Data["budget"])
	}
	head := a.repo.Head("main")
	if c, ok := a.repo.Check(head, "kernelgate"); ok {
		t.Errorf("GitHub has a check %+v", c)
	}
	for _, path := range []string{"/", "/runners", "/runs/" + handle, "/api/v1/runs"} {
		if _, page := a.get(a.s.URL() + path); strings.Contains(page, handle) && !strings.Contains(path, handle) || strings.Contains(page, "submission-") {
			t.Errorf("%s shows a submission", path)
		}
	}
}

// TestAgentsAttack has holders of tokens try what they must not be able to do.
func TestAgentsAttack(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.measure()
	mine := files("probe", "// speed 1.5\n")
	mine["idempotency_key"] = "monday"
	anns := a.must("ann", "submit", mine).Data["handle"].(string)
	a.verdict("ann", anns)

	// Bob knows the handle of Ann's submission, and replays her key and her files.
	for _, tool := range []string{"status", "verdict", "why"} {
		a.refused("bob", tool, map[string]any{"handle": anns}, "there is no submission")
	}
	for _, handle := range []string{"", "../" + anns, anns + "/..", "submission-" + anns, "%2e%2e", strings.ToUpper(anns), strings.Repeat("a", 5000), "ann/" + anns, "*", ">", anns + "\x00"} {
		a.refused("ann", "verdict", map[string]any{"handle": handle}, "there is no submission")
	}
	bobs := a.must("bob", "submit", mine).Data
	if bobs["handle"] == anns || bobs["repeated"] == true {
		t.Errorf("the key of another gives %v", bobs)
	}
	if again := a.must("ann", "submit", mine).Data; again["handle"] != anns || again["repeated"] != true {
		t.Errorf("Ann's own key gives %v", again)
	}
	other := files("probe", "// speed 7\n")
	other["idempotency_key"] = "monday"
	a.refused("ann", "submit", other, "was used for a different submission")
	if h := a.must("bob", "history", nil); strings.Contains(h.Text, anns) {
		t.Errorf("Bob's history has Ann's submission: %s", h.Text)
	}
	for _, what := range []string{"report", "log"} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"kernelgate://submissions/%s/%s"}}`, anns, what)
		if got := a.rpc("bob", body); !got.IsError {
			t.Errorf("Bob reads Ann's %s: %s", what, got.Text)
		}
		if got := a.rpc("ann", body); got.IsError {
			t.Errorf("Ann does not read her %s: %s", what, got.Text)
		}
	}

	// Eve's token is for another repository, which the bot does not know: this one looks the same to her.
	for _, kernel := range []string{"olga/kernels:scale", "olga/elsewhere:scale", "olga/nowhere:scale"} {
		for tool, arguments := range map[string]map[string]any{
			"describe": {"kernel": kernel}, "submit": {"kernel": kernel, "intent": "probe", "files": map[string]string{"scale.c": "x"}},
			"check_static": {"kernel": kernel, "ref": "main"},
		} {
			a.refused("eve", tool, arguments, "this token is for no repository")
		}
	}
	a.refused("eve", "describe", nil, "this token is for no repository")

	// Names with traversal, of kernels, files and commits.
	for _, kernel := range []string{"../kernels/scale", "kernels/../kernels/scale", "/etc", "olga/kernels:../../scale", "olga/kernels:", "olga/../olga/kernels:scale", "a:b:c"} {
		a.refused("ann", "describe", map[string]any{"kernel": kernel}, "kernel")
	}
	for _, name := range []string{"../scale.c", "/scale.c", "a/../scale.c", "./scale.c", ".git/config", "scale.c/", "..\\scale.c", "reference.c", ".github/kernelgate.yaml"} {
		got := a.call("ann", "submit", map[string]any{"kernel": "scale", "intent": "probe", "files": map[string]string{name: "x"}})
		if !got.IsError || !strings.Contains(got.Text, "is not the name of a file") && !strings.Contains(got.Text, "cannot be changed") {
			t.Errorf("the file %q: %+v", name, got)
		}
	}
	for _, ref := range []string{"--upload-pack=/bin/sh", "HEAD", "@{-1}", "main:kernels", "main^{/x}", "refs/heads/../../config", "-h", "main..main", strings.Repeat("b", 300), strings.Repeat("0", 40)} {
		a.refused("ann", "submit", map[string]any{"kernel": "scale", "intent": "probe", "ref": ref}, "ref: ")
	}

	// Bodies and batches beyond the limits.
	if status, _ := a.post(secretOf("ann"), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"submit","arguments":{"kernel":"`+strings.Repeat("x", 5<<20)+`"}}}`)); status < 400 || status >= 500 {
		t.Errorf("a body of 5 MiB is answered by %d", status)
	}
	a.refused("ann", "submit", files("probe", strings.Repeat("x", 1<<20+1)), "the files have 1048577 bytes")
	a.refused("ann", "submit", map[string]any{"kernel": "scale", "intent": "probe", "tarball": "AAAA"}, "was cut off, or it is no tar")
	a.refused("ann", "submit", map[string]any{"kernel": "scale", "intent": "approve", "ref": "main"}, "is not one of probe, claim")
	a.refused("ann", "submit", map[string]any{"kernel": "scale", "intent": "static", "ref": "main"}, "is not one of probe, claim")
	a.refused("ann", "submit", map[string]any{"kernel": "scale", "intent": "probe", "ref": "main", "owner": "bob"}, "unknown field")
	for _, secret := range []string{"", "x", secretOf("mallory"), runnerToken, secret} {
		if status, _ := a.post(secret, []byte(`{}`)); status != http.StatusUnauthorized {
			t.Errorf("with %q: %d", secret, status)
		}
	}

	// A policy that keeps forks off the runners keeps submissions off.
	_, err := a.repo.Push("main", map[string]string{".github/kernelgate.yaml": timedNever}, "No forks")
	a.no(err)
	a.until("the new policy is read", func() bool {
		got := a.call("ann", "submit", files("probe", "// speed 9\n"))
		return got.IsError && strings.Contains(got.Text, "does not let code from forks run")
	})
}

var timedNever = strings.Replace(agentsPolicy, "gates:", "forks: {run: never}\ngates:", 1)

// until waits for something that takes a moment.
func (a *agents) until(what string, is func() bool) {
	a.Helper()
	for !is() {
		select {
		case <-a.ctx.Done():
			a.Fatalf("it does not come to this: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestAgentsLoseTokens removes a token while a submission of it runs. Its holder is refused at once; the
// submission ends, and is there when the name has a token again. A file with a mistake changes nothing.
func TestAgentsLoseTokens(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.measure()
	handle := a.submit("ann", "probe", "// HOLD speed 2\n")
	a.until("it runs", func() bool {
		return a.must("ann", "status", map[string]any{"handle": handle}).Data["state"] == "running"
	})
	a.allow("bob olga/kernels")
	if got := a.call("ann", "status", map[string]any{"handle": handle}); got.Status != http.StatusUnauthorized {
		t.Errorf("a removed token is answered by %d %s", got.Status, got.Text)
	}
	a.no(os.WriteFile(a.tokens, []byte("carl short olga/kernels\n"), 0o600))
	if got := a.call("bob", "history", nil); got.Status != http.StatusOK {
		t.Errorf("a mistake in the file removes tokens: %d", got.Status)
	}
	close(a.hold)
	a.allow("bob olga/elsewhere", "ann olga/kernels")
	if got := a.verdict("ann", handle); got.Data["reason"] != "probe" {
		t.Errorf("the submission of a removed token ended as %s", got.Text)
	}
	a.refused("bob", "describe", map[string]any{"kernel": "olga/kernels:scale"}, "this token is for no repository")
}

// TestAgentsSurviveRestarts stops the bot while one submission is measured and others wait. All end after the
// next start; a claim counts once.
func TestAgentsSurviveRestarts(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	waiting := a.submit("ann", "claim", "// speed 3\n") // there is no runner yet
	broken := a.submit("bob", "probe", "// BROKEN\n")
	a.no(a.stop())
	a.begin()
	a.measure()
	for _, again := range []struct{ name, handle, intent, source string }{{"ann", waiting, "claim", "// speed 3\n"}, {"bob", broken, "probe", "// BROKEN\n"}} {
		if got := a.submit(again.name, again.intent, again.source); got != again.handle {
			t.Errorf("after the restart the same submission is %s, and was %s", got, again.handle)
		}
	}
	if got := a.verdict("ann", waiting); got.Data["outcome"] != "PASS" || got.Data["budget"].(map[string]any)["claims_spent"] != 1.0 {
		t.Errorf("the claim of before: %s", got.Text)
	}
	if got := a.verdict("bob", broken); got.Data["reason"] != "build" {
		t.Errorf("the probe of before: %s", got.Text)
	}
	a.no(a.stop())
	a.begin()
	if got := a.verdict("ann", waiting); got.Data["outcome"] != "PASS" {
		t.Errorf("a result of before the restart: %s", got.Text)
	}
	if h := a.must("ann", "history", nil); len(h.Data["tried"].([]any)) != 1 {
		t.Errorf("the history after a restart: %s", h.Text)
	}
	if got := a.must("ann", "describe", map[string]any{"kernel": "scale"}); got.Data["budget"].(map[string]any)["claims_spent"] != 1.0 {
		t.Errorf("the budget after a restart: %v", got.Data["budget"])
	}
}
