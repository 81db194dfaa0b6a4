package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// A tool is an installed program of NVIDIA.
type tool struct {
	Path    string
	Version string // such as 2025.3.1.0
}

// A search says what to look for, and where.
type search struct {
	Name    string         // of the program
	Product string         // the product that it must be
	Says    *regexp.Regexp // matches the product's --version output
	Paths   []string       // most preferred first
	Missing error          // what to install
}

// find returns the first program that runs and is the product.
func (s search) find(ctx context.Context) (tool, error) {
	var failures []error
	for _, path := range s.Paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
			continue
		}
		if err == nil {
			var version string
			if version, err = s.version(ctx, path); err == nil {
				return tool{Path: path, Version: version}, nil
			}
		}
		failures = append(failures, err)
	}
	if ctx.Err() != nil {
		return tool{}, fmt.Errorf("looking for %s: %w", s.Name, ctx.Err())
	}
	if len(failures) > 0 {
		return tool{}, fmt.Errorf("no %s that works was found: %w: %w", s.Name, errors.Join(failures...), s.Missing)
	}
	return tool{}, fmt.Errorf("%s was not found: %w", s.Name, s.Missing)
}

// toolkits returns the folders of CUDA toolkits, most preferred first.
func toolkits(getenv func(string) string, root string) []string {
	usual := filepath.Join(root, "usr/local/cuda")
	if home := getenv("CUDA_HOME"); filepath.IsAbs(home) {
		return []string{home, usual}
	}
	return []string{usual}
}

var versionLine = regexp.MustCompile(`(?m)^Version\s+(\d[\w.]*)`)

// version also distinguishes the product from another program with the same name.
func (s search) version(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out := capped{Limit: 64 << 10}
	if err := runTool(ctx, command{Args: []string{path, "--version"}, Env: os.Environ(), Stdout: &out, Stderr: &out}); err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	m := versionLine.FindStringSubmatch(out.String())
	if m == nil || !s.Says.MatchString(out.String()) {
		return "", fmt.Errorf("%s is not %s", path, s.Product)
	}
	return m[1], nil
}

// A Compute is an installed compute-sanitizer.
type Compute tool

// ErrNoSanitizer says what to install.
var ErrNoSanitizer = errors.New("install compute-sanitizer (NVIDIA's package cuda-sanitizer, or the whole CUDA toolkit) and put it on PATH, or set CUDA_HOME or KERNELGATE_COMPUTE_SANITIZER")

// FindSanitizer returns the program that KERNELGATE_COMPUTE_SANITIZER names, or searches PATH,
// CUDA_HOME and /usr/local/cuda and returns the first that runs.
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
	paths := toolchain.InPath(getenv, program)
	for _, home := range toolkits(getenv, root) {
		paths = append(paths, filepath.Join(home, "bin", program), filepath.Join(home, program, program))
	}
	return paths
}

// An NCU is an installed Nsight Compute.
type NCU tool

// ErrNoNCU says what to install.
var ErrNoNCU = errors.New("install Nsight Compute (NVIDIA's package nsight-compute, or the whole CUDA toolkit) and put ncu on PATH or set CUDA_HOME")

// FindNCU looks for ncu on PATH, in CUDA_HOME, in /usr/local/cuda and in
// /opt/nvidia/nsight-compute, the newest there first, and returns the first that runs.
func FindNCU(ctx context.Context, getenv func(string) string) (NCU, error) {
	return findNCU(ctx, getenv, "/")
}

// ncuProduct distinguishes Nsight Compute from npm-check-updates, which is also called ncu.
var ncuProduct = regexp.MustCompile("Nsight Compute")

func findNCU(ctx context.Context, getenv func(string) string, root string) (NCU, error) {
	tool, err := search{Name: "ncu", Product: "Nsight Compute", Says: ncuProduct, Paths: ncuPaths(getenv, root), Missing: ErrNoNCU}.find(ctx)
	return NCU(tool), err
}

func ncuPaths(getenv func(string) string, root string) []string {
	paths := toolchain.InPath(getenv, "ncu")
	for _, home := range toolkits(getenv, root) {
		paths = append(paths, filepath.Join(home, "bin", "ncu"))
	}
	// The pattern is valid, so there is no error.
	installed, _ := filepath.Glob(filepath.Join(root, "opt/nvidia/nsight-compute/*/ncu"))
	slices.SortFunc(installed, func(a, b string) int {
		return -compareVersions(filepath.Base(filepath.Dir(a)), filepath.Base(filepath.Dir(b)))
	})
	return append(paths, installed...)
}

// compareVersions compares number by number: 2025.10 is newer than 2025.9.
func compareVersions(a, b string) int {
	return cmp.Or(slices.Compare(versionNumbers(a), versionNumbers(b)), strings.Compare(a, b))
}

func versionNumbers(s string) []int {
	var numbers []int
	for part := range strings.SplitSeq(s, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		numbers = append(numbers, n)
	}
	return numbers
}
