// Package nvtool finds NVIDIA's command-line tools that look on while another program
// runs, and runs them so that nothing is left behind. What they print is read
// elsewhere.
package nvtool

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

// A Tool is an installed one.
type Tool struct {
	Path    string
	Version string // such as 2025.3.1.0
}

// A Search is what to look for, and where.
type Search struct {
	Name    string         // of the program
	Product string         // that it must be
	Says    *regexp.Regexp // what the product says of itself when asked for its version
	Paths   []string       // most wanted first
	Missing error          // what to install
}

// Find takes the first program that runs and is the product.
func (s Search) Find(ctx context.Context) (Tool, error) {
	var failures []error
	for _, path := range s.Paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
			continue
		}
		if err == nil {
			var version string
			if version, err = s.version(ctx, path); err == nil {
				return Tool{Path: path, Version: version}, nil
			}
		}
		failures = append(failures, err)
	}
	if ctx.Err() != nil {
		return Tool{}, fmt.Errorf("looking for %s: %w", s.Name, ctx.Err())
	}
	if len(failures) > 0 {
		return Tool{}, fmt.Errorf("no %s that works was found: %w: %w", s.Name, errors.Join(failures...), s.Missing)
	}
	return Tool{}, fmt.Errorf("%s was not found: %w", s.Name, s.Missing)
}

// OnPath is where a program may lie by PATH. A relative folder would depend on the
// checkout that is being judged, and is left out.
func OnPath(getenv func(string) string, name string) []string {
	var paths []string
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		if filepath.IsAbs(dir) {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

var versionLine = regexp.MustCompile(`(?m)^Version\s+(\d[\w.]*)`)

// version also tells the product from another program of its name.
func (s Search) version(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out := Capped{Limit: 64 << 10}
	if err := Run(ctx, Command{Args: []string{path, "--version"}, Env: os.Environ(), Stdout: &out, Stderr: &out}); err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	m := versionLine.FindStringSubmatch(out.String())
	if m == nil || !s.Says.MatchString(out.String()) {
		return "", fmt.Errorf("%s is not %s", path, s.Product)
	}
	return m[1], nil
}
