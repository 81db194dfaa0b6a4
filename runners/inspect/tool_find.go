package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// A tool is an installed program of NVIDIA's.
type tool struct {
	Path    string
	Version string // such as 2025.3.1.0
}

// A search is what to look for, and where.
type search struct {
	Name    string         // of the program
	Product string         // that it must be
	Says    *regexp.Regexp // what the product says of itself when asked for its version
	Paths   []string       // most wanted first
	Missing error          // what to install
}

// find takes the first program that runs and is the product.
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

// onPath is where a program may lie by PATH. A relative folder would depend on the
// checkout that is being judged, and is left out.
func onPath(getenv func(string) string, name string) []string {
	var paths []string
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		if filepath.IsAbs(dir) {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// toolkits is where CUDA toolkits lie, most wanted first.
func toolkits(getenv func(string) string, root string) []string {
	usual := filepath.Join(root, "usr/local/cuda")
	if home := getenv("CUDA_HOME"); filepath.IsAbs(home) {
		return []string{home, usual}
	}
	return []string{usual}
}

var versionLine = regexp.MustCompile(`(?m)^Version\s+(\d[\w.]*)`)

// version also tells the product from another program of its name.
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
