package inspect

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
)

// A Compute is an installed compute-sanitizer.
type Compute tool

// ErrNoSanitizer says what to install.
var ErrNoSanitizer = errors.New("install compute-sanitizer (NVIDIA's package cuda-sanitizer, or the whole CUDA toolkit) and put it on PATH, or set CUDA_HOME or KERNELGATE_COMPUTE_SANITIZER")

// FindSanitizer takes the program that KERNELGATE_COMPUTE_SANITIZER names, or looks on PATH,
// in CUDA_HOME and in /usr/local/cuda, and takes the first that runs.
func FindSanitizer(ctx context.Context, getenv func(string) string) (Compute, error) {
	return findSanitizer(ctx, getenv, "/")
}

var sanitizerProduct = regexp.MustCompile("(?i)sanitizer")

func findSanitizer(ctx context.Context, getenv func(string) string, root string) (Compute, error) {
	tool, err := search{Name: program, Product: "NVIDIA's compute-sanitizer", Says: sanitizerProduct, Paths: sanitizerPaths(getenv, root), Missing: ErrNoSanitizer}.find(ctx)
	return Compute(tool), err
}

const program = "compute-sanitizer"

func sanitizerPaths(getenv func(string) string, root string) []string {
	if named := getenv("KERNELGATE_COMPUTE_SANITIZER"); named != "" {
		return []string{named}
	}
	paths := onPath(getenv, program)
	for _, home := range toolkits(getenv, root) {
		paths = append(paths, filepath.Join(home, "bin", program), filepath.Join(home, program, program))
	}
	return paths
}
