// Package oracle is the judge's own work on the GPU: it draws inputs into slots,
// lays them out in the memory of the sides, and compares what they wrote with
// each other and with the reference. Its context holds nothing that a change's
// code could reach. It draws the same bytes as package tensor does on the host.
package oracle

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// Source is the device code, to be compiled with Flags. Entry is one of its
// kernels.
//
//go:embed oracle.cu
var Source []byte

// Entry is one of the kernels, for compilers that want to know one.
const Entry = "draw"

// Flags keep products and sums apart, as the host rounds them.
func Flags() []string { return []string{"-O3", "-fmad=false"} }

// An Oracle is the loaded device code.
type Oracle struct {
	ctx     *driver.Context
	stream  *driver.Stream
	kernels map[string]*driver.Function
	// Recordings are those that inputs may come from.
	Recordings tensor.Recordings
	uploaded   map[recordedInput]driver.Buffer // their values

	drawn   driver.Buffer // values on their way to being quantised
	partial driver.Buffer // of compare
	sums    driver.Buffer
	widened driver.Buffer // an input on its way to the host
}

// Load puts the device code onto the GPU.
func Load(c *driver.Context, s *driver.Stream, image []byte) (*Oracle, error) {
	module, err := c.LoadModule(image)
	if err != nil {
		return nil, fmt.Errorf("loading the judge's own kernels: %w", err)
	}
	o := &Oracle{ctx: c, stream: s, kernels: map[string]*driver.Function{}, uploaded: map[recordedInput]driver.Buffer{}}
	for _, name := range []string{"find_maxima", "draw", "write_scales", "widen", "scatter", "fill_cache", "untouched", "compare", "gather"} {
		if o.kernels[name], err = module.Function(name); err != nil {
			return nil, fmt.Errorf("loading the judge's own kernels: %w", err)
		}
	}
	return o, nil
}

// A recordedInput is an argument of a recording.
type recordedInput struct {
	kind distribution.Kind
	name string
}

const blockThreads = 128

// run launches a kernel over so many items of each of so many launches.
func (o *Oracle) run(name string, items, launches int, args *driver.Args) error {
	blocks := min(max((items+blockThreads-1)/blockThreads, 1), 1024)
	return o.kernels[name].Launch(o.stream, driver.Launch{Grid: driver.Dim{X: uint32(blocks), Y: uint32(launches)}, Block: driver.Dim{X: blockThreads}}, args)
}

// words writes 64-bit values as they lie in a struct or an array of the device's.
func words(values ...uint64) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	return out
}

// Places is a table of addresses on the GPU, one for each launch, or of several
// sides' launches one behind the other.
type Places struct {
	table driver.Buffer
	count int
}

// NewPlaces uploads addresses.
func (o *Oracle) NewPlaces(addresses []driver.DevicePtr) (Places, error) {
	var list []uint64
	for _, a := range addresses {
		list = append(list, uint64(a))
	}
	b, err := o.upload(words(list...))
	return Places{b, len(addresses)}, err
}

// Slice is some neighbours of the table.
func (p Places) Slice(from, count int) Places {
	return Places{p.table.Slice(8*int64(from), 8*int64(count)), count}
}

// FillCache reads the first bytes of every place, so that the L2 cache has them, as far as it has room.
func (o *Oracle) FillCache(at Places, bytes int) error {
	const sector = 32
	if err := o.run("fill_cache", bytes/sector, at.count, new(driver.Args).Uint64(uint64(bytes)).Pointer(at.table.Ptr)); err != nil {
		return fmt.Errorf("filling the cache: %w", err)
	}
	return o.stream.Synchronize()
}

// free gives the table back.
func (o *Oracle) free(p Places) error { return o.ctx.Free(p.table) }

func (o *Oracle) upload(data []byte) (driver.Buffer, error) {
	b, err := o.ctx.Alloc(int64(len(data)))
	if err != nil {
		return b, err
	}
	return b, o.stream.ToDevice(b, data)
}

// reserve replaces a buffer that has fewer bytes than are needed.
func (o *Oracle) reserve(old *driver.Buffer, bytes int64) error {
	if old.Size >= bytes {
		return nil
	}
	if old.Size > 0 {
		if err := o.ctx.Free(*old); err != nil {
			return err
		}
	}
	var err error
	*old, err = o.ctx.Alloc(bytes)
	return err
}

// code is a format's or a distribution's number in the device code: its place in
// the list.
func code[S comparable](list []S, of S) uint64 { return uint64(slices.Index(list, of)) }
