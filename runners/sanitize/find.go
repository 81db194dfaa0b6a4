package sanitize

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"

	"github.com/kernelgate/kernelgate/runners/nvtool"
)

// A Compute is an installed compute-sanitizer.
type Compute nvtool.Tool

// ErrNotInstalled says what to install.
var ErrNotInstalled = errors.New("install compute-sanitizer (NVIDIA's package cuda-sanitizer, or the whole CUDA toolkit) and put it on PATH, or set CUDA_HOME or KERNELGATE_COMPUTE_SANITIZER")

// Find takes the program that KERNELGATE_COMPUTE_SANITIZER names, or looks on PATH,
// in CUDA_HOME and in /usr/local/cuda, and takes the first that runs.
func Find(ctx context.Context, getenv func(string) string) (Compute, error) {
	return find(ctx, getenv, "/")
}

var product = regexp.MustCompile("(?i)sanitizer")

func find(ctx context.Context, getenv func(string) string, root string) (Compute, error) {
	tool, err := nvtool.Search{Name: program, Product: "NVIDIA's compute-sanitizer", Says: product, Paths: candidates(getenv, root), Missing: ErrNotInstalled}.Find(ctx)
	return Compute(tool), err
}

const program = "compute-sanitizer"

func candidates(getenv func(string) string, root string) []string {
	if named := getenv("KERNELGATE_COMPUTE_SANITIZER"); named != "" {
		return []string{named}
	}
	paths := nvtool.OnPath(getenv, program)
	homes := []string{filepath.Join(root, "usr/local/cuda")}
	if home := getenv("CUDA_HOME"); filepath.IsAbs(home) {
		homes = append([]string{home}, homes...)
	}
	for _, home := range homes {
		paths = append(paths, filepath.Join(home, "bin", program), filepath.Join(home, program, program))
	}
	return paths
}
