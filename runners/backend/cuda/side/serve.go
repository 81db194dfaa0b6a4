package side

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// Socket is the descriptor on which a side process receives requests.
const Socket = 3

// Serve handles the judge's requests until the judge has gone.
func Serve(socket int) error {
	buffer := make([]byte, maxPacket)
	var first request
	if _, err := receive(socket, buffer, &first); err != nil {
		return err
	}
	if first.Setup == nil {
		return errors.New("a side is set up before anything else")
	}
	s := &server{setup: *first.Setup, read: make(chan struct{}), sets: map[int][]driver.Buffer{}, single: map[int]singleSlot{}, problems: map[int]*prepared{}}
	go func() { // while the context is created
		defer close(s.read)
		s.own, s.unread = Built{Manifest: s.setup.Own}.Joined(s.setup.Manifest)
	}()
	err := s.open(func() error {
		if err := send(socket, answer{}, nil); err != nil {
			return err
		}
		return s.loop(socket, buffer)
	})
	if err != nil && !errors.Is(err, errEnded) {
		return errors.Join(err, send(socket, answer{Error: err.Error()}, nil))
	}
	return nil
}

// A server is a side's process.
type server struct {
	setup    Setup
	own      *manifest.Manifest // that of the setup, once it is read
	unread   error              // why it could not be read
	read     chan struct{}      // closed when reading has ended
	manifest *manifest.Manifest // of the code that was loaded last
	ctx      *driver.Context
	stream   *driver.Stream
	from, to *driver.Event
	scratch  driver.Buffer // filling it flushes the L2
	kernel   *Kernel       // that was loaded last
	sets     map[int][]driver.Buffer
	single   map[int]singleSlot // by set
	sms      int                // of the GPU
	gate     *driver.Gate       // nil if the driver does not support gates
	problems map[int]*prepared
}

// prepared holds a problem's launches, one per slot, and the batch of them.
type prepared struct {
	kernel   *Kernel
	launches []func() error
	batch    func() error
	size     int
	// single makes a launch that runs alone, in a slot that was just mapped.
	single     func(slot driver.DevicePtr) (func() error, error)
	singleSlot singleSlot
}

// open creates the context. The context is never released: after a fault or an endless kernel the
// release could wait for ever, and the process ends anyway.
func (s *server) open(then func() error) error {
	d, err := driver.Open()
	if err != nil {
		return err
	}
	device, err := d.Device(0) // the same as the judge's
	if err != nil {
		return err
	}
	thread, err := device.NewThread()
	if err != nil {
		return err
	}
	return thread.Do(func(c *driver.Context) error {
		s.ctx = c
		if s.setup.Padding > 0 {
			if _, err := c.Alloc(s.setup.Padding); err != nil {
				return err
			}
		}
		if s.stream, err = c.NewStream(); err != nil {
			return err
		}
		if s.from, err = c.NewEvent(); err != nil {
			return err
		}
		if s.to, err = c.NewEvent(); err != nil {
			return err
		}
		p, err := device.Properties()
		if err != nil {
			return err
		}
		if s.sms = p.SMs; s.setup.Flush {
			if s.scratch, err = c.Alloc(max(2*int64(p.L2Bytes), 64<<20)); err != nil {
				return err
			}
			if s.gate, err = c.NewGate(); err != nil {
				return err
			}
		}
		return then()
	})
}

func (s *server) loop(socket int, buffer []byte) error {
	for {
		var r request
		files, err := receive(socket, buffer, &r)
		if err != nil {
			return err
		}
		a, err := s.do(r, files)
		if failed, ok := errors.AsType[*Failure](err); ok {
			a.Failure, err = &failed.Failure, nil
		}
		if err != nil {
			return err
		}
		if err := send(socket, a, nil); err != nil {
			return err
		}
	}
}

