package oracle

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A InputBatch is the slots of a batch as they are before anything ran: inputs, guards
// and poison, in the judge's own memory.
type InputBatch struct {
	o        *Oracle
	problem  *tensor.Problem
	Layout   tensor.Layout
	Launches int
	slots    driver.Buffer
	keys     driver.Buffer
	orders   driver.Buffer // of the axes of recorded inputs
	maxima   driver.Buffer
	first    driver.Buffer // of Touched
	inputs   []input
	dist     distribution.Kind
	seeds    []uint64
}

// An input is one argument that is drawn, with its place in the tables.
type input struct {
	arg    int
	member int // of an array of structs; -1 elsewhere
	key    int // in words, in a launch's part of keys
	maxima int // in words, of all launches
	groups int
}

const span = 8 // of the device code

const (
	keyWords   = 3           // a key, and what dominant rows follow from; of a recording, whether it gets noise
	orderWords = 2 * maxAxes // a key for each axis
)

// NewInputBatch makes room for a batch.
func (o *Oracle) NewInputBatch(p *tensor.Problem, launches int) (*InputBatch, error) {
	s := &InputBatch{o: o, problem: p, Layout: tensor.NewLayout(p.Args, 0), Launches: launches}
	maxima := 0
	for i, a := range p.Args {
		if !a.Array() || !a.Reads() || a.IsScale {
			continue
		}
		for k := range a.Members {
			s.inputs = append(s.inputs, input{arg: i, member: k, key: keyWords * len(s.inputs), maxima: maxima})
		}
		if a.Members != nil {
			continue
		}
		in := input{arg: i, member: -1, key: keyWords * len(s.inputs), maxima: maxima}
		if a.Scales >= 0 {
			in.groups = a.Groups.Groups
			maxima += in.groups * launches
			if err := o.reserve(&o.drawn, int64(8*a.Elements*launches)); err != nil {
				return nil, err
			}
		}
		if len(a.Groups.Lengths) > maxAxes {
			return nil, fmt.Errorf("argument %s has scales over %d axes: at most %d are drawn", a.Name, len(a.Groups.Lengths), maxAxes)
		}
		s.inputs = append(s.inputs, in)
	}
	for _, want := range []struct {
		buffer *driver.Buffer
		bytes  int
	}{{&s.slots, s.Layout.Size * launches}, {&s.keys, 8 * keyWords * len(s.inputs) * launches}, {&s.orders, 8 * orderWords * len(s.inputs) * launches}, {&s.maxima, 8 * maxima}, {&s.first, 8 * launches}} {
		if err := o.reserve(want.buffer, int64(max(want.bytes, 8))); err != nil {
			return nil, err
		}
	}
	if err := s.poison(); err != nil {
		return nil, err
	}
	for i := 1; i < launches; i++ {
		if err := o.stream.CopyDevice(s.slot(i), s.slot(0)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// poison makes the first slot what [tensor.Layout.Fill] makes it on the host.
func (s *InputBatch) poison() error {
	slot := s.slot(0)
	for _, f := range fills(s.Layout, s.problem.Args) {
		part := slot.Slice(int64(f.at), int64(f.size))
		switch whole := part.Size / 4 * 4; {
		case f.data != nil:
			if err := s.o.stream.ToDevice(part, f.data); err != nil {
				return err
			}
		case f.word&0xFF*0x01010101 == f.word:
			if err := s.o.stream.Fill8(part, uint8(f.word)); err != nil {
				return err
			}
		default:
			if err := s.o.stream.Fill32(part.Slice(0, whole), f.word); err != nil {
				return err
			}
			if rest := part.Slice(whole, part.Size-whole); rest.Size > 0 {
				if err := s.o.stream.ToDevice(rest, le.AppendUint32(nil, f.word)[:rest.Size]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// A fill is a part of a slot that one word fills, or some data.
type fill struct {
	at, size int
	word     uint32
	data     []byte
}

// fills is how a slot is filled, later parts over earlier ones.
func fills(l tensor.Layout, args []tensor.Arg) []fill {
	all := []fill{{size: l.Size, word: tensor.GuardByte * 0x01010101}}
	for i, a := range args {
		if !a.Array() || a.Size() == 0 {
			continue
		}
		f := fill{at: l.Offsets[i], size: a.Size()}
		switch {
		case a.Reads():
		case a.Members != nil:
			f.data = make([]byte, f.size)
			a.Poison(f.data)
		default:
			var word [8]byte // no format is larger, and the halves of the poison of each are equal
			tensor.Poison(a.DType, word[:])
			f.word = le.Uint32(word[:])
		}
		if all = append(all, f); a.Reads() && len(a.Bytes) > 0 {
			all = append(all, fill{at: f.at, size: len(a.Bytes), data: a.Bytes})
		}
	}
	return all
}

// Free gives the batch's memory back.
func (s *InputBatch) Free() error {
	c := s.o.ctx
	return errors.Join(c.Free(s.slots), c.Free(s.keys), c.Free(s.orders), c.Free(s.maxima), c.Free(s.first))
}

// slot is one launch's part of the batch.
func (s *InputBatch) slot(launch int) driver.Buffer {
	return s.slots.Slice(int64(launch*s.Layout.Size), int64(s.Layout.Size))
}

const maxAxes = 8

// of is the array that an input is: an argument, or a member of one.
func (s *InputBatch) of(in input) tensor.Arg {
	if in.member >= 0 {
		return s.problem.Args[in.arg].Members[in.member]
	}
	a := s.problem.Args[in.arg]
	a.Count = max(a.Elements, 1) // all of it is one struct
	return a
}

// spec is the device code's struct Draw for an input of the launches from one on.
func (s *InputBatch) spec(in input, launch int) []byte {
	a := s.of(in)
	rows, columns := tensor.Matrix(a.Shape)
	quantized, largest := uint64(0), float32(0)
	if a.Scales >= 0 {
		quantized = 1
		largest, _ = tensor.QuantizedLimit(a.DType) // quantised by it already, or the manifest was refused
	}
	group := make([]uint64, 2+2*maxAxes)
	group[0], group[1] = uint64(max(a.Groups.Run, 1)), uint64(len(a.Groups.Lengths))
	for i := range a.Groups.Lengths {
		group[2+i], group[2+maxAxes+i] = uint64(a.Groups.Lengths[i]), uint64(a.Groups.Strides[i])
	}
	perLaunch := uint64(keyWords * len(s.inputs))
	return append(words(
		uint64(s.slot(launch).Ptr), uint64(s.Layout.Size), uint64(s.Layout.Offsets[in.arg]+a.Offset),
		uint64(a.Elements), code(manifest.DTypes(), a.DType), code(manifest.Drawings(), s.kindOf(a)),
		uint64(rows), uint64(columns),
		uint64(s.keys.Ptr)+8*(uint64(launch)*perLaunch+uint64(in.key)), perLaunch,
		quantized, uint64(s.o.drawn.Ptr), uint64(s.maxima.Ptr)+8*uint64(in.maxima+launch*in.groups), uint64(in.groups),
		math.Float64bits(float64(largest)),
	), slices.Concat(fillingWords(a), words(group...), s.recordedWords(in, launch))...)
}

// kindOf is how an argument is drawn. What a recording does not have is drawn as normal inputs are.
func (s *InputBatch) kindOf(a tensor.Arg) distribution.Kind {
	if s.dist.FromRecording() {
		return a.Distribution(distribution.Normal)
	}
	return a.Distribution(s.dist)
}

// recordedWords is the part of struct Draw that says how an input comes from a recording.
func (s *InputBatch) recordedWords(in input, launch int) []byte {
	a, all := s.of(in), make([]uint64, 4+1+2*maxAxes+2)
	r := s.o.Recordings[s.dist]
	if r == nil {
		return words(all...)
	}
	on, ok := r.On(a)
	if !ok || in.member >= 0 {
		return words(all...)
	}
	all[0] = uint64(s.o.uploaded[recordedInput{s.dist, a.Name}].Ptr)
	all[1], all[2], all[3] = math.Float64bits(on.Noise), math.Float64bits(on.Least), math.Float64bits(on.Most)
	all[4] = uint64(len(a.Shape))
	for axis, n := range a.Shape {
		all[5+axis] = uint64(n)
		if on.Shuffled[axis] {
			all[5+maxAxes+axis] = 1
		}
	}
	perLaunch := uint64(orderWords * len(s.inputs))
	place := slices.IndexFunc(s.inputs, func(o input) bool { return o.arg == in.arg && o.member == in.member })
	all[5+2*maxAxes] = uint64(s.orders.Ptr) + 8*(uint64(launch)*perLaunch+uint64(orderWords*place))
	all[6+2*maxAxes] = perLaunch
	return words(all...)
}

// keysOf returns the keys of an input of a launch, and those of its axes.
func (s *InputBatch) keysOf(in input, seed uint64) (keys, orders []uint64) {
	a := s.of(in)
	orders = make([]uint64, orderWords)
	r := s.o.Recordings[s.dist]
	if r != nil && in.member < 0 {
		if _, ok := r.On(a); ok {
			for axis, key := range r.OrderKeys(a, seed) {
				orders[2*axis], orders[2*axis+1] = key[0], key[1]
			}
			key, noise := r.NoiseKey(a, seed), uint64(1)
			if seed == 0 {
				noise = 0
			}
			return []uint64{key[0], key[1], noise}, orders
		}
	}
	key := tensor.KeyOf(s.kindOf(a), seed, a.Name, a.Shape)
	return []uint64{key[0], key[1], tensor.DominantKey(seed)}, orders
}

// upload puts the values of a recording onto the GPU, once.
func (s *InputBatch) upload() error {
	if !s.dist.FromRecording() {
		return nil
	}
	r := s.o.Recordings[s.dist]
	if r == nil {
		return fmt.Errorf("there is no recording for %s inputs", s.dist)
	}
	for _, in := range s.inputs {
		a := s.of(in)
		on, ok := r.On(a)
		at := recordedInput{s.dist, a.Name}
		if _, there := s.o.uploaded[at]; there || !ok || in.member >= 0 {
			continue
		}
		if len(on.Values) != a.Elements {
			return fmt.Errorf("%s inputs have %d elements of %s, and this shape %d", s.dist, len(on.Values), a.Name, a.Elements)
		}
		data := make([]byte, 8*max(1, len(on.Values)))
		tensor.Encode(manifest.F64, data[:8*len(on.Values)], on.Values)
		b, err := s.o.upload(data)
		if err != nil {
			return fmt.Errorf("putting %s inputs onto the GPU: %w", s.dist, err)
		}
		s.o.uploaded[at] = b
	}
	return nil
}

// fillingWords is the part of struct Draw that says how a member lies and how it is filled.
func fillingWords(a tensor.Arg) []byte {
	f := a.Filling
	flag := func(is bool) uint64 {
		if is {
			return 1
		}
		return 0
	}
	width := max(a.Elements, 1)
	if f.Rows {
		width = a.Shape[len(a.Shape)-1]
	}
	real := math.Float64bits
	return words(uint64(a.Count), uint64(a.Pitch), flag(f.Exact()), flag(f.Bounded), real(f.Least), real(f.Most), real(f.Scale),
		real(f.Total), real(f.Lengths[0]), real(f.Lengths[1]), real(f.Share), flag(f.WholeRows), uint64(width))
}

// Draw puts the inputs of one seed a launch onto the batch.
func (s *InputBatch) Draw(dist distribution.Kind, seeds []uint64) error {
	s.dist, s.seeds = dist, seeds
	if err := s.upload(); err != nil {
		return err
	}
	var keys, orders []uint64
	for _, seed := range seeds {
		for _, in := range s.inputs {
			key, order := s.keysOf(in, seed)
			keys, orders = append(keys, key...), append(orders, order...)
		}
	}
	if err := s.o.stream.ToDevice(s.keys, words(keys...)); err != nil {
		return err
	}
	if dist.FromRecording() {
		if err := s.o.stream.ToDevice(s.orders, words(orders...)); err != nil {
			return err
		}
	}
	if err := s.o.stream.Fill8(s.maxima, 0); err != nil {
		return err
	}
	for _, in := range s.inputs {
		a := s.of(in)
		args := func() *driver.Args { return new(driver.Args).Bytes(s.spec(in, 0), 8) }
		if a.Scales >= 0 {
			if err := s.o.run("find_maxima", a.Elements/2/span, len(seeds), args()); err != nil {
				return err
			}
			scale := s.problem.Args[a.Scales]
			offset := uint64(s.Layout.Offsets[a.Scales])
			if err := s.o.run("write_scales", in.groups, len(seeds), args().Uint64(offset).Uint64(code(manifest.DTypes(), scale.DType))); err != nil {
				return err
			}
		}
		if err := s.o.run("draw", a.Elements/2, len(seeds), args()); err != nil {
			return err
		}
	}
	return nil
}

// Scatter copies the batch's first slots to their places, once for every side
// that the table holds.
func (s *InputBatch) Scatter(to Places, launches int) error {
	return s.o.run("scatter", s.Layout.Size/16, to.count, new(driver.Args).Pointer(s.slots.Ptr).Uint64(uint64(s.Layout.Size)).
		Uint64(uint64(s.Layout.Size)).Pointer(to.table.Ptr).Uint64(uint64(launches)))
}

// Touched finds what a kernel wrote and must not have: for each launch the input's
// name, or "" and true where it wrote outside its arguments.
func (s *InputBatch) Touched(at Places) ([]Touch, error) {
	if err := s.o.stream.Fill8(s.first, 0xFF); err != nil {
		return nil, err
	}
	spans, err := spansOf(s.problem.Args, s.Layout)
	if err != nil {
		return nil, err
	}
	if err := s.o.run("untouched", s.Layout.Size/16, at.count, new(driver.Args).Pointer(s.slots.Ptr).Uint64(uint64(s.Layout.Size)).
		Uint64(uint64(s.Layout.Size)).Pointer(at.table.Ptr).Bytes(spans, 8).Pointer(s.first.Ptr)); err != nil {
		return nil, err
	}
	found := make([]byte, 8*at.count)
	if err := s.o.stream.ToHost(found, s.first); err != nil {
		return nil, err
	}
	touched := make([]Touch, at.count)
	for i := range touched {
		touched[i] = s.touch(le.Uint64(found[8*i:]))
	}
	return touched, nil
}

const maxOutputs = 16

// noByte is what the device code finds where nothing was written.
const noByte = math.MaxUint64

// A Touch is what a kernel wrote beside its outputs.
type Touch struct {
	Input   string // by name
	Outside bool   // beyond its arguments
}

func (s *InputBatch) touch(at uint64) Touch {
	if at == noByte {
		return Touch{}
	}
	for i, a := range s.problem.Args {
		if from := uint64(s.Layout.Offsets[i]); a.Array() && at >= from && at < from+uint64(a.Size()) {
			return Touch{Input: a.Name}
		}
	}
	return Touch{Outside: true}
}

// Read copies one launch's input to the host as the reference sees it: real numbers, in a format that holds them exactly. With
// original, they are what they were before they were quantised.
func (s *InputBatch) Read(launch int, in tensor.Seen, format manifest.DType, original bool, to []byte) error {
	if len(to) == 0 {
		return nil
	}
	if err := s.o.reserve(&s.o.widened, int64(len(to))); err != nil {
		return err
	}
	if err := s.Widen(launch, in, format, original, s.o.widened); err != nil {
		return err
	}
	if err := s.o.stream.ToHost(to, s.o.widened); err != nil {
		return fmt.Errorf("reading the input %s back: %w", in.Name, err)
	}
	return nil
}

// Widen writes the same to memory of the GPU.
func (s *InputBatch) Widen(launch int, seen tensor.Seen, format manifest.DType, original bool, to driver.Buffer) error {
	if seen.Elements == 0 {
		return nil
	}
	at := slices.IndexFunc(s.inputs, func(in input) bool { return in.arg == seen.Of && in.member == seen.Member })
	if at < 0 {
		return fmt.Errorf("the input %s is not drawn", seen.Name)
	}
	flag := uint64(0)
	if original {
		flag = 1
	}
	args := new(driver.Args).Bytes(s.spec(s.inputs[at], launch), 8).Pointer(to.Ptr).Uint64(uint64(to.Size)).Uint64(0).
		Uint64(code(manifest.DTypes(), format)).Uint64(flag)
	return s.o.run("widen", seen.Elements/2, 1, args)
}
