package sanitize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A Compute is an installed compute-sanitizer.
type Compute struct {
	Path    string
	Version string // such as 2025.3.1.0
}

// ErrNotInstalled says what to install.
var ErrNotInstalled = errors.New("install compute-sanitizer (NVIDIA's package cuda-sanitizer, or the whole CUDA toolkit) and put it on PATH, or set CUDA_HOME or KERNELGATE_COMPUTE_SANITIZER")

// Find takes the program that KERNELGATE_COMPUTE_SANITIZER names, or looks on PATH,
// in CUDA_HOME and in /usr/local/cuda, and takes the first that runs.
func Find(ctx context.Context, getenv func(string) string) (Compute, error) {
	return find(ctx, getenv, "/")
}

func find(ctx context.Context, getenv func(string) string, root string) (Compute, error) {
	var failures []error
	for _, path := range candidates(getenv, root) {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
			continue
		}
		if err == nil {
			var version string
			if version, err = askVersion(ctx, path); err == nil {
				return Compute{Path: path, Version: version}, nil
			}
		}
		failures = append(failures, err)
	}
	if ctx.Err() != nil {
		return Compute{}, fmt.Errorf("looking for compute-sanitizer: %w", ctx.Err())
	}
	if len(failures) > 0 {
		return Compute{}, fmt.Errorf("no compute-sanitizer that works was found: %w: %w", errors.Join(failures...), ErrNotInstalled)
	}
	return Compute{}, fmt.Errorf("compute-sanitizer was not found: %w", ErrNotInstalled)
}

const program = "compute-sanitizer"

func candidates(getenv func(string) string, root string) []string {
	if named := getenv("KERNELGATE_COMPUTE_SANITIZER"); named != "" {
		return []string{named}
	}
	var paths []string
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		if filepath.IsAbs(dir) { // a relative one would depend on the checkout that is being judged
			paths = append(paths, filepath.Join(dir, program))
		}
	}
	homes := []string{filepath.Join(root, "usr/local/cuda")}
	if home := getenv("CUDA_HOME"); filepath.IsAbs(home) {
		homes = append([]string{home}, homes...)
	}
	for _, home := range homes {
		paths = append(paths, filepath.Join(home, "bin", program), filepath.Join(home, program, program))
	}
	return paths
}

var versionLine = regexp.MustCompile(`(?m)^Version\s+(\d[\w.]*)`)

func askVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out := capped{limit: 64 << 10}
	if err := runGroup(ctx, []string{path, "--version"}, os.Environ(), &out); err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	m := versionLine.FindStringSubmatch(out.String())
	if m == nil || !strings.Contains(strings.ToLower(out.String()), "sanitizer") {
		return "", fmt.Errorf("%s is not NVIDIA's compute-sanitizer", path)
	}
	return m[1], nil
}
