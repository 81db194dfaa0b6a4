package cpu

import (
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// What a sample costs beside the kernel: a process, and its inputs.
func BenchmarkSample(b *testing.B) {
	w := built(b, include+"void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }")
	m := w.job.Manifest
	d, err := newDrawer(m, m.Shapes[1], nil)
	if err != nil {
		b.Fatal(err)
	}
	c, err := startChild(b.Context(), w.sides["candidate"].path, 64*d.layout.Size, 1, time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	defer c.close()
	if err := d.draw(distribution.Normal, make([]uint64, 64)); err != nil {
		b.Fatal(err)
	}
	for _, launches := range []int{0, 1, 64} {
		b.Run(map[int]string{0: "empty", 1: "single", 64: "batch"}[launches], func(b *testing.B) {
			var device time.Duration
			for b.Loop() {
				if f, err := c.ready(); f != nil || err != nil {
					b.Fatal(f, err)
				}
				c.memory.load(d.images[:launches])
				t, f, err := c.launch(d.layout.Size, launches)
				if f != nil || err != nil {
					b.Fatal(f, err)
				}
				device += t.Device
			}
			b.ReportMetric(float64(device.Nanoseconds())/float64(b.N*max(launches, 1)), "ns/launch")
		})
	}
}

func BenchmarkDraw(b *testing.B) {
	text, err := kernels.Shipped.ReadFile("sdpa_cpu/kernel.yaml")
	if err != nil {
		b.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		b.Fatal(err)
	}
	shape, _ := m.Shape("mission")
	d, err := newDrawer(m, shape, m.ToggleValues(m.DefaultVariant))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := d.draw(distribution.Normal, []uint64{1, 2, 3, 4}); err != nil {
			b.Fatal(err)
		}
	}
}
