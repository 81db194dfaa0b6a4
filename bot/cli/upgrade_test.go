package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
	"github.com/kernelgate/kernelgate/gates"
)

// An edit replaces a text that occurs once in a file of this repository.
type edit struct{ file, old, new string }

// buildVersion builds the program with a version number. The edits say how that version differs from this tree.
func buildVersion(t *testing.T, version string, edits ...edit) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	read := func(file string) string {
		if changed, ok := overlay.Replace[file]; ok {
			file = changed
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	edits = append(edits, edit{"bot/cli/version.go", "func version() string {\n", "func version() string {\n\tif true {\n\t\treturn \"kernelgate " + version + "\"\n\t}\n"})
	for i, e := range edits {
		file, err := filepath.Abs(e.file)
		if err != nil {
			t.Fatal(err)
		}
		text := read(file)
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s has %d times %q", e.file, n, e.old)
		}
		overlay.Replace[file] = put(t, []byte(strings.Replace(text, e.old, e.new, 1)), dir, fmt.Sprintf("%d.go", i))
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "kernelgate")
	command(t, "go", "build", "-overlay", put(t, text, dir, "overlay.json"), "-o", program, ".")
	out, err := exec.Command(program, "--version").Output()
	if err != nil || !strings.Contains(string(out), version) {
		t.Fatalf("the program says that it is %q: %v", out, err)
	}
	return program
}

// oneKindMore returns the edits for a program that stores an event of a new kind after each verdict.
func oneKindMore() []edit {
	return []edit{
		{"bot/change/event.go", "func (RepublishAsked) kind() string { return \"republish_asked\" }\n",
			"func (RepublishAsked) kind() string { return \"republish_asked\" }\n\ntype Noted struct {\n\tText string `json:\"text\"`\n}\n\nfunc (Noted) kind() string { return \"noted\" }\n"},
		{"bot/change/event.go", "\"republish_asked\": decode[RepublishAsked],\n", "\"republish_asked\": decode[RepublishAsked],\n\t\"noted\": decode[Noted],\n"},
		{"bot/change/apply.go", "\tcase RepublishAsked:\n", "\tcase Noted:\n\t\treturn\n\tcase RepublishAsked:\n"},
		{"bot/controller/states.go", "\t\ts.recordHead(id, event)\n", `		s.recordHead(id, event)
		if _, ok := event.(change.Finished); ok {
			noted, was := change.Noted{Text: "judged"}, s.copy(e.state)
			if seq, err = s.journal.AppendAt(ctx, at, id.String(), seq, change.KindOf(noted), noted); err != nil {
				e.state = nil
				return was, nil
			}
			e.state.Apply(seq, at, noted)
		}
`},
	}
}

// balanced passes each request to the first bot that accepts it, as a load balancer does.
func balanced(t *testing.T, bots func() []string) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		for _, bot := range bots() {
			rq, err := http.NewRequestWithContext(r.Context(), r.Method, bot+r.URL.Path, bytes.NewReader(body))
			if err != nil {
				continue
			}
			rq.Header = r.Header.Clone()
			answer, err := http.DefaultClient.Do(rq)
			if err != nil {
				continue
			}
			answer.Body.Close()
			if answer.StatusCode < 500 {
				w.WriteHeader(answer.StatusCode)
				return
			}
		}
		http.Error(w, "no bot accepts it", http.StatusServiceUnavailable)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestOperateRollingUpgrade replaces three bots one by one while pull requests and other webhooks arrive. The new version