func (s *server) do(r request, files []*os.File) (a answer, err error) {
	switch {
	case r.Load != nil:
		if err := s.describe(*r.Load); err != nil {
			return a, fmt.Errorf("reading the manifest: %w", err)
		}
		if s.kernel, err = Load(s.ctx, s.stream, s.manifest, *r.Load, s.setup.Timeout); err != nil {
			return a, err
		}
		a.State = s.kernel.keeps()
		return a, s.stream.Synchronize()
	case r.Slots != nil:
		return a, s.addSlots(*r.Slots, files)
	case r.Problem != nil:
		return a, s.prepare(*r.Problem)
	case r.Ready != nil:
		return a, s.ready(*r.Ready)
	case r.Run != nil && r.Run.Single:
		took, err := s.runAlone(*r.Run)
		a.Nanos = took.Nanoseconds()
		return a, err
	case r.Run != nil:
		took, err := s.run(*r.Run)
		a.Nanos = took.Nanoseconds()
		return a, err
	case r.Rough != nil:
		took, err := s.rough(*r.Rough)
		a.Nanos = took.Nanoseconds()
		return a, err
	}
	return a, errors.New("the judge asks for nothing")
}

// describe reads the manifest of the code that is to be loaded.
func (s *server) describe(b Built) (err error) {
	if <-s.read; s.unread != nil {
		return s.unread
	}
	if s.manifest = s.own.Picked(b.Picks); b.Manifest != s.setup.Own {
		s.manifest, err = b.Joined(s.setup.Manifest)
	}
	s.manifest = s.manifest.On(s.sms)
	return err
}

// addSlots maps memory at addresses that nobody can guess. A launch that looked for its neighbours'
// inputs would have to touch unmapped addresses, and would fault.
func (s *server) addSlots(r slotSet, files []*os.File) error {
	if len(files) != r.Count {
		return fmt.Errorf("%d slots were announced and %d came", r.Count, len(files))
	}
	for _, f := range files {
		shared, err := s.ctx.Import(f, r.Size)
		f.Close()
		if err != nil {
			return err
		}
		at, err := s.ctx.Reserve(r.Size, randomAddress())
		if err != nil {
			return err
		}
		if r.Single {
			s.single[r.Set] = singleSlot{shared, at}
			continue
		}
		slot, err := s.ctx.MapAt(shared, at)
		if err != nil {
			return err
		}
		s.sets[r.Set] = append(s.sets[r.Set], slot)
	}
	return nil
}

// randomAddress returns an address within the range that a process has, aligned to the largest
// page.
func randomAddress() driver.DevicePtr {
	var random [8]byte
	rand.Read(random[:])
	return driver.DevicePtr(0x1000<<32|binary.NativeEndian.Uint64(random[:])%(0x4000<<32)) &^ (2<<20 - 1)
}

func (s *server) prepare(p Problem) error {
	serving, err := s.kernel.built.Serving(s.manifest, p.Dims)
	if err != nil {
		return err
	}
	outline, err := tensor.Outline(s.manifest, manifest.Shape{Dims: p.Dims}, serving.Toggles) // settings are the variant's
	if err != nil {
		return err
	}
	scratch, err := tensor.Scratch(s.manifest, serving.Variant, manifest.Shape{Dims: p.Dims}, serving.Toggles)
	if err != nil {
		return err
	}
	args, offsets := append(outline.Args, scratch...), append(p.Offsets, p.Scratch...)
	if len(args) != len(offsets) {
		return fmt.Errorf("the judge has places for %d arguments, and the launch takes %d", len(offsets), len(args))
	}
	ready := &prepared{kernel: s.kernel, size: p.Batch}
	for i, slot := range s.sets[p.Set] {
		if p.Share {
			i = 0
		}
		launch, err := s.kernel.Prepare(i, p.Dims, args, offsets, slot.Ptr)
		if err != nil {
			return err
		}
		ready.launches = append(ready.launches, launch)
	}
	s.problems[p.ID] = ready
	if slot, ok := s.single[p.Set]; ok && !p.Share {
		ready.singleSlot = slot
		ready.single = func(at driver.DevicePtr) (func() error, error) {
			return ready.kernel.Prepare(p.Batch, p.Dims, args, offsets, at)
		}
		// This loads what the code needs. The launch itself is made when its slot is mapped.
		if _, err := ready.single(s.sets[p.Set][0].Ptr); err != nil {
			return err
		}
	}
	if p.Batch > 1 {
		if ready.batch, err = s.graph(ready.launches[:p.Batch]...); err != nil {
			return err
		}
	}
	steps, err := s.kernel.steps(p.Dims)
	if err != nil {
		return err
	}
	// Queueing many steps one by one can take the host longer than the flush before them. The
	// measured time would then include the host's pauses.
	for i := 0; i < len(ready.launches) && len(steps) > 1; i++ {
		if ready.launches[i], err = s.graph(ready.launches[i]); err != nil {
			return err
		}
	}
	return s.stream.Synchronize()
}

