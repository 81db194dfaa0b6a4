package kernels

import (
	"fmt"
	"maps"

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
)

// A Launch is how a CUDA kernel is started.
type Launch struct {
	Grid         []Expr `yaml:"grid" required:"true" eg:"[\"ceildiv(S, 64)\", H, B]" bounds:"1 to 3 entries" doc:"Blocks of each axis."`
	Block        []Expr `yaml:"block" eg:"[128]" default:"(required, unless the compiler says it)" bounds:"1 to 3 entries" doc:"Threads of a block in each axis."`
	SharedMemory *Expr  `yaml:"shared_memory" eg:"2*64*D" default:"(0)" bounds:"0 to 232448" doc:"Dynamic shared memory in bytes."`
	Cluster      []Expr `yaml:"cluster" eg:"[2]" default:"(no clusters)" bounds:"1 to 3 entries" doc:"Blocks per cluster (sm_90 and later)."`
	MaxThreads   int    `yaml:"max_threads" eg:"256" default:"1024" bounds:"1 to 1024" doc:"The most threads a block may have, as in __launch_bounds__."`
}

func (l *Launch) ValidateStrict(n *strict.Node) {
	if !n.Has("max_threads") {
		l.MaxThreads = maxThreads
	}
	if !n.Clean() {
		return
	}
	checkAxes(n, "grid", len(l.Grid))
	checkAxes(n, "block", len(l.Block))
	checkAxes(n, "cluster", len(l.Cluster))
	if l.MaxThreads < 1 || l.MaxThreads > maxThreads {
		n.Child("max_threads").Errorf("%d is outside 1 to %d (write e.g. 256)", l.MaxThreads, maxThreads)
	}
}

func checkAxes(n *strict.Node, field string, count int) {
	if n.Has(field) && (count < 1 || count > 3) {
		n.Child(field).Errorf("has %d axes (write one to three)", count)
	}
}

// A Geometry is a launch in numbers, x first; axes that were not written are 1.
type Geometry struct {
	Grid, Block, Cluster [3]int
	SharedMemory         int // dynamic, bytes per block
}

// Geometry is a variant's launch for one problem size: its own, or the
// kernel's. The given toggles go over the variant's. It is for cuda manifests.
func (m *Manifest) Geometry(variant string, dims Dims, toggles map[string]int) (Geometry, error) {
	v, err := m.Variant(variant)
	if err != nil {
		return Geometry{}, err
	}
	l := m.launchOf(v)
	if l == nil {
		return Geometry{}, fmt.Errorf("%s has no launch: its mode is %s", m.Name, m.Mode)
	}
	values := m.ToggleValues(variant)
	maps.Copy(values, toggles)
	return l.geometry(m.Env(dims, values))
}

func (l *Launch) exprs() []*Expr {
	if l == nil {
		return nil
	}
	var exprs []*Expr
	for i := range l.Grid {
		exprs = append(exprs, &l.Grid[i])
	}
	for i := range l.Block {
		exprs = append(exprs, &l.Block[i])
	}
	for i := range l.Cluster {
		exprs = append(exprs, &l.Cluster[i])
	}
	if l.SharedMemory != nil {
		exprs = append(exprs, l.SharedMemory)
	}
	return exprs
}

// launchOf is how a variant is started; nil in modes without launches.
func (m *Manifest) launchOf(v Variant) *Launch {
	if v.Launch != nil {
		return v.Launch
	}
	return m.Launch
}

func (l *Launch) geometry(env Env) (Geometry, error) {
	g := Geometry{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Cluster: [3]int{1, 1, 1}}
	for i := range l.Cluster {
		if err := axis(&g.Cluster[i], &l.Cluster[i], env, maxCluster); err != nil {
			return g, err
		}
	}
	if blocks := g.Cluster[0] * g.Cluster[1] * g.Cluster[2]; blocks > maxCluster {
		last := &l.Cluster[len(l.Cluster)-1]
		return g, &fault{last, fmt.Sprintf("makes a cluster of %d blocks", blocks), fmt.Sprintf("make it %d or fewer", maxCluster)}
	}
	for i := range l.Grid {
		most := int64(maxGridYZ)
		if i == 0 {
			most = maxGridX
		}
		if err := axis(&g.Grid[i], &l.Grid[i], env, most); err != nil {
			return g, err
		}
		if g.Grid[i]%g.Cluster[i] != 0 {
			return g, &fault{&l.Grid[i], fmt.Sprintf("is %d, no multiple of the cluster's %d", g.Grid[i], g.Cluster[i]), fmt.Sprintf("use roundup(…, %d)", g.Cluster[i])}
		}
	}
	for i := len(l.Grid); i < len(l.Cluster); i++ {
		if g.Cluster[i] > 1 {
			return g, &fault{what: fmt.Sprintf("has fewer axes than the cluster %v", g.Cluster[:len(l.Cluster)]), fix: "add axes to grid"}
		}
	}
	for i := range l.Block {
		most := []int64{maxThreads, maxThreads, maxBlockZ}[i]
		if err := axis(&g.Block[i], &l.Block[i], env, most); err != nil {
			return g, err
		}
	}
	if threads := g.Block[0] * g.Block[1] * g.Block[2]; threads > l.MaxThreads {
		last := &l.Block[len(l.Block)-1]
		return g, &fault{last, fmt.Sprintf("makes a block of %d threads", threads), fmt.Sprintf("make it %d or fewer", l.MaxThreads)}
	}
	if l.SharedMemory != nil {
		bytes, err := l.SharedMemory.within(env, 0, maxShared)
		if err != nil {
			return g, err
		}
		g.SharedMemory = int(bytes)
	}
	return g, nil
}

func axis(into *int, e *Expr, env Env, most int64) error {
	v, err := e.within(env, 1, most)
	*into = int(v)
	return err
}
