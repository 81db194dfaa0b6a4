package journal

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// external starts a server of its own, as on another host.
func external(t *testing.T) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true,
		JetStream: true, StoreDir: t.TempDir(), SyncAlways: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return srv
}

// A proxy stands between a journal and its server, loses messages and cuts lines.
type proxy struct {
	to    string
	heard net.Listener
	all   sync.WaitGroup

	mu    sync.Mutex
	lines map[net.Conn]bool
	lose  func(message []byte) bool // of those to the journal; nil loses none
}

func newProxy(t *testing.T, srv *server.Server) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: srv.Addr().String(), heard: l, lines: map[net.Conn]bool{}}
	p.all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", p.to)
			if err != nil {
				near.Close()
				continue
			}
			p.mu.Lock()
			p.lines[near], p.lines[far] = true, true
			p.mu.Unlock()
			p.all.Go(func() { _, _ = io.Copy(far, near); far.Close() })
			p.all.Go(func() { _ = p.sift(near, far); near.Close() })
		}
	})
	t.Cleanup(func() { l.Close(); p.cut(); p.all.Wait() })
	return p
}

// open opens a journal whose lines go through the proxy, and that comes back quickly.
func (p *proxy) open(t *testing.T, o Options) *Journal {
	t.Helper()
	o.URL = "nats://" + p.heard.Addr().String()
	o.NATS = []nats.Option{nats.ReconnectWait(5 * time.Millisecond), nats.ReconnectJitter(time.Millisecond, time.Millisecond)}
	return open(t, o)
}

// cut ends every connection in the middle of whatever is said.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.lines {
		c.Close()
	}
	clear(p.lines)
}

func (p *proxy) losing(lose func([]byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = lose
}

// sift copies the server's messages but those that are lost.
func (p *proxy) sift(to io.Writer, from io.Reader) error {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return err
		}
		fields := strings.Fields(string(line))
		if len(fields) == 0 || fields[0] != "MSG" && fields[0] != "HMSG" {
			if _, err := to.Write(line); err != nil {
				return err
			}
			continue
		}
		size, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			return errors.Join(errors.New("not the protocol"), err)
		}
		body := make([]byte, size+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		p.mu.Lock()
		lost := p.lose != nil && p.lose(body)
		p.mu.Unlock()
		if lost {
			continue
		}
		if _, err := to.Write(bytes.Join([][]byte{line, body}, nil)); err != nil {
			return err
		}
	}
}
