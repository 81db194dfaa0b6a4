package inspect

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An NCU is an installed Nsight Compute.
type NCU tool

// ErrNoNCU says what to install.
var ErrNoNCU = errors.New("install Nsight Compute (NVIDIA's package nsight-compute, or the whole CUDA toolkit) and put ncu on PATH or set CUDA_HOME")

// FindNCU looks for ncu on PATH, in CUDA_HOME, in /usr/local/cuda and in /opt/nvidia/nsight-compute, the newest
// there first, and takes the first that runs.
func FindNCU(ctx context.Context, getenv func(string) string) (NCU, error) {
	return findNCU(ctx, getenv, "/")
}

// ncuProduct tells Nsight Compute from npm-check-updates, which calls itself ncu too.
var ncuProduct = regexp.MustCompile("Nsight Compute")

func findNCU(ctx context.Context, getenv func(string) string, root string) (NCU, error) {
	tool, err := search{Name: "ncu", Product: "Nsight Compute", Says: ncuProduct, Paths: ncuPaths(getenv, root), Missing: ErrNoNCU}.find(ctx)
	return NCU(tool), err
}

func ncuPaths(getenv func(string) string, root string) []string {
	paths := onPath(getenv, "ncu")
	for _, home := range toolkits(getenv, root) {
		paths = append(paths, filepath.Join(home, "bin", "ncu"))
	}
	installed, _ := filepath.Glob(filepath.Join(root, "opt/nvidia/nsight-compute/*/ncu")) // the pattern is good
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
