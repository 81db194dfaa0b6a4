package toolchain

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A Handover is machine code on its way from a host that compiles to one that measures: a folder
// with an entry for each build, in the form of a Cache. An entry is named by a hash of everything
// that the build depends on. The receiver computes the hash from its own copy of the sources, its
// own compilers and its own flags, so a build of anything else is not found, and is compiled again.
// The rules for cubins reject what a compiler would not have made.
//
// The receiver trusts the content of matching entries. They serve only the job that they came with,
// and never get into a Cache.
type Handover struct {
	Dir   string
	Gives bool         // builds are written to the folder; otherwise they are read from it
	Log   *slog.Logger // reports builds that cannot be written or read, which costs time but no result; may be nil

	taken atomic.Int64
}

// Taken returns how many builds were not compiled here.
func (h *Handover) Taken() int { return int(h.taken.Load()) }

func (h *Handover) takes() bool { return h != nil && !h.Gives }

func (h *Handover) entries() *Cache { return &Cache{Dir: h.Dir, Log: h.Log} }

// give adds the output of a compiler. A refusal is not handed over: the host that measures finds it
// again.
func (h *Handover) give(key string, o nvccOutput) {
	if h == nil || !h.Gives || o.Refusal != "" || exists(filepath.Join(h.Dir, key)) {
		return
	}
	if err := errors.Join(os.MkdirAll(h.Dir, 0o755), h.entries().store(key, o)); err != nil {
		h.entries().warn("handing a build on", err)
	}
}

// take finds the output of exactly this build.
func (h *Handover) take(key string) (nvccOutput, bool) {
	if !h.takes() {
		return nvccOutput{}, false
	}
	o, ok := h.entries().load(key)
	return o, ok && o.Refusal == "" && len(o.Image) <= maxImage
}

// handed returns the build of another host; nil if there is none, or none that can be used.
func (c *CUDA) handed(b NVCCBuild, path string) *Cubin {
	if !c.Handover.takes() {
		return nil
	}
	entries, err := b.entries()
	if err != nil {
		return nil // the compilation reports it
	}
	cubin, err := c.readHanded(b)
	if _, absent := errors.AsType[*absentEntry](err); absent && b.markers == "" && !b.isPTX() {
		if b.markers = markerSource(entries); b.markers != "" {
			cubin, err = c.readHanded(b)
		}
	}
	if err == nil && cubin != nil {
		err = os.WriteFile(path, cubin.Image, 0o644)
	}
	if err != nil {
		c.Handover.entries().warn(fmt.Sprintf("what was handed on of %s for %s is compiled here", b.Source, b.Arch), err)
		return nil
	}
	if cubin != nil {
		c.Handover.taken.Add(1)
		cubin.Path, cubin.Cached = path, true
	}
	return cubin
}

func (c *CUDA) readHanded(b NVCCBuild) (*Cubin, error) {
	key, err := c.cacheKey(b)
	if err != nil {
		return nil, err
	}
	if o, ok := c.Handover.take(key); ok {
		return o.read(b)
	}
	return nil, nil
}

// hand passes on a build that was compiled or found in the cache.
func (c *CUDA) hand(b NVCCBuild, o nvccOutput) {
	if c.Handover == nil || !c.Handover.Gives || b.Once {
		return
	}
	key, err := c.cacheKey(b)
	if err != nil {
		c.Handover.entries().warn("handing a build on", err)
		return
	}
	c.Handover.give(key, o)
}

// handed returns what another host built for a kind.
func (t *Triton) handed(b TritonBuild, kind manifest.Special) (nvccOutput, bool) {
	if !t.Handover.takes() {
		return nvccOutput{}, false
	}
	key, err := t.handKey(b, kind)
	if err != nil {
		return nvccOutput{}, false // the compilation reports it
	}
	o, ok := t.Handover.take(key)
	if !ok {
		return o, false
	}
	if _, err := o.readTriton(b, kind); err != nil {
		t.Handover.entries().warn(fmt.Sprintf("what was handed on of %s for %s is compiled here", b.Source, b.Arch), err)
		return o, false
	}
	t.Handover.taken.Add(1)
	return o, true
}

// hand passes on the builds of all kinds that were compiled or found in the cache.
func (t *Triton) hand(b TritonBuild, made []nvccOutput) {
	if t.Handover == nil || !t.Handover.Gives || b.Once {
		return
	}
	for i, kind := range b.Kinds {
		key, err := t.handKey(b, kind)
		if err != nil {
			t.Handover.entries().warn("handing a build on", err)
			return
		}
		t.Handover.give(key, made[i])
	}
}
