package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A suite is the test binaries with all mutants in them.
type suite struct {
	dir, root, overlay string
	factor             float64
	progress           io.Writer
	users              map[string][]string
	binaries           map[string]*binary // by package; built when first needed
}

// A binary is the tests of one package.
type binary struct {
	pkg, path, dir string
	tests          []test // the quickest first
}

// A test knows which mutants it reaches.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

// try runs the tests that reach a mutant until one of them notices it: the package's own, then its users'.
func (s *suite) try(ctx context.Context, m *mutant) error {
	for _, pkg := range append([]string{m.Package}, s.users[m.Package]...) {
		b, err := s.binary(ctx, pkg)
		if err != nil {
			return err
		}
		for _, batch := range b.batches(m.ID) {
			noticed, err := s.notices(ctx, b, batch, m.ID)
			if err != nil {
				return err
			}
			if noticed {
				m.KilledBy = pkg + " " + strings.Join(batch.names, " ")
				return nil
			}
		}
	}
	return nil
}

// A batch is tests that run in one process.
type batch struct {
	names []string
	took  time.Duration
}

// batchTime is how long a batch may take: quick tests share the start of a process, long ones wait until those noticed nothing.
const batchTime = 300 * time.Millisecond

func (b *binary) batches(id int) []batch {
	var all []batch
	for _, t := range b.tests {
		if !t.reaches[id] {
			continue
		}
		if n := len(all); n == 0 || all[n-1].took+t.took > batchTime {
			all = append(all, batch{})
		}
		last := &all[len(all)-1]
		last.names, last.took = append(last.names, t.name), last.took+t.took
	}
	return all
}

func (s *suite) notices(ctx context.Context, b *binary, tests batch, id int) (bool, error) {
	limit := time.Duration(s.factor*float64(tests.took)) + 10*time.Second
	_, err := s.run(ctx, b, tests.names, limit, onVariable+"="+strconv.Itoa(id))
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.As(err, &exit), errors.Is(err, context.DeadlineExceeded):
		return true, nil
	}
	return false, err
}

// binary builds the tests of a package and runs each once.
func (s *suite) binary(ctx context.Context, pkg string) (*binary, error) {
	if b := s.binaries[pkg]; b != nil {
		return b, nil
	}
	fmt.Fprintf(s.progress, "building and tracing the tests of %s\n", pkg)
	b := &binary{pkg: pkg, path: filepath.Join(s.dir, strings.ReplaceAll(pkg, "/", "_")+".test"), dir: filepath.Join(s.root, pkg)}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+s.overlay, "-o", b.path, "./"+pkg)
	build.Dir = s.root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the tests of %s: %w\n%s", pkg, err, out)
	}
	s.binaries[pkg] = b
	if _, err := os.Stat(b.path); errors.Is(err, os.ErrNotExist) {
		return b, nil // it has no tests
	}
	list, err := s.exec(ctx, b, time.Minute, nil, "-test.list=.")
	if err != nil {
		return nil, fmt.Errorf("listing the tests of %s: %w\n%s", pkg, err, list)
	}
	for _, name := range strings.Fields(string(list)) {
		if strings.HasPrefix(name, "Benchmark") || slices.Contains(longTests[pkg], name) {
			continue
		}
		t := test{name: name, reaches: map[int]bool{}}
		trace := filepath.Join(s.dir, "trace")
		begun := time.Now()
		if out, err := s.run(ctx, b, []string{name}, 5*time.Minute, traceVariable+"="+trace); err != nil {
			return nil, fmt.Errorf("%s of %s fails without any mutant: %w\n%s", name, pkg, err, out)
		}
		t.took = time.Since(begun)
		reached, err := os.ReadFile(trace)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, line := range strings.Fields(string(reached)) {
			id, err := strconv.Atoi(line)
			if err != nil {
				return nil, fmt.Errorf("the trace of %s: %w", name, err)
			}
			t.reaches[id] = true
		}
		if err := os.RemoveAll(trace); err != nil {
			return nil, err
		}
		b.tests = append(b.tests, t)
	}
	slices.SortStableFunc(b.tests, func(x, y test) int { return cmp.Compare(x.took, y.took) })
	return b, nil
}

func (s *suite) run(ctx context.Context, b *binary, tests []string, limit time.Duration, env string) ([]byte, error) {
	return s.exec(ctx, b, limit, []string{env}, "-test.run=^("+strings.Join(tests, "|")+")$", "-test.failfast", "-test.count=1")
}

// memory is what a mutant may take before it ends, in KiB of addresses: some grow without end.
const memory = 8 << 20

// exec runs a test binary in its package's folder and ends everything that it started when the limit is over.
func (s *suite) exec(ctx context.Context, b *binary, limit time.Duration, env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	shell := []string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, memory), b.path}
	cmd := exec.CommandContext(ctx, "sh", append(shell, args...)...)
	cmd.Dir, cmd.Env = b.dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.Bytes(), err
}
