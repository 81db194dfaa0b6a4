package driver

import (
	"errors"
	"fmt"
	"unsafe"
)

// A Graph is a recorded sequence of work that one launch starts: the host launches nothing between
// its kernels.
type Graph struct {
	d      *Driver
	handle uintptr
	nodes  int
}

// Capture records the work that the function queues on the stream, without running it, and makes it
// ready to launch. The function must not wait for anything.
func (s *Stream) Capture(record func() error) (*Graph, error) {
	const threadLocal = 1 // calls on other threads neither disturb the capture nor are recorded
	sym := &s.d.sym
	if code := sym.cuStreamBeginCapture.call(s.handle, threadLocal); code != success {
		return nil, s.d.newError(code, "beginning a capture")
	}
	recordErr := record()
	var template uintptr
	code := sym.cuStreamEndCapture.call(s.handle, uintptr(unsafe.Pointer(&template)))
	if template != 0 {
		defer sym.cuGraphDestroy.call(template)
	}
	if err := errors.Join(recordErr, s.d.check(code, "ending a capture")); err != nil {
		return nil, err
	}

	var nodes uint64
	if code := sym.cuGraphGetNodes.call(template, 0, uintptr(unsafe.Pointer(&nodes))); code != success {
		return nil, s.d.newError(code, "counting a graph's nodes")
	}
	g := &Graph{d: s.d, nodes: int(nodes)}
	if code := sym.cuGraphInstantiateWithFlags.call(uintptr(unsafe.Pointer(&g.handle)), template, 0); code != success {
		return nil, s.d.newError(code, fmt.Sprintf("instantiating a graph of %d nodes", nodes))
	}
	return g, nil
}

// Upload moves the graph to the GPU, so that the first launch costs as much as the others.
func (g *Graph) Upload(s *Stream) error {
	return g.d.check(g.d.sym.cuGraphUpload.call(g.handle, s.handle), fmt.Sprintf("uploading a graph of %d nodes", g.nodes))
}

// Launch queues the whole graph.
func (g *Graph) Launch(s *Stream) error {
	if code := g.d.sym.cuGraphLaunch.call(g.handle, s.handle); code != success {
		return g.d.newError(code, fmt.Sprintf("launching a graph of %d nodes", g.nodes))
	}
	return nil
}

// Close destroys the graph.
func (g *Graph) Close() error {
	return g.d.check(g.d.sym.cuGraphExecDestroy.call(g.handle), "destroying a graph")
}
