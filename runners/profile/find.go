package profile

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/runners/nvtool"
)

// An NCU is an installed Nsight Compute.
type NCU nvtool.Tool

// ErrNotInstalled says what to install.
var ErrNotInstalled = errors.New("install Nsight Compute (NVIDIA's package nsight-compute, or the whole CUDA toolkit) and put ncu on PATH or set CUDA_HOME")

// Find looks for ncu on PATH, in CUDA_HOME, in /usr/local/cuda and in /opt/nvidia/nsight-compute, the newest
// there first, and takes the first that runs.
func Find(ctx context.Context, getenv func(string) string) (NCU, error) {
	return find(ctx, getenv, "/")
}

// product tells Nsight Compute from npm-check-updates, which calls itself ncu too.
var product = regexp.MustCompile("Nsight Compute")

func find(ctx context.Context, getenv func(string) string, root string) (NCU, error) {
	tool, err := nvtool.Search{Name: "ncu", Product: "Nsight Compute", Says: product, Paths: candidates(getenv, root), Missing: ErrNotInstalled}.Find(ctx)
	return NCU(tool), err
}

func candidates(getenv func(string) string, root string) []string {
	paths := nvtool.OnPath(getenv, "ncu")
	if home := getenv("CUDA_HOME"); filepath.IsAbs(home) {
		paths = append(paths, filepath.Join(home, "bin", "ncu"))
	}
	paths = append(paths, filepath.Join(root, "usr/local/cuda/bin/ncu"))

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
