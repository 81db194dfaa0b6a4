package oracle

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A ScratchImage is a side's scratch as it is before a launch: litter, and guards around it. It lies
// behind the arguments in each of the side's slots. All launches find the same, so there is one
// copy of it; a side without scratch has an empty one.
type ScratchImage struct {
	o      *Oracle
	layout tensor.Layout
	spans  []byte
	image  driver.Buffer
	first  driver.Buffer // of Touched
	at     Places
}

// NewScratchImage makes a side's scratch ready for slots in which it begins at these addresses.
func (o *Oracle) NewScratchImage(scratch []tensor.Arg, addresses []driver.DevicePtr, rng *rand.Rand) (*ScratchImage, error) {
	t := &ScratchImage{o: o}
	if len(scratch) == 0 {
		return t, nil
	}
	t.layout = tensor.NewLayout(scratch, 0)
	var err error
	if t.spans, err = spansOf(scratch, t.layout); err != nil {
		return nil, err
	}
	slot := make([]byte, t.layout.Size)
	t.layout.Fill(slot, scratch)
	for i, a := range scratch {
		tensor.Litter(a.DType, t.layout.Array(slot, i), rng)
	}
	if t.image, err = o.upload(slot); err != nil {
		return nil, err
	}
	return t.At(addresses)
}

// At is the same scratch at other addresses.
func (t *ScratchImage) At(addresses []driver.DevicePtr) (*ScratchImage, error) {
	other := &ScratchImage{o: t.o, layout: t.layout, spans: t.spans, image: t.image}
	if t.empty() {
		return other, nil
	}
	var err error
	if other.at, err = t.o.NewPlaces(addresses); err != nil {
		return nil, err
	}
	return other, t.o.reserve(&other.first, int64(8*len(addresses)))
}

// Free gives the image's memory back.
func (t *ScratchImage) Free() error {
	if t.empty() {
		return nil
	}
	c := t.o.ctx
	return errors.Join(c.Free(t.image), c.Free(t.first), t.o.free(t.at))
}

func (t *ScratchImage) empty() bool { return t.layout.Size == 0 }

// Scatter poisons the scratch of the first so many slots.
func (t *ScratchImage) Scatter(slots int) error {
	return t.scatter(0, slots)
}

// ScatterOne poisons the scratch of one slot.
func (t *ScratchImage) ScatterOne(slot int) error { return t.scatter(slot, 1) }

func (t *ScratchImage) scatter(from, slots int) error {
	if t.empty() {
		return nil
	}
	size := uint64(t.layout.Size)
	return t.o.run("scatter", t.layout.Size/16, slots, new(driver.Args).Pointer(t.image.Ptr).Uint64(0).Uint64(size).
		Pointer(t.at.Slice(from, slots).table.Ptr).Uint64(uint64(slots)))
}

// Touched tells for each of the first so many slots whether a kernel wrote beside the scratch.
func (t *ScratchImage) Touched(slots int) ([]bool, error) {
	outside := make([]bool, slots)
	if t.empty() {
		return outside, nil
	}
	if err := t.o.stream.Fill8(t.first, 0xFF); err != nil {
		return nil, err
	}
	size := uint64(t.layout.Size)
	if err := t.o.run("untouched", t.layout.Size/16, slots, new(driver.Args).Pointer(t.image.Ptr).Uint64(0).Uint64(size).Pointer(t.at.table.Ptr).
		Bytes(t.spans, 8).Pointer(t.first.Ptr)); err != nil {
		return nil, err
	}
	found := make([]byte, 8*slots)
	if err := t.o.stream.ToHost(found, t.first); err != nil {
		return nil, err
	}
	for i := range outside {
		outside[i] = le.Uint64(found[8*i:]) != noByte
	}
	return outside, nil
}

// spansOf is where a kernel may write, as the device code's struct Spans.
func spansOf(args []tensor.Arg, l tensor.Layout) ([]byte, error) {
	spans := []uint64{0}
	for i, a := range args {
		if a.Array() && a.Writes() {
			spans[0]++
			spans = append(spans, uint64(l.Offsets[i]), uint64(l.Offsets[i]+a.Size()))
		}
	}
	if spans[0] > maxOutputs {
		return nil, fmt.Errorf("the kernel writes %d arrays: at most %d are looked at", spans[0], maxOutputs)
	}
	return words(append(spans, make([]uint64, 1+2*maxOutputs-len(spans))...)...), nil
}
