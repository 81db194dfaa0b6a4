package cli

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
)

// The kernels of the soak print their times: measuring them is cheap, and the verdict is known on any machine. Everything
// around them is real: the runner builds and runs them in its sandbox.
const (
	soakManifest = `version: 1
name: %s
mode: command
command: {build: [sh, build.sh], bench: [sh, bench.sh]}
sources: [kernel.sh]
shapes:
  mission: {N: 1000}
secret: {N: 1..3000}
`
	soakPolicy = `version: 1
devices: [cpu]
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal], secret_cases: 1, norm_error: "<= 1%%"}
  performance:
    target: {shapes: [mission], speedup: ">= %s"}
    rounds: {min: 6, max: 6}
    interims: [6]
    pairs: 4
rules:
  - name: default
`
	soakBranch = "strict" // asks for more than the default branch
)

// perAccount is how many pull requests an account gets in an hour: GitHub takes 500 writes an hour from an App in each
// account, and a pull request needs about ten. The limits of GitHub are on.
const perAccount = 20

// accounts returns how many accounts are needed for that.
func (o soakOptions) accounts() int {
	return max(3, min(o.pulls, int(math.Ceil(float64(o.pulls)/o.duration.Hours()/perAccount))))
}

// A soakRepo is a repository with a kernel that pull requests change, and one that merges make faster and faster.
type soakRepo struct {
	*embedded.Repo
	first string // the first commit of the default branch

	merging sync.Mutex // held from a pull request of the second kernel to its merge
	us      float64    // what the second kernel takes
}

// githubTruth is what the test does to GitHub.
type githubTruth struct {
	mu      sync.Mutex
	refused bool      // the App's key
	failing time.Time // since when the API fails; zero if it does not
}

func (s *soak) createGitHub() {
	s.Helper()
	var err error
	if s.hub, err = embedded.New(embedded.Options{Dir: filepath.Join(s.dir, "hub"), Seed: s.seed, OnCheck: s.heads.written}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { s.hub.Close() })
	if s.app, err = s.hub.CreateApp(embedded.AppOptions{Slug: "kernelgate"}); err != nil {
		s.Fatal(err)
	}
	read := func(name string) string { return string(slurp(s.T, "runners/backend/command/testdata/kernel/"+name)) }
	files := map[string]string{".github/kernelgate.yaml": fmt.Sprintf(soakPolicy, "+10%"), "README.md": "Kernels.\n"}
	for _, kernel := range []string{"scale", "chain"} {
		files["kernels/"+kernel+"/kernel.yaml"] = fmt.Sprintf(soakManifest, kernel)
		files["kernels/"+kernel+"/kernel.sh"] = "us=100\n"
		files["kernels/"+kernel+"/build.sh"], files["kernels/"+kernel+"/bench.sh"] = read("build.sh"), read("bench.sh")
	}
	for i := range s.accounts() {
		repo, err := s.hub.CreateRepo(embedded.RepoOptions{Owner: fmt.Sprintf("team%d", i), Name: "kernels"})
		if err != nil {
			s.Fatal(err)
		}
		for login, role := range map[string]embedded.Role{"walt": embedded.Write, "mara": embedded.Maintain, "rita": embedded.Read} {
			s.hub.CreateUser(login)
			if err := repo.Grant(login, role); err != nil {
				s.Fatal(err)
			}
		}
		r := &soakRepo{Repo: repo, us: 100}
		if r.first, err = repo.Push("main", files, "Two kernels"); err != nil {
			s.Fatal(err)
		}
		if _, err := repo.Push(soakBranch, map[string]string{".github/kernelgate.yaml": fmt.Sprintf(soakPolicy, "+40%")}, "Ask for more"); err != nil {
			s.Fatal(err)
		}
		repo.Protect("main", "kernelgate")
		repo.Protect(soakBranch, "kernelgate")
		if _, err := s.app.Install(repo); err != nil {
			s.Fatal(err)
		}
		s.repos = append(s.repos, r)
	}
}

// port returns a free port that stays free while its owner is down: it is below those that Linux gives to clients.
func (s *soak) port() string {
	s.Helper()
	const first, last = 20000, 32000
	for range last - first {
		if s.lastPort++; s.lastPort < first || s.lastPort >= last {
			s.lastPort = first + os.Getpid()%(last-first)
		}
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.lastPort)); err == nil {
			l.Close()
			return fmt.Sprint(s.lastPort)
		}
	}
	s.Fatal("no port is free")
	return ""
}

// soakNATS is three servers, each with a disk of its own.
type soakNATS struct {
	*natstest.Servers
	dir  string
	mu   sync.Mutex
	down [3]bool
	full [3]bool
}

// quorum reports whether two of three servers can store something.
func (n *soakNATS) quorum() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	well := 0
	for i := range n.down {
		if !n.down[i] && !n.full[i] {
			well++
		}
	}
	return well >= 2
}

func (n *soakNATS) set(i int, down, full bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down[i], n.full[i] = down, full
}

