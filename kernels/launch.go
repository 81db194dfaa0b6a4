package kernels

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

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
	Grid         []Expr `yaml:"grid" required:"true" eg:"[\"ceildiv(S, 64)\", H, B]" doc:"Blocks, one to three axes."`
	Block        []Expr `yaml:"block" required:"true" eg:"[128]" doc:"Threads per block, one to three axes."`
	SharedMemory *Expr  `yaml:"shared_memory" eg:"2*64*D" doc:"Dynamic shared memory in bytes."`
	Cluster      []int  `yaml:"cluster" eg:"[2]" doc:"Blocks per cluster (sm_90 and later)."`
	MaxThreads   int    `yaml:"max_threads" eg:"256" doc:"The most threads a block may have, as in __launch_bounds__. Default 1024."`
}

func (l *Launch) ValidateStrict(n *strict.Node) {
	if !n.Has("max_threads") {
		l.MaxThreads = maxThreads
	}
	if !n.Clean() {
		return
	}
	for _, axes := range []struct {
		field string
		count int
	}{{"grid", len(l.Grid)}, {"block", len(l.Block)}, {"cluster", len(l.Cluster)}} {
		if n.Has(axes.field) && (axes.count < 1 || axes.count > 3) {
			n.Child(axes.field).Errorf("has %d axes (write one to three)", axes.count)
		}
	}
	if l.MaxThreads < 1 || l.MaxThreads > maxThreads {
		n.Child("max_threads").Errorf("%d is outside 1 to %d (write e.g. 256)", l.MaxThreads, maxThreads)
	}
	blocks := 1
	for _, c := range l.Cluster {
		if c < 1 || c > maxCluster {
			n.Child("cluster").Errorf("%d is outside 1 to %d (write e.g. [2])", c, maxCluster)
			return
		}
		blocks *= c
	}
	if blocks > maxCluster {
		n.Child("cluster").Errorf("has %d blocks (write at most %d)", blocks, maxCluster)
	}
}

// A Geometry is a launch in numbers, x first; axes that were not written are 1.
type Geometry struct {
	Grid, Block, Cluster [3]int
	SharedMemory         int // dynamic, bytes per block
}

// Geometry is the launch for one problem size. It is for cuda manifests.
func (m *Manifest) Geometry(dims Dims, toggles map[string]int) (Geometry, error) {
	l := m.Launch
	if l == nil {
		return Geometry{}, fmt.Errorf("%s has no launch: its mode is %s", m.Name, m.Mode)
	}
	env := m.Env(dims, toggles)
	g := Geometry{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Cluster: [3]int{1, 1, 1}}
	copy(g.Cluster[:], l.Cluster)
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
		if l.Cluster[i] > 1 {
			return g, &fault{what: fmt.Sprintf("has fewer axes than the cluster %v", l.Cluster), fix: "add axes to grid"}
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

var archText = regexp.MustCompile(`^sm_(75|80|86|87|88|89|90|100|101|103|110|120|121)([af]?)$`)

// checkArch sees to it that the architectures exist and fit the launch.
func (c *checker) checkArch() {
	m, at := c.m, c.n.Child("arch")
	if m.Mode != ModeCUDA {
		return
	}
	if at.List() && len(m.Arch) == 0 {
		c.errorf(at, "is empty (write e.g. [sm_89])")
	}
	for i, arch := range m.Arch {
		item := itemOf(at, i)
		parts := archText.FindStringSubmatch(arch)
		if parts == nil {
			c.errorf(item, "%q is not an architecture (write sm_75 to sm_121, e.g. sm_89)", arch)
			continue
		}
		capability, _ := strconv.Atoi(parts[1])
		if parts[2] == "a" && capability < 90 || parts[2] == "f" && capability < 100 {
			c.errorf(item, "%q does not exist: a begins with sm_90, f with sm_100 (write sm_%s)", arch, parts[1])
		}
		if slices.Contains(m.Arch[:i], arch) {
			c.errorf(item, "%q is named twice (delete one)", arch)
		}
		if m.Launch != nil && len(m.Launch.Cluster) > 0 && capability < 90 {
			c.errorf(item, "%q has no clusters, which launch.cluster asks for (write sm_90 or later, or delete the cluster)", arch)
		}
	}
}
