package cpu

import (
	"cmp"
	"runtime"
	"sync"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A drawer makes the inputs of one shape, as images of the slots that they are launched in. It has
// one image for each launch of a batch, and reuses them.
type drawer struct {
	manifest *manifest.Manifest
	shape    manifest.Shape
	toggles  map[string]int
	args     []tensor.Arg // of some input: the parts that all inputs share
	layout   layout

	recordings tensor.Recordings

	images [][]byte
	dist   distribution.Kind
	seeds  []uint64
}

func newDrawer(m *manifest.Manifest, shape manifest.Shape, toggles map[string]int) (*drawer, error) {
	p, err := tensor.NewProblem(m, shape, toggles, distribution.Zero, 0)
	if err != nil {
		return nil, err
	}
	return &drawer{manifest: m, shape: shape, toggles: toggles, args: p.Args, layout: layoutOf(p.Args)}, nil
}

func (d *drawer) problem(dist distribution.Kind, seed uint64) (*tensor.Problem, error) {
	return d.recordings.Problem(d.manifest, d.shape, d.toggles, dist, seed)
}

// draw makes an input for every seed, on all processors.
func (d *drawer) draw(dist distribution.Kind, seeds []uint64) error {
	d.dist, d.seeds = dist, seeds
	for len(d.images) < len(seeds) {
		d.images = append(d.images, make([]byte, d.layout.Size))
	}
	return each(len(seeds), func(i int) error {
		p, err := d.problem(dist, seeds[i])
		if err == nil {
			d.layout.image(d.images[i], i*d.layout.Size, p.Args)
		}
		return err
	})
}

// slot returns the part of a memory that one launch uses.
func (d *drawer) slot(m *memory, launch int) []byte {
	return m.data[launch*d.layout.Size : (launch+1)*d.layout.Size]
}

// each calls a function for every number below n, on all processors, and returns the first error by
// number.
func each(n int, do func(int) error) error {
	errs := make([]error, n)
	workers := min(runtime.GOMAXPROCS(0), n)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				errs[i] = do(i)
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}
