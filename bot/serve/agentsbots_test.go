package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/host/subprocess"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// botEnv makes the test binary a bot that serves until it is killed.
const botEnv = "KERNELGATE_TEST_SERVE"

// A botSetup is what a bot in another process needs to know.
type botSetup struct {
	Data, Listen, Advertise, NATS, Tokens string

	GitHub serve.GitHub
	Key    []byte
}

// botLead is short: the test only waits while the lead of a dead bot runs out.
const botLead = 2 * time.Second

func botMain() {
	text, ok := os.LookupEnv(botEnv)
	if !ok {
		return
	}
	var b botSetup
	err := json.Unmarshal([]byte(text), &b)
	if err == nil {
		o := optionsFor(b.GitHub, b.Key, b.Data, os.Stderr)
		forAgents(&o, b.Tokens)
		o.Listen, o.Advertise, o.NATS, o.LeadFor = b.Listen, b.Advertise, serve.Words{b.NATS}, botLead
		err = serve.Run(context.Background(), o)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// bots are two bots on one journal, each a process, and their agents and one runner, who reach them through a proxy that kills
// the one that leads.
type bots struct {
	*agents
	nats string
	all  []*botProcess

	mu    sync.Mutex
	trap  *trap
	fired chan string
}

type botProcess struct {
	botSetup
	front string // address of the proxy
	mu    sync.Mutex
	cmd   *exec.Cmd
}

// A trap kills the bot that leads at a request of a kind, or stops it until the other one leads: so long after the request was
// passed on, or when it is answered, so that the answer is lost.
type trap struct {
	kind     string
	signal   syscall.Signal
	answered bool
	after    time.Duration
}

func (t trap) String() string {
	if t.answered {
		return fmt.Sprintf("%v before the answer to %s", t.signal, t.kind)
	}
	return fmt.Sprintf("%v %v into %s", t.signal, t.after, t.kind)
}

// newBots starts two bots. Only the first says how it is reached, so only the second passes requests on.
func newBots(a *agents) *bots {
	a.Helper()
	b := &bots{agents: a, nats: natsServer(a.TB).ClientURL(), fired: make(chan string, 1)}
	for i := range 2 {
		p := &botProcess{botSetup: botSetup{
			Data: a.TempDir(), Listen: b.freeAddress(), NATS: b.nats, Tokens: a.tokens,
			GitHub: serve.GitHub{AppID: a.app.ID(), APIURL: a.hub.URL(), GitURL: a.hub.URL()}, Key: a.app.PrivateKeyPEM(),
		}}
		if i == 0 {
			p.Advertise = "http://" + p.Listen
		}
		front := httptest.NewServer(b.proxy(p))
		a.Cleanup(front.Close)
		p.front = front.URL
		b.all = append(b.all, p)
	}
	for _, p := range b.all {
		b.spawn(p)
		a.Cleanup(p.kill)
	}
	b.leader()
	b.runAgent(agent.Config{
		Servers: []string{b.all[0].front, b.all[1].front}, Token: runnerToken, Name: "cpu1", Labels: []string{"cpu"}, StateDir: a.TempDir(),
		Measure: scripted.Runner{Hold: a.hold}.Measure,
		After:   func(d time.Duration) <-chan time.Time { return time.After(min(d, 100*time.Millisecond)) },
	})
	return b
}

func (b *bots) freeAddress() string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.no(err)
	defer l.Close()
	return l.Addr().String()
}

// spawn starts a bot.
func (b *bots) spawn(p *botProcess) {
	b.Helper()
	text, err := json.Marshal(p.botSetup)
	b.no(err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), botEnv+"="+string(text))
	cmd.Stderr = b.log
	b.no(subprocess.Start(cmd, syscall.SIGKILL))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = cmd
}

func (p *botProcess) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Kill() // it may be gone
	_ = p.cmd.Wait()
}