func (s *soak) startNATS() {
	s.Helper()
	var ports []string
	for range 6 {
		ports = append(ports, s.port())
	}
	n := &soakNATS{dir: filepath.Join(s.dir, "nats")}
	for i := range 3 {
		mount(s.T, "tmpfs", filepath.Join(n.dir, fmt.Sprint(i)), "tmpfs", "size=512m")
	}
	n.Servers = natstest.NewIn(s, ports, n.dir)
	s.nats = n
}

type soakBot struct {
	*service
	url, data string
	leads     atomic.Bool // as its metrics say
}

func (s *soak) startBots() {
	s.Helper()
	runners := ""
	for i := range soakRunners {
		runners += fmt.Sprintf("  - {name: runner%d, labels: [cpu], token_file: %s}\n", i, s.secret(fmt.Appendf(nil, "the token of runner %d, long enough", i), fmt.Sprintf("runner%d.token", i)))
	}
	key, secret := s.secret(s.app.PrivateKeyPEM(), "key.pem"), s.secret([]byte(hubSecret), "secret")
	for i := range 3 {
		port, data := s.port(), filepath.Join(s.dir, fmt.Sprintf("bot%d", i))
		mount(s.T, "tmpfs", data, "tmpfs", "size=256m")
		config := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:%s\nadvertise: http://127.0.0.1:%s\nnats: [%s]\nnats_replicas: 3\nreconcile: 30s\nlog: {format: json}\nrunner: {local: false}\nrunners:\n%s"+
			"github: {app_id: %d, api_url: '%s', git_url: '%s', private_key_file: %s, webhook_secret_file: %s}\n",
			data, port, port, s.nats.URLs, runners, s.app.ID(), s.hub.URL(), s.hub.URL(), key, secret)
		file := put(s.T, []byte(config), s.dir, fmt.Sprintf("bot%d.yaml", i))
		s.bots = append(s.bots, &soakBot{service: s.newService(botUnit, fmt.Sprintf("bot%d", i), "serve", "--config", file), url: "http://127.0.0.1:" + port, data: data})
	}
}

// secret writes a file that only its owner may read.
func (s *soak) secret(text []byte, name string) string {
	s.Helper()
	file := put(s.T, text, s.dir, name)
	if err := os.Chmod(file, 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

const soakRunners = 2

type soakRunner struct {
	*service
	wires *wires
	state string
}

func (s *soak) startRunners() {
	s.Helper()
	for i := range soakRunners {
		r := &soakRunner{state: filepath.Join(s.dir, fmt.Sprintf("runner%d", i)), wires: &wires{}}
		mount(s.T, "tmpfs", r.state, "tmpfs", "size=256m")
		var servers []string
		for _, b := range s.bots {
			servers = append(servers, r.wires.to(s.T, strings.TrimPrefix(b.url, "http://")))
		}
		r.service = s.newService(runnerUnit, fmt.Sprintf("runner%d", i), "runner", "--server", strings.Join(servers, ","), "--name", fmt.Sprintf("runner%d", i), "--labels", "cpu", "--gpus", "none",
			"--token-file", filepath.Join(s.dir, fmt.Sprintf("runner%d.token", i)), "--state", filepath.Join(r.state, "state"), "--log-format", "json")
		s.runners = append(s.runners, r)
	}
}

// balance sends each webhook to a random bot, and to the next one if that does not accept it in time.
func (s *soak) balance() {
	s.Helper()
	client := &http.Client{Timeout: 3 * time.Second}
	port := s.port()
	srv := &http.Server{Addr: "127.0.0.1:" + port, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		from := s.draw(len(s.bots))
		for i := range s.bots {
			rq, err := http.NewRequestWithContext(r.Context(), r.Method, s.bots[(from+i)%len(s.bots)].url+r.URL.Path, bytes.NewReader(body))
			if err != nil {
				continue
			}
			rq.Header = r.Header.Clone()
			answer, err := client.Do(rq)
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
	})}
	go srv.ListenAndServe()
	s.Cleanup(func() { srv.Close() })
	s.app.SetHook("http://127.0.0.1:"+port+"/webhook", hubSecret)
}

// awaitReady waits until all bots are ready and all runners have passed their self-test.
func (s *soak) awaitReady() {
	s.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		idle := 0.0
		ready := 0
		for _, b := range s.bots {
			if m, err := scrape(s.ctx, b.url); err == nil {
				ready += int(m.value("kernelgate_ready"))
				idle += m.labelled("kernelgate_runners", "state", "idle")
			}
		}
		if ready == len(s.bots) && int(idle) == len(s.runners) {
			return
		}
		if time.Now().After(deadline) || !s.sleep(200*time.Millisecond) {
			s.Fatalf("%d bots are ready and %.0f runners idle; see %s", ready, idle, s.dir)
		}
	}
}

// stopAll ends runners and bots as an operator would, and returns the memory that each bot had.
func (s *soak) stopAll() (memory []int64) {
	for _, b := range s.bots {
		memory = append(memory, b.memory())
	}
	for _, r := range s.runners {
		r.stop()
	}
	for _, b := range s.bots {
		b.stop()
	}
	return memory
}
