package cli

import (
	"io"
	"net"
	"sync"
	"testing"
)

// wires are the connections of one host. They can be cut: then nothing arrives any more in either direction, and neither side
// is told.
type wires struct {
	mu    sync.Mutex
	whole chan struct{} // nil, or closed when the wires are repaired
	conns map[net.Conn]bool
}

// to returns the address at which a server is reached through these wires.
func (w *wires) to(t testing.TB, server string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		w.closeAll()
	})
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go w.join(from, server)
		}
	}()
	return "http://" + l.Addr().String()
}

func (w *wires) join(from net.Conn, server string) {
	w.wait()
	to, err := net.Dial("tcp", server)
	if err != nil {
		from.Close()
		return
	}
	w.add(from, to)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], slowReader{way[0], w}) // the connection is closed on either side
			from.Close()
			to.Close()
		})
	}
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, from)
	delete(w.conns, to)
}

func (w *wires) add(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		w.conns = map[net.Conn]bool{}
	}
	for _, c := range conns {
		w.conns[c] = true
	}
}

// wait returns when the wires are whole.
func (w *wires) wait() {
	w.mu.Lock()
	whole := w.whole
	w.mu.Unlock()
	if whole != nil {
		<-whole
	}
}

func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole = make(chan struct{})
}

// repair connects new requests. What was on its way is lost.
func (w *wires) repair() {
	w.closeAll()
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.whole)
	w.whole = nil
}

func (w *wires) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.Close()
	}
}

// slowReader reads nothing while the wires are cut.
type slowReader struct {
	net.Conn
	w *wires
}

func (r slowReader) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.w.wait()
	return n, err
}
