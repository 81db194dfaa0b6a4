package manifest

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// What CUDA allows on every architecture that is read here.
const (
	maxGridX   = 1<<31 - 1
	maxGridYZ  = 65535
	maxThreads = 1024
	maxShared  = 227 << 10
	maxBlockZ  = 64
	maxCluster = 8

	minPriority = -5
	maxPercent  = 100
)

// A Launch says how a CUDA kernel is launched, or several in order.
type Launch struct {
	Start
	Steps []Step `yaml:"steps" eg:"[{entry: split, grid: [S], block: [128], args: [q, partial]}, {entry: combine, grid: [1], block: [64], args: [partial, o]}]" bounds:"1 to 32 entries" doc:"Kernels that form one launch together, in order. Replaces all other fields. They are timed as one launch."`
}

// A Start says how one kernel is launched.
type Start struct {
	Grid         []Expr   `yaml:"grid" eg:"[\"ceildiv(S, 64)\", H, B]" default:"(required for a kernel)" bounds:"1 to 3 entries" doc:"Number of blocks along each axis."`
	Block        []Expr   `yaml:"block" eg:"[128]" default:"(required for a kernel, unless the compiler sets it)" bounds:"1 to 3 entries" doc:"Number of threads of a block along each axis."`
	SharedMemory *Expr    `yaml:"shared_memory" eg:"2*64*D" default:"(0)" bounds:"0 to 232448" doc:"Dynamic shared memory in bytes."`
	Cluster      []Expr   `yaml:"cluster" eg:"[2]" default:"(no clusters)" bounds:"1 to 3 entries" doc:"Blocks per cluster (sm_90 and later)."`
	MaxThreads   int      `yaml:"max_threads" eg:"256" default:"1024" bounds:"1 to 1024" doc:"Maximum number of threads of a block, as in __launch_bounds__."`
	Cooperative  bool     `yaml:"cooperative" eg:"true" default:"false" doc:"Cooperative launch: all blocks run at once, so that they can wait for each other (this_grid().sync()). A grid that does not fit on the GPU at once is refused."`
	Priority     int      `yaml:"priority" eg:"-1" default:"0" bounds:"-5 to 0" doc:"Priority of the kernel among those that run at the same time; lower numbers come first."`
	Carveout     *Expr    `yaml:"carveout" eg:"100" default:"(the driver's choice)" bounds:"0 to 100" doc:"Preferred share of an SM's L1 cache that is shared memory, in percent."`
	Args         []string `yaml:"args" eg:"[q, partial, o]" default:"(all arguments, in order, except those in a struct)" bounds:"(up to 64 names of arguments and scratch)" doc:"Parameters of the kernel function, in its order. Scratch arrays are passed only if they are named here. An array that belongs to a struct may be named here, too."`
}

func (l *Launch) ValidateStrict(n *strict.Node) {
	if !n.Has("steps") {
		l.Start.validate(n)
		return
	}
	for _, f := range strict.Fields(reflect.TypeFor[Start]()) {
		if n.Has(f.Name) {
			n.Child(f.Name).Errorf("is set together with steps (write it in the step that it belongs to)")
		}
	}
	if n.Clean() && (len(l.Steps) == 0 || len(l.Steps) > maxSteps) {
		n.Child("steps").Errorf("has %d steps (write 1 to %d)", len(l.Steps), maxSteps)
	}
}

// validate checks what every kernel needs.
func (s *Start) validate(n *strict.Node) {
	if !n.Has("max_threads") {
		s.MaxThreads = maxThreads
	}
	if !n.Has("grid") { // whether a block is required depends on the compiler
		n.Child("grid").Errorf("is required (write e.g. grid: [\"ceildiv(S, 64)\", H, B])")
		return
	}
	if !n.Clean() {
		return
	}
	checkAxes(n, "grid", len(s.Grid))
	checkAxes(n, "block", len(s.Block))
	checkAxes(n, "cluster", len(s.Cluster))
	if s.MaxThreads < 1 || s.MaxThreads > maxThreads {
		n.Child("max_threads").Errorf("%d is outside 1 to %d (write e.g. 256)", s.MaxThreads, maxThreads)
	}
	if s.Priority < minPriority || s.Priority > 0 {
		n.Child("priority").Errorf("%d is outside %d to 0 (write e.g. -1)", s.Priority, minPriority)
	}
	if len(s.Args) > maxNamed {
		n.Child("args").Errorf("has %d names (write at most %d)", len(s.Args), maxNamed)
	}
}