// stores one more kind of event. The bots store and handle every delivery, every pull request gets one verdict, which is right,
// and an older bot says that it cannot read the new events.
func TestOperateRollingUpgrade(t *testing.T) {
	operating(t)
	before, after := buildVersion(t, "v0.1.0"), buildVersion(t, "v0.2.0", oneKindMore()...)
	ctx := operating(t) // its time begins after the builds
	w := newHub(t)
	var ports []string
	for range 6 {
		ports = append(ports, freePort(t))
	}
	nats := natstest.New(t, ports)
	config := fmt.Sprintf("nats: [%s]\nnats_replicas: 3\nreconcile: 10s\n", nats.URLs)
	type bot struct {
		*process
		port, data string
	}
	var bots [3]bot
	var urls []string
	for i := range bots {
		bots[i] = bot{port: freePort(t), data: t.TempDir()}
		urls = append(urls, "http://127.0.0.1:"+bots[i].port)
	}
	entry := balanced(t, func() []string { return urls })
	begin := func(i int, program string) {
		t.Helper()
		bots[i].process = serveProgram(t, program, bots[i].port, w, bots[i].data, config)
		w.app.SetHook(entry+"/webhook", hubSecret)
		bots[i].ready(ctx)
	}
	for i := range bots {
		begin(i, before)
	}
	proves(ctx, t, w, urls[0], "before")

	load := newLoad(ctx, t, w, entry)
	load.pass(2)
	stopped := time.Now()
	bots[2].stop()
	begin(2, after)
	leads := func(i int) {
		t.Helper()
		if err := shows(ctx, bots[i].url, "kernelgate_leads 1", func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	leads(2)
	result(t, "the first bot of v0.2.0 leads %.0f s after the end of the bot that it replaces; the leader, a v0.1.0, has given the lead back", time.Since(stopped).Seconds())
	load.pass(2)
	old := unready(ctx, t, bots[0].url)
	if !strings.Contains(old, `kernelgate v0.2.0 wrote an event of the kind "noted", and this version, v0.1.0, does not know it`) {
		t.Errorf("the older bot says %q", old)
	}
	result(t, "a v0.1.0 on standby: %s", old)
	for i := range 2 {
		bots[i].stop()
		begin(i, after)
		load.pass(1)
	}
	sent, changes := load.end(urls[0])
	proves(ctx, t, w, urls[1], "after")
	for i := range bots {
		bots[i].stop()
	}
	judged := load.check(nats.URLs)
	result(t, "3 bots replaced one by one: %d of %d webhooks stored and handled, %d pull requests with %d verdicts, one for each run: every faster kernel passes, and no slower one", sent, sent, changes+4, judged)
}

// unready waits until a bot says why it is not ready.
func unready(ctx context.Context, t *testing.T, bot string) string {
	t.Helper()
	for ctx.Err() == nil {
		resp, err := http.Get(bot + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body) // after a failure the loop asks again
		resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(text), "does not know") {
			return strings.TrimSpace(string(text))
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Fatal("the older bot stays ready")
	return ""
}

// A load opens pull requests one after another, and sends other webhooks.
type load struct {
	t      *testing.T
	ctx    context.Context
	hub    *hub
	passed chan struct{} // one for each pull request
	quit   chan struct{}
	all    sync.WaitGroup

	mu    sync.Mutex
	ids   []string // of webhooks that were accepted
	heads []string // of pull requests: a faster kernel, a slower one, and so on
}

func newLoad(ctx context.Context, t *testing.T, w *hub, entry string) *load {
	l := &load{t: t, ctx: ctx, hub: w, passed: make(chan struct{}, 1000), quit: make(chan struct{})}
	running := func() bool {
		select {
		case <-l.quit:
			return false
		default:
			return ctx.Err() == nil
		}
	}
	l.all.Go(func() {
		for i := 0; running(); i++ {
			terms, want := faster, "success"
			if i%2 == 1 {
				terms, want = slower, "failure"
			}
			sha, got := w.propose(ctx, t, fmt.Sprintf("load-%d", i), terms)
			if got != want {
				t.Errorf("the pull request load-%d got %q, want %q", i, got, want)
				return
			}
			l.mu.Lock()
			l.heads = append(l.heads, sha)
			l.mu.Unlock()
			l.passed <- struct{}{}
		}
	})
	l.all.Go(func() {
		for running() {
			id := rand.Text()
			if status := sendWebhook(entry, id); status != http.StatusAccepted {
				t.Errorf("a webhook was answered with %d", status)
				return
			}
			l.mu.Lock()
			l.ids = append(l.ids, id)
			l.mu.Unlock()
			<-time.After(20 * time.Millisecond)
		}
	})
	return l
}

// pass waits for the verdicts of n pull requests.
func (l *load) pass(n int) {
	l.t.Helper()
	for range n {
		select {
		case <-l.passed:
		case <-l.ctx.Done():
			l.t.Fatal("pull requests get no verdict")
		}
	}
}

// end ends the load and checks that a bot shows the right verdict for every pull request, with the measurements behind it.
func (l *load) end(bot string) (sent, changes int) {
	l.t.Helper()
	close(l.quit)
	l.all.Wait()
	for i, sha := range l.heads {
		if i%2 == 1 {
			measured(l.ctx, l.t, bot, sha, gates.Defer, gates.ReasonTooSlow)
		} else {
			measured(l.ctx, l.t, bot, sha, gates.Pass, "")
		}
	}
	return len(l.ids), len(l.heads)
}

// check reads the journal. It checks that the bots have stored and handled every webhook, and judged every job once. It
// returns the number of verdicts.
func (l *load) check(urls string) int {
	l.t.Helper()
	j, err := journal.Open(l.ctx, journal.Options{URL: urls})
	if err != nil {
		l.t.Fatal(err)
	}
	defer j.Close()
	if at, err := j.Unhandled(l.ctx); err != nil || !at.IsZero() {
		l.t.Errorf("a webhook of %v was not handled: %v", at, err)
	}
	if dead, err := j.Dead(l.ctx); err != nil || len(dead) > 0 {
		l.t.Errorf("deliveries were given up: %+v, %v", dead, err)
	}
	for _, id := range l.ids {
		if isNew, err := j.Accept(l.ctx, webhook.Delivery{ID: id, Event: "check_suite", Body: []byte("{}")}); err != nil || isNew {
			l.t.Fatalf("the webhook %s is lost: %v", id, err)
		}
	}
	judged := map[string]int{}
	if _, err := j.Replay(l.ctx, 0, func(e journal.Event) error {
		var f change.Finished
		if e.Kind != change.KindOf(f) {
			return nil
		}
		err := json.Unmarshal(e.Data, &f)
		judged[f.Job]++
		return err
	}); err != nil {
		l.t.Fatal(err)
	}
	for _, pr := range l.hub.repo.PRs() {
		names := map[string]bool{}
		for _, c := range l.hub.repo.Checks(pr.HeadSHA()) {
			if names[c.Name] {
				l.t.Errorf("pull request %d has two checks with the name %s", pr.Number(), c.Name)
			}
			names[c.Name] = true
		}
		if n := len(pr.Comments()); n != 1 {
			l.t.Errorf("pull request %d has %d comments", pr.Number(), n)
		}
	}
	for job, n := range judged {
		if n != 1 {
			l.t.Errorf("%s was judged %d times", job, n)
		}
	}
	return len(judged)
}
