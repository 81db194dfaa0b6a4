// Package natstest runs NATS servers for tests. Each is a process of the test program, so that
// tests can kill and stop it.
package natstest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kernelgate/kernelgate/runners/host/subprocess"
)

// env makes the program a server: its number, its folder, the ports of all servers, and the file of its certificate.
const env = "KERNELGATE_TEST_NATS"

// Main is called at the start of TestMain. If this process was started as a server, it serves until
// it is killed or its parent is gone, and Main does not return.
func Main() {
	text, ok := os.LookupEnv(env)
	if !ok {
		return
	}
	if err := serve(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(text string) error {
	parts := strings.Split(text, "|")
	number, _ := strconv.Atoi(parts[0])
	ports := strings.Split(parts[2], ",")
	port := func(i int) int { n, _ := strconv.Atoi(ports[i]); return n }
	opt := &server.Options{
		ServerName: "node" + parts[0], Host: "127.0.0.1", Port: port(2 * number), NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: parts[1], SyncAlways: true, MaxPayload: 32 << 20, MaxPending: 256 << 20,
	}
	if len(ports) > 2 {
		opt.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port(2*number + 1)}
		for i := 1; i < len(ports); i += 2 {
			opt.Routes = append(opt.Routes, &url.URL{Scheme: "nats", Host: "127.0.0.1:" + ports[i]})
		}
	}
	if file := parts[3]; file != "" {
		pair, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			return err
		}
		opt.TLS, opt.TLSConfig = true, &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	srv, err := server.NewServer(opt)
	if err != nil {
		return err
	}
	srv.Start()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// Servers is one server, or a cluster.
type Servers struct {
	URLs  string // of all
	PEM   string // file with the certificate of all servers, and its key; empty without TLS
	t     testing.TB
	dir   string
	ports []string
	all   []*exec.Cmd
}

// New starts a server for every two ports: its clients' and its cluster's.
func New(t testing.TB, ports []string) *Servers {
	t.Helper()
	return NewIn(t, ports, t.TempDir())
}

// NewIn starts them with their files in dir/0, dir/1 and so on.
func NewIn(t testing.TB, ports []string, dir string) *Servers {
	t.Helper()
	return start(&Servers{t: t, dir: dir, ports: ports})
}

// NewTLS starts servers that clients reach by TLS only.
func NewTLS(t testing.TB, ports []string) *Servers {
	t.Helper()
	dir := t.TempDir()
	s := &Servers{t: t, dir: dir, ports: ports, PEM: filepath.Join(dir, "tls.pem")}
	if err := os.WriteFile(s.PEM, selfSigned(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(s)
}

// selfSigned returns a certificate for the loopback address that is its own authority, and its key.
func selfSigned(t testing.TB) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "natstest"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, errA := x509.CreateCertificate(rand.Reader, c, c, public, private)
	key, errB := x509.MarshalPKCS8PrivateKey(private)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
}

func start(s *Servers) *Servers {
	t := s.t
	t.Helper()
	s.all = make([]*exec.Cmd, len(s.ports)/2)
	var urls []string
	for i := range s.all {
		urls = append(urls, "nats://"+s.Addr(i))
		s.Start(i)
	}
	s.URLs = strings.Join(urls, ",")
	t.Cleanup(func() {
		for i := range s.all {
			s.Kill(i)
		}
	})
	return s
}

// Addr returns the address of a server for clients.
func (s *Servers) Addr(i int) string { return "127.0.0.1:" + s.ports[2*i] }

// Len returns the number of servers.
func (s *Servers) Len() int { return len(s.all) }

// Start starts a server that was killed. It does not wait until the server listens.
func (s *Servers) Start(i int) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d|%s|%s|%s", env, i, filepath.Join(s.dir, strconv.Itoa(i)), strings.Join(s.ports, ","), s.PEM))
	if _, err := cmd.StdinPipe(); err != nil { // it ends with the parent
		s.t.Fatal(err)
	}
	if err := subprocess.Start(cmd, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	s.all[i] = cmd
}

// Signal sends a signal to a server's process.
func (s *Servers) Signal(i int, signal os.Signal) error { return s.all[i].Process.Signal(signal) }

// Kill ends a server as a crash would.
func (s *Servers) Kill(i int) {
	s.all[i].Process.Kill()
	s.all[i].Wait()
}
