package profile

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
)

// An NCU is an installed Nsight Compute.
type NCU struct {
	Path    string
	Version string // such as 2025.3.1.0
}

// ErrNotInstalled says what to install.
var ErrNotInstalled = errors.New("install Nsight Compute (NVIDIA's package nsight-compute, or the whole CUDA toolkit) and put ncu on PATH or set CUDA_HOME")

// Find looks for ncu on PATH, in CUDA_HOME, in /usr/local/cuda and in /opt/nvidia/nsight-compute, the newest
// there first, and takes the first that runs.
func Find(ctx context.Context, getenv func(string) string) (NCU, error) {
	return find(ctx, getenv, "/")
}

func find(ctx context.Context, getenv func(string) string, root string) (NCU, error) {
	var failures []error
	for _, path := range candidates(getenv, root) {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
			continue
		}
		if err == nil {
			var version string
			if version, err = askVersion(ctx, path); err == nil {
				return NCU{Path: path, Version: version}, nil
			}
		}
		failures = append(failures, err)
	}
	if ctx.Err() != nil {
		return NCU{}, fmt.Errorf("looking for ncu: %w", ctx.Err())
	}
	if len(failures) > 0 {
		return NCU{}, fmt.Errorf("no ncu that works was found: %w: %w", errors.Join(failures...), ErrNotInstalled)
	}
	return NCU{}, fmt.Errorf("ncu was not found: %w", ErrNotInstalled)
}

func candidates(getenv func(string) string, root string) []string {
	var paths []string
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		if filepath.IsAbs(dir) { // a relative one would depend on the checkout that is being judged
			paths = append(paths, filepath.Join(dir, "ncu"))
		}
	}
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

var versionLine = regexp.MustCompile(`(?m)^Version\s+(\d[\w.]*)`)

// askVersion also tells Nsight Compute from npm-check-updates, which calls itself ncu too.
func askVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out := capped{limit: 64 << 10}
	if err := runGroup(ctx, command{args: []string{path, "--version"}, env: os.Environ(), stdout: &out, stderr: &out}); err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	m := versionLine.FindStringSubmatch(out.String())
	if m == nil || !strings.Contains(out.String(), "Nsight Compute") {
		return "", fmt.Errorf("%s is not Nsight Compute", path)
	}
	return m[1], nil
}
