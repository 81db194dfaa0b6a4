package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

const kubernetesDir = "../install/cluster/kubernetes/"

// shipped is the NATS cluster of the Kubernetes manifests on ports of this machine. It has the configuration of the manifests
// and certificates from their script.
type shipped struct {
	t       *testing.T
	secrets string // folder
	ports   [3][3]string
	all     [3]*server.Server
}

func newShipped(t *testing.T) *shipped {
	t.Helper()
	s := &shipped{t: t, secrets: createSecrets(t)}
	for i := range s.ports {
		for k := range s.ports[i] {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close() // all of them differ
			_, s.ports[i][k], _ = net.SplitHostPort(l.Addr().String())
		}
	}
	return s
}

// createSecrets runs the script that operators run.
func createSecrets(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("openssl creates the certificates:", err)
	}
	dir := t.TempDir()
	runScript(t, dir)
	return dir
}

func runScript(t *testing.T, args ...string) string {
	t.Helper()
	script := exec.Command(kubernetesDir+"create-secrets.sh", args...)
	script.Env = append(os.Environ(), "NATS_NAMES=IP:127.0.0.1")
	out, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// adapt reads a file and replaces each text. The file must have every text.
func (s *shipped) adapt(file string, pairs ...string) string {
	s.t.Helper()
	text, err := os.ReadFile(kubernetesDir + file)
	if err != nil {
		s.t.Fatal(err)
	}
	out := string(text)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(out, pairs[i]) {
			s.t.Fatalf("%s has no %q", file, pairs[i])
		}
		out = strings.ReplaceAll(out, pairs[i], pairs[i+1])
	}
	return out
}

// start starts a server. If alone is true, the server cannot reach the others.
func (s *shipped) start(i int, alone bool) {
	s.t.Helper()
	var routes []string
	for k, p := range s.ports {
		port := p[1]
		if alone && k != i {
			port = "1"
		}
		routes = append(routes, "nats://127.0.0.1:"+port)
	}
	dir := filepath.Join(s.secrets, fmt.Sprint("server", i))
	text := s.adapt("control/nats.conf", "port: 4222", "host: 127.0.0.1, port: "+s.ports[i][0], "port: 6222", "host: 127.0.0.1, port: "+s.ports[i][1], "http_port: 8222", "http: 127.0.0.1:"+s.ports[i][2],
		"/etc/nats-tls", filepath.Join(s.secrets, "nats-tls"), "store_dir: /data", "store_dir: "+dir, "/tmp/nats.pid", dir+".pid",
		"nats://nats-0.nats:6222, nats://nats-1.nats:6222, nats://nats-2.nats:6222", strings.Join(routes, ", "))
	text = strings.ReplaceAll(text, "host: 127.0.0.1, ", "host: 127.0.0.1\n")
	file := filepath.Join(s.secrets, fmt.Sprintf("nats-%d.conf", i))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.t.Setenv("NATS_NAME", fmt.Sprint("nats-", i))
	opt, err := server.ProcessConfigFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	opt.NoSigs, opt.NoLog = true, true
	srv, err := server.NewServer(opt)
	if err != nil {
		s.t.Fatal(err)
	}
	srv.Start()
	s.all[i] = srv
	s.t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(30 * time.Second) {
		s.t.Fatal("a NATS server does not start")
	}
}

func (s *shipped) address(i int) string { return "127.0.0.1:" + s.ports[i][0] }

// config is the configuration of the bots for these servers.
func (s *shipped) config() Config {
	s.t.Helper()
	pairs := []string{"/etc/kernelgate/nats", filepath.Join(s.secrets, "nats-client")}
	for i := range s.all {
		pairs = append(pairs, fmt.Sprintf("nats-%d.nats:4222", i), s.address(i))
	}
	file := filepath.Join(s.secrets, "kernelgate.yaml")
	if err := os.WriteFile(file, []byte(s.adapt("control/kernelgate.yaml", pairs...)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	c, err := Load(Sources{File: file, Getenv: func(string) string { return "" }})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// health returns the answer of a server to a probe.
func (s *shipped) health(i int, path string) (int, string) {
	s.t.Helper()
	resp, err := http.Get("http://127.0.0.1:" + s.ports[i][2] + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A probe is a probe of the manifest.
type probe struct {
	HTTPGet struct{ Path string } `yaml:"httpGet"`
	Period  int                   `yaml:"periodSeconds"`
	Enough  int                   `yaml:"successThreshold"`
}

// probes reads the probes from the manifest.
func (s *shipped) probes() (readiness, liveness probe) {
	s.t.Helper()
	d := yaml.NewDecoder(strings.NewReader(s.adapt("control/nats.yaml")))
	for {
		var o struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Readiness probe `yaml:"readinessProbe"`
							Liveness  probe `yaml:"livenessProbe"`
						}
					}
				}
			}
		}
		if err := d.Decode(&o); err != nil {
			s.t.Fatal(err)
		}
		if o.Kind == "StatefulSet" {
			c := o.Spec.Template.Spec.Containers[0]
			return c.Readiness, c.Liveness
		}
	}
}

