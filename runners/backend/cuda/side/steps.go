package side

import (
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// Prepare returns the n-th launch of a batch, with all of its steps, on arguments that lie at base.
// It does not run the launch. Scratch follows the arguments.
func (k *Kernel) Prepare(n int, dims manifest.Dims, args []tensor.Arg, offsets []int, base driver.DevicePtr) (func() error, error) {
	if len(k.parts) > 0 {
		part, err := k.part(dims)
		if err != nil {
			return nil, err
		}
		return part.Prepare(n, dims, args, offsets, base)
	}
	steps, err := k.steps(dims)
	if err != nil {
		return nil, err
	}
	kernels := 0
	for _, s := range steps {
		if s.Kernel() {
			kernels++
		}
	}
	codes, err := k.code(dims, kernels)
	if err != nil {
		return nil, err
	}
	var queue []func() error
	for _, s := range steps {
		code := k
		if s.Kernel() {
			code, codes = codes[0], codes[1:]
		}
		step, err := code.prepare(n, s, placed{n, dims, args, offsets, base})
		if err != nil {
			return nil, err
		}
		queue = append(queue, step)
	}
	return func() error { return all(queue) }, nil
}

// prepare is one step of the n-th launch of a batch.
func (k *Kernel) prepare(n int, s manifest.StepAt, p placed) (func() error, error) {
	switch {
	case s.Memset != "":
		return k.memset(s, p)
	case s.Copy != "":
		return k.copy(s, p)
	}
	if err := k.copies(n + 1); err != nil {
		return nil, err
	}
	return k.start(k.modules[min(n, len(k.modules)-1)], s, p)
}

// placed is a launch's arguments with their place.
type placed struct {
	launch  int // index in the batch
	dims    manifest.Dims
	args    []tensor.Arg
	offsets []int
	base    driver.DevicePtr
}

// with adds the scalars that only one step passes.
func (p placed) with(scalars []manifest.ScalarAt) placed {
	for _, s := range scalars {
		p.args, p.offsets = append(slices.Clip(p.args), tensor.Scalar(s.Name, s.DType, s.Value)), append(slices.Clip(p.offsets), 0)
	}
	return p
}

func (p placed) address(arg int) uint64 { return uint64(p.base) + uint64(p.offsets[arg]) }

// find returns the index of the argument with this name.
func (p placed) find(name string) (int, error) {
	i := slices.IndexFunc(p.args, func(a tensor.Arg) bool { return a.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("the launch names %s, which is neither an argument nor scratch", name)
	}
	return i, nil
}

// memset is a step that sets the bytes of an array.
func (k *Kernel) memset(s manifest.StepAt, p placed) (func() error, error) {
	i, err := p.find(s.Memset)
	if err != nil {
		return nil, err
	}
	array := driver.Buffer{Ptr: driver.DevicePtr(p.address(i)), Size: int64(p.args[i].Size())}
	return func() error { return blame(k.stream.Fill8(array, s.Value)) }, nil
}

// copy is a step that fills an array with the first elements of another.
func (k *Kernel) copy(s manifest.StepAt, p placed) (func() error, error) {
	from, err := p.find(s.Copy)
	if err != nil {
		return nil, err
	}
	to, err := p.find(s.To)
	if err != nil {
		return nil, err
	}
	size := int64(p.args[to].Size())
	if has := int64(p.args[from].Size()); has < size {
		return nil, fmt.Errorf("the launch copies %d bytes from %s, which has %d", size, s.Copy, has)
	}
	target, source := driver.Buffer{Ptr: driver.DevicePtr(p.address(to)), Size: size}, driver.Buffer{Ptr: driver.DevicePtr(p.address(from)), Size: size}
	return func() error { return blame(k.stream.CopyDevice(target, source)) }, nil
}

// start prepares a step that launches a kernel.
func (k *Kernel) start(m *module, s manifest.StepAt, p placed) (func() error, error) {
	fn := m.functions[s.Entry]
	if fn == nil {
		return nil, fmt.Errorf("the kernel %s was not built", s.Entry)
	}
	if k.built.Start != nil {
		s.Geometry = started(s.Geometry, *k.built.Start)
	}
	launch := driver.Launch{Grid: dim(s.Grid), Block: dim(s.Block), Shared: s.SharedMemory, Cooperative: s.Cooperative, Programmatic: s.Programmatic, Priority: s.Priority}
	if s.Carveout.Set {
		launch.Carveout = &s.Carveout.Percent
	}
	if s.Cluster != [3]int{1, 1, 1} {
		launch.Cluster = dim(s.Cluster)
	}
	// Only raise the limit: steps and shapes that need less must not lower it for those that need
	// more.
	if s.SharedMemory > max(48<<10, m.shared[s.Entry]) {
		if err := fn.AllowShared(s.SharedMemory); err != nil {
			return nil, blame(err)
		}
		m.shared[s.Entry] = s.SharedMemory
	}
	if s.Cooperative {
		if err := k.fits(fn, s, launch); err != nil {
			return nil, err
		}
	}
	list, err := k.parameters(s.Args, p.with(s.Scalars))
	if err == nil && k.built.Start != nil {
		err = k.addScratch(list, p.launch, s.Geometry)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return blame(fn.Launch(k.stream, launch, list)) }, nil
}

// fits refuses a cooperative launch whose blocks the GPU cannot hold at the same time. Its blocks
// would wait for others that never start.
func (k *Kernel) fits(fn *driver.Function, s manifest.StepAt, l driver.Launch) error {
	perSM, err := fn.BlocksAtOnce(l)
	if err != nil {
		return blame(err)
	}
	device, err := k.ctx.Device().Properties()
	if err != nil {
		return err
	}
	return tooLarge(s, perSM, device.SMs)
}

func tooLarge(s manifest.StepAt, perSM, sms int) error {
	blocks := s.Grid[0] * s.Grid[1] * s.Grid[2]
	if blocks <= perSM*sms {
		return nil
	}
	return &Failure{gates.Failure{Kind: gates.FailureLaunch, Detail: fmt.Sprintf(
		"the cooperative launch of %s has %d blocks, and the GPU holds %d of them at once (%d on each of %d SMs): make its grid smaller, or its blocks need less", s.Entry, blocks, perSM*sms, perSM, sms)}}
}

// parameters returns the parameters of a kernel launch: the named arguments, or, without names, all
// arguments that are not part of a struct.
func (k *Kernel) parameters(names []string, p placed) (*driver.Args, error) {
	list := &driver.Args{}
	if s := k.built.Start; s != nil && s.Passed != nil {
		var args []tensor.Arg
		var places []int // of what the kernel is passed among all arguments
		for _, name := range names {
			i, err := p.find(name)
			if err != nil {
				return nil, err
			}
			args, places = append(args, p.args[i]), append(places, i)
		}
		address := func(i int) uint64 { return p.address(places[i]) }
		return list, pass(list, s.Passed, args, address, func(i int, d toolchain.Descriptor) ([][]byte, error) { return k.descriptor(places[i], d, p) })
	}
	if names == nil {
		for i, a := range p.args {
			if !a.Inside {
				if err := k.parameter(list, i, p); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, name := range names {
		i, err := p.find(name)
		if err == nil {
			err = k.parameter(list, i, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (k *Kernel) parameter(list *driver.Args, i int, p placed) error {
	a, at := p.args[i], driver.DevicePtr(p.address(i))
	switch {
	case !a.Array():
		value := a.Passed(p.args, p.address)
		for _, part := range a.Parts {
			if !part.TensorMap {
				continue
			}
			m, err := k.tensorMap(&k.manifest.Arguments[part.Arg], p.dims, driver.DevicePtr(p.address(part.Arg)))
			if err != nil {
				return err
			}
			copy(value[part.Offset:], m[:])
		}
		list.Bytes(value, a.Alignment())
	case k.maps && i < len(k.manifest.Arguments) && k.manifest.Arguments[i].TensorMap != nil:
		m, err := k.tensorMap(&k.manifest.Arguments[i], p.dims, at)
		if err != nil {
			return err
		}
		list.TensorMap(m)
	default:
		list.Pointer(at)
	}
	return nil
}

func dim(d [3]int) driver.Dim { return driver.Dim{X: uint32(d[0]), Y: uint32(d[1]), Z: uint32(d[2])} }
