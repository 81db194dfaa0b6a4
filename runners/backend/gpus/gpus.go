// Package gpus knows the GPUs of this host: which there are, by which labels jobs may ask for them,
// which of them a runner uses, and the state of each while the runner works. Package
// measure and the commands that start runners use it. It runs nothing on the GPUs and opens no
// context.
package gpus

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/dynlib"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
)

// A GPU is one GPU of this host.
type GPU struct {
	Index int    // nvidia-smi's index
	UUID  string // GPU-…; CUDA_VISIBLE_DEVICES accepts it
	Name  string // of the product
	Minor int    // number of its device file; -1 if the driver does not report it
}

func (g GPU) String() string { return fmt.Sprintf("GPU %d (%s, %s)", g.Index, g.Name, g.UUID) }

// List returns the GPU as a list, which is empty for the zero value.
func (g GPU) List() []GPU {
	if g == (GPU{}) {
		return nil
	}
	return []GPU{g}
}

// Here lists the GPUs that this process may use, in nvidia-smi's order. A host without a driver has
// none.
func Here(getenv func(string) string) ([]GPU, error) {
	library, err := nvml.Open()
	if errors.Is(err, dynlib.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for GPUs: %w", err)
	}
	defer library.Close()
	count, err := library.DeviceCount()
	if err != nil {
		return nil, fmt.Errorf("looking for GPUs: %w", err)
	}
	var all []GPU
	for i := range count {
		g, err := read(library, i)
		if err != nil {
			return nil, fmt.Errorf("looking for GPUs: %w", err)
		}
		all = append(all, g)
	}
	// NVML shows all GPUs of the machine. Numbers in the variable are CUDA's, which orders GPUs
	// differently, so ask CUDA.
	if getenv("CUDA_VISIBLE_DEVICES") == "" || count == 0 {
		return all, nil
	}
	visible, err := visible()
	if err != nil {
		return nil, fmt.Errorf("looking for the GPUs that CUDA_VISIBLE_DEVICES names: %w", err)
	}
	return slices.DeleteFunc(all, func(g GPU) bool { return !slices.Contains(visible, g.UUID) }), nil
}

func read(library *nvml.Library, index int) (GPU, error) {
	g := GPU{Index: index}
	d, err := library.DeviceByIndex(index)
	if err != nil {
		return g, err
	}
	if g.UUID, err = d.UUID(); err != nil {
		return g, err
	}
	if g.Name, err = d.Name(); err != nil {
		return g, err
	}
	if g.Minor, err = d.Minor(); err != nil {
		g.Minor = -1
	}
	return g, nil
}

// visible returns the UUIDs of the GPUs that CUDA shows to this process.
func visible() ([]string, error) {
	d, err := driver.Open()
	if err != nil {
		return nil, err
	}
	n, err := d.DeviceCount()
	if err != nil {
		return nil, err
	}
	var all []string
	for i := range n {
		device, err := d.Device(i)
		if err != nil {
			return nil, err
		}
		p, err := device.Properties()
		if err != nil {
			return nil, err
		}
		all = append(all, p.UUID.String())
	}
	return all, nil
}

// Select selects some of a host's GPUs: all, none, or numbers and UUIDs separated by commas. A
// prefix of a UUID is enough.
func Select(all []GPU, spec string) ([]GPU, error) {
	switch strings.TrimSpace(spec) {
	case "all":
		return all, nil
	case "none":
		return nil, nil
	}
	var picked []GPU
	for word := range strings.SplitSeq(spec, ",") {
		word = strings.TrimSpace(word)
		fit := slices.DeleteFunc(slices.Clone(all), func(g GPU) bool { return !g.is(word) })
		if len(fit) != 1 {
			return nil, fmt.Errorf("%q is %s GPU of this host (%s)", word, map[bool]string{true: "no", false: "more than one"}[len(fit) == 0], advice(all))
		}
		if slices.Contains(picked, fit[0]) {
			return nil, fmt.Errorf("%s is named twice", fit[0])
		}
		picked = append(picked, fit[0])
	}
	slices.SortFunc(picked, func(a, b GPU) int { return cmp.Compare(a.Index, b.Index) })
	return picked, nil
}

// is reports whether the word names this GPU.
func (g GPU) is(word string) bool {
	if n, err := strconv.Atoi(word); err == nil {
		return n == g.Index
	}
	const least = len("GPU-") + 1
	return len(word) >= least && strings.HasPrefix(g.UUID, word)
}

func advice(all []GPU) string {
	if len(all) == 0 {
		return "it has none that the driver shows: see kernelgate doctor"
	}
	var names []string
	for _, g := range all {
		names = append(names, g.String())
	}
	return "write all, none, or of these: " + strings.Join(names, ", ")
}

// Lock keeps other runners of this host off the GPU until the lock is closed or the process ends.
// The lock is a name in the network namespace, not a file: it leaves nothing behind, and needs no
// folder that all users may write.
func (g GPU) Lock() (interface{ Close() error }, error) {
	l, err := net.Listen("unix", "@kernelgate-"+g.UUID)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("another runner measures on %s: stop it, or leave this GPU to it with --gpus", g)
	}
	if err != nil {
		return nil, fmt.Errorf("keeping other runners off %s: %w", g, err)
	}
	return l, nil
}

// Files returns the device files that a separate program needs to reach the GPU: the GPU's own file
// and those that belong to no GPU. For the zero GPU it returns all of them. Without this
// restriction a program that may use one GPU could load the others, on which another runner
// measures.
func (g GPU) Files(dev string) []string {
	files, _ := filepath.Glob(filepath.Join(dev, "nvidia*")) // the pattern is valid
	return slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		if err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return true
		}
		number := strings.TrimPrefix(filepath.Base(file), "nvidia")
		_, notOne := strconv.ParseUint(number, 10, 16)
		return g.UUID != "" && g.Minor >= 0 && notOne == nil && number != fmt.Sprint(g.Minor)
	})
}
