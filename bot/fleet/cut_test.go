package fleet

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A cut is a line between a runner and its bot that can be severed.
type cut struct {
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	severed  bool
}

// between returns a socket that leads to another.
func (c *cut) between(t *testing.T, socket string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	own := filepath.Join(dir, "s")
	if c.listener, err = net.Listen("unix", own); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.listener.Close() })
	go func() {
		for {
			near, err := c.listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", socket)
			if err != nil {
				near.Close()
				continue
			}
			c.join(near, far)
		}
	}()
	return own
}

func (c *cut) join(near, far net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.severed {
		near.Close()
		far.Close()
		return
	}
	c.conns = append(c.conns, near, far)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			way[0].Close()
		}()
	}
}

// sever breaks every connection, and lets no other through.
func (c *cut) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.severed = true
	for _, conn := range c.conns {
		conn.Close()
	}
	c.listener.Close()
}