// graph returns a function that starts the launches as one graph.
func (s *server) graph(launches ...func() error) (func() error, error) {
	graph, err := s.stream.Capture(func() error { return all(launches) })
	if err != nil {
		return nil, blame(err)
	}
	if err := graph.Upload(s.stream); err != nil {
		return nil, blame(err)
	}
	return func() error { return blame(graph.Launch(s.stream)) }, nil
}

func all(launches []func() error) error {
	for _, launch := range launches {
		if err := launch(); err != nil {
			return err
		}
	}
	return nil
}

// ready brings the GPU into the state in which every sample begins: without state of earlier
// launches if asked, and with nothing running.
func (s *server) ready(r ready) error {
	kernel := s.problems[r.Problem].kernel
	if r.Reset {
		if err := kernel.Reset(); err != nil {
			return err
		}
	}
	if r.Flush {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return kernel.Wait()
}

// run times launches between two events. If they are the whole batch it launches them as one graph,
// and otherwise one after the other.
func (s *server) run(r run) (time.Duration, error) {
	p := s.problems[r.Problem]
	launch := func() error { return all(p.launches[r.First : r.First+r.Count]) }
	if p.batch != nil && r.First == 0 && r.Count == p.size {
		launch = p.batch
	}
	if r.Flush {
		if err := s.flush(); err != nil {
			return 0, err
		}
	}
	if r.Filled {
		if err := s.holdBack(); err != nil {
			return 0, err
		}
	}
	return s.between(launch)
}

// holdBack lets the GPU wait until everything is queued, so that the measured time includes no pause of the host.
func (s *server) holdBack() error {
	if s.gate == nil {
		return nil
	}
	return s.gate.Close(s.stream)
}

// flush queues the work that empties the caches.
func (s *server) flush() error {
	if err := s.ctx.ResetPersistingL2(); err != nil {
		return err
	}
	return s.stream.Fill32(s.scratch, 1)
}

// between returns the time from an event before the launches to an event after them.
func (s *server) between(launch func() error) (time.Duration, error) {
	if err := s.from.Record(s.stream); err != nil {
		return 0, err
	}
	if err := launch(); err != nil {
		return 0, err
	}
	if err := s.to.Record(s.stream); err != nil {
		return 0, err
	}
	if s.gate != nil {
		s.gate.Open()
	}
	if err := s.kernel.Wait(); err != nil {
		return 0, err
	}
	took, err := s.to.Since(s.from)
	return took, blame(err)
}

// rough estimates the time of one launch: the shortest of a few runs of several launches.
func (s *server) rough(r run) (time.Duration, error) {
	const launches = 8
	launch := s.problems[r.Problem].launches[r.First]
	best := time.Duration(math.MaxInt64)
	for range 5 {
		start := time.Now()
		for range launches {
			if err := launch(); err != nil {
				return 0, err
			}
		}
		if err := s.kernel.Wait(); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start)/launches)
	}
	return best, nil
}