// leads asks a bot.
func (p *botProcess) leads() bool {
	c := http.Client{Timeout: time.Second}
	resp, err := c.Get("http://" + p.Listen + "/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return strings.Contains(string(text), "\nleader")
}

// leader waits until a bot leads.
func (b *bots) leader() (leads *botProcess) {
	b.Helper()
	b.until("a bot leads", func() bool {
		for _, p := range b.all {
			if p.leads() {
				leads = p
			}
		}
		return leads != nil
	})
	return leads
}

// kindOf is the kind of a request: the tool of an agent, or the last part of a runner's path.
func kindOf(path string, body []byte) string {
	var call struct{ Params struct{ Name string } }
	if path == "/mcp" {
		_ = json.Unmarshal(body, &call)
		return call.Params.Name
	}
	return path[strings.LastIndex(path, "/")+1:]
}

// spring takes the trap, if it is for that kind of request.
func (b *bots) spring(kind string, answered bool) (trap, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trap == nil || b.trap.kind != kind || b.trap.answered != answered {
		return trap{}, false
	}
	t := *b.trap
	b.trap = nil
	return t, true
}

// proxy passes requests on to a bot.
func (b *bots) proxy(to *botProcess) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		kind := kindOf(r.URL.Path, body)
		if t, ok := b.spring(kind, false); ok {
			time.AfterFunc(t.after, func() { b.killLeader(t) })
		}
		out, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+to.Listen+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			panic(err)
		}
		out.Header = r.Header.Clone()
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode < 300 {
			if t, ok := b.spring(kind, true); ok {
				b.killLeader(t)
				err = errors.New("the answer is lost")
			}
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(text)
	}
}

// killLeader stops the bot that leads, as the trap says. If no bot leads at that moment, it stops the first one.
func (b *bots) killLeader(t trap) {
	victim := b.all[0]
	if b.all[1].leads() {
		victim = b.all[1]
	}
	if t.signal == syscall.SIGKILL {
		victim.kill()
	} else {
		_ = victim.cmd.Process.Signal(t.signal) // it is not gone: only fault starts others
	}
	b.fired <- t.String()
}

// fault kills or stops the bot that leads at a moment that the dice choose, and starts it again.
func (b *bots) fault(dice *rand.Rand, signal syscall.Signal, kind string) string {
	b.Helper()
	t := trap{kind: kind, signal: signal, answered: dice.IntN(2) == 0, after: time.Duration(dice.IntN(30)) * time.Millisecond}
	b.mu.Lock()
	b.trap = &t
	b.mu.Unlock()
	var what string
	select {
	case what = <-b.fired:
	case <-time.After(time.Minute):
		b.Fatalf("there is no request %s", kind)
	}
	if signal == syscall.SIGSTOP {
		b.leader() // the other one
	}
	<-time.After(time.Duration(dice.IntN(300)) * time.Millisecond)
	for _, p := range b.all {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		p.mu.Lock()
		dead := p.cmd.ProcessState != nil
		p.mu.Unlock()
		if dead {
			b.spawn(p)
		}
	}
	b.leader()
	return what
}

// ask calls a tool at the bots in turn, until one answers: as an agent does, it asks again where no answer comes and where a bot
// does not lead.
func (b *bots) ask(first int, name, tool string, arguments map[string]any) (answer, error) {
	body, err := callOf(tool, arguments)
	if err != nil {
		return answer{}, err
	}
	for try := first; ; try++ {
		got, err := b.once(b.all[try%len(b.all)], name, body)
		switch {
		case b.ctx.Err() != nil:
			return got, b.ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return got, fmt.Errorf("%s of %s hangs: %w", tool, name, err)
		case err == nil && got.Status == http.StatusOK && !strings.Contains(got.Text, "ask again"):
			return got, nil
		case err == nil && got.Status != http.StatusOK && got.Status != http.StatusServiceUnavailable:
			return got, fmt.Errorf("%s of %s: %d %s", tool, name, got.Status, got.Text)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// noHang is longer than any request of this test may take.
const noHang = 30 * time.Second

func (b *bots) once(p *botProcess, name string, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(b.ctx, noHang)
	defer cancel()
	r, err := toAgents(ctx, p.front, secretOf(name), body)
	if err != nil {
		return answer{}, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	return answerOf(resp.StatusCode, string(text))
}