// awaitReady asks a server as the kubelet does.
func (s *shipped) awaitReady(i int, ready probe) {
	s.t.Helper()
	for in := 0; ; {
		status, text := s.health(i, ready.HTTPGet.Path)
		if in++; status != http.StatusOK {
			in = 0
		}
		if in >= ready.Enough {
			return
		}
		select {
		case <-time.After(time.Duration(ready.Period) * time.Second):
		case <-s.t.Context().Done():
			s.t.Fatalf("the server is never ready: %d %s", status, text)
		}
	}
}

// The shipped NATS servers accept only a client whose certificate names the bot. They refuse a client without a certificate,
// with a certificate of a different authority, or with the certificate of a different program.
func TestNATSRefusesStrangers(t *testing.T) {
	s := newShipped(t)
	for i := range s.all {
		s.start(i, false)
	}
	c := s.config()
	j, err := journal.Open(t.Context(), journalOptions(Options{Config: c}, nil))
	if err != nil {
		t.Fatal("the bot is refused:", err)
	}
	if _, err := j.Append(t.Context(), "run", 0, "kind", 1); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	other := createSecrets(t)
	roots := nats.RootCAs(c.NATSRoots)
	for name, stranger := range map[string][]nats.Option{
		"no TLS":                              nil,
		"no certificate":                      {roots},
		"a certificate of another authority":  {roots, nats.ClientCert(filepath.Join(other, "nats-client/tls.crt"), filepath.Join(other, "nats-client/tls.key"))},
		"the certificate of the bots' HTTPS":  {roots, nats.ClientCert(filepath.Join(s.secrets, "bot-tls/tls.crt"), filepath.Join(s.secrets, "bot-tls/tls.key"))},
		"the certificate of a NATS server":    {roots, nats.ClientCert(filepath.Join(s.secrets, "nats-tls/tls.crt"), filepath.Join(s.secrets, "nats-tls/tls.key"))},
		"no certificate, and a user's name":   {roots, nats.UserInfo("CN=kernelgate-bot", "")},
		"another authority's word for itself": {nats.RootCAs(filepath.Join(other, "ca/ca.crt")), nats.ClientCert(c.NATSCert, c.NATSKey)},
	} {
		nc, err := nats.Connect("nats://"+s.address(0), append(stranger, nats.Timeout(5*time.Second))...)
		if err == nil {
			// With TLS 1.3 the client learns only later that its certificate was refused.
			if _, err = nc.RequestMsg(&nats.Msg{Subject: "$JS.API.INFO"}, 5*time.Second); err == nil {
				t.Errorf("%s: accepted", name)
			}
			nc.Close()
		}
	}
}

// A server that lacks the newest messages is alive but not ready. It becomes ready when its copies are current. So an update
// that waits for readiness never stops a second server while the first lags.
func TestNATSReadinessWaitsForStreams(t *testing.T) {
	s := newShipped(t)
	for i := range s.all {
		s.start(i, false)
	}
	ready, alive := s.probes()
	j, err := journal.Open(t.Context(), journalOptions(Options{Config: s.config()}, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	write := func(run string) (last uint64) {
		t.Helper()
		for range 50 {
			seq, err := j.Append(t.Context(), run, last, "kind", strings.Repeat("x", 1000))
			for tries := 0; err != nil && tries < 12; tries++ { // a new leader is elected, which takes seconds on a busy machine
				var newest journal.Event
				if newest, err = j.Last(t.Context(), run); err == nil && newest.Seq > last {
					seq = newest.Seq // the event was stored, but the answer was lost
					break
				}
				seq, err = j.Append(t.Context(), run, last, "kind", strings.Repeat("x", 1000))
			}
			if err != nil {
				t.Fatal(err)
			}
			last = seq
		}
		return last
	}
	write("before")
	s.all[2].Shutdown()
	s.all[2].WaitForShutdown()
	newest := write("meanwhile")
	s.start(2, true)
	if status, text := s.health(2, alive.HTTPGet.Path); status != http.StatusOK {
		t.Errorf("a server that lags would be restarted: %d %s", status, text)
	}
	if status, text := s.health(2, ready.HTTPGet.Path); status != http.StatusServiceUnavailable {
		t.Errorf("a server that lags counts as ready: %d %s", status, text)
	}
	s.all[2].Shutdown()
	s.all[2].WaitForShutdown()
	s.start(2, false)
	s.awaitReady(2, ready)
	is, err := s.all[2].Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range is.AccountDetails {
		for _, stream := range account.Streams {
			if stream.Name == "EVENTS" && stream.State.LastSeq != newest {
				t.Errorf("a ready server has the events up to %d of %d", stream.State.LastSeq, newest)
			}
		}
	}
	if len(is.AccountDetails) == 0 {
		t.Error("a ready server has no streams")
	}
}