func checkAxes(n *strict.Node, field string, count int) {
	if n.Has(field) && (count < 1 || count > 3) {
		n.Child(field).Errorf("has %d axes (write one to three)", count)
	}
}

// A Geometry is the start of a kernel in numbers, x first; axes that were not written are 1.
type Geometry struct {
	Grid, Block, Cluster [3]int
	SharedMemory         int // dynamic, bytes per block
	Carveout             Carveout
}

// A Carveout is the preferred share of shared memory; the zero value leaves it to the driver.
type Carveout struct {
	Set     bool
	Percent int
}

// launchOf returns how a variant is launched; nil in modes without launches.
func (m *Manifest) launchOf(v Variant) *Launch { return cmp.Or(v.Launch, m.Launch) }

func (s *Start) geometry(env Env) (Geometry, error) {
	g := Geometry{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Cluster: [3]int{1, 1, 1}}
	for i := range s.Cluster {
		if err := axis(&g.Cluster[i], &s.Cluster[i], env, maxCluster); err != nil {
			return g, err
		}
	}
	if blocks := g.Cluster[0] * g.Cluster[1] * g.Cluster[2]; blocks > maxCluster {
		last := &s.Cluster[len(s.Cluster)-1]
		return g, &fault{last, fmt.Sprintf("makes a cluster of %d blocks", blocks), fmt.Sprintf("make it %d or fewer", maxCluster)}
	}
	for i := range s.Grid {
		most := int64(maxGridYZ)
		if i == 0 {
			most = maxGridX
		}
		if err := axis(&g.Grid[i], &s.Grid[i], env, most); err != nil {
			return g, err
		}
		if g.Grid[i]%g.Cluster[i] != 0 {
			return g, &fault{&s.Grid[i], fmt.Sprintf("is %d, no multiple of the cluster's %d", g.Grid[i], g.Cluster[i]), fmt.Sprintf("use roundup(…, %d)", g.Cluster[i])}
		}
	}
	for i := len(s.Grid); i < len(s.Cluster); i++ {
		if g.Cluster[i] > 1 {
			return g, &fault{what: fmt.Sprintf("has fewer axes than the cluster %v", g.Cluster[:len(s.Cluster)]), fix: "add axes to grid"}
		}
	}
	for i := range s.Block {
		most := []int64{maxThreads, maxThreads, maxBlockZ}[i]
		if err := axis(&g.Block[i], &s.Block[i], env, most); err != nil {
			return g, err
		}
	}
	if threads := g.Block[0] * g.Block[1] * g.Block[2]; threads > s.MaxThreads {
		last := &s.Block[len(s.Block)-1]
		return g, &fault{last, fmt.Sprintf("makes a block of %d threads", threads), fmt.Sprintf("make it %d or fewer", s.MaxThreads)}
	}
	if s.SharedMemory != nil {
		bytes, err := s.SharedMemory.within(env, 0, maxShared)
		if err != nil {
			return g, err
		}
		g.SharedMemory = int(bytes)
	}
	if s.Carveout != nil {
		percent, err := s.Carveout.within(env, 0, maxPercent)
		if err != nil {
			return g, err
		}
		g.Carveout = Carveout{true, int(percent)}
	}
	return g, nil
}

func axis(into *int, e *Expr, env Env, most int64) error {
	v, err := e.within(env, 1, most)
	*into = int(v)
	return err
}
