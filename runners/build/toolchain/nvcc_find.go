package toolchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// A CUDA is an installed CUDA compiler.
type CUDA struct {
	Home      string // the toolkit's folder, free of symbolic links
	NVCC      string
	Cuobjdump string // empty if there is none; then ptxas's report is the only one
	Version   string // such as 13.0.88
	Digest    string // of its programs, where a policy pins it

	// HostCompiler is the compiler that nvcc preprocesses with: the one that NVCC_CCBIN names, or gcc.
	HostCompiler string
	HostVersion  string // the first line of its --version

	// Cache keeps what was compiled; nil compiles every time.
	Cache *Cache
	// Handover passes builds to another host, or has those of another host; nil does neither.
	Handover *Handover
	// Memory is the limit of one build; 0 is that of sandbox.DeviceCompiler.
	Memory int64
}

// ErrNoCUDA says how to get a compiler.
var ErrNoCUDA = errors.New("no CUDA compiler was found: install the CUDA toolkit, set CUDA_HOME, or run `make setup`, which fetches it from PyPI")

// FindCUDA looks for nvcc below CUDA_HOME, in PATH, in /usr/local/cuda, and in the folder that
// fetch-cuda.sh fills. A CUDA_HOME without a working nvcc is an error: a different compiler than
// the named one would be a surprise.
func FindCUDA(ctx context.Context, getenv func(string) string) (*CUDA, error) {
	c, err := findNVCC(ctx, getenv, "/usr/local/cuda")
	if err != nil {
		return nil, err
	}
	if err := c.equip(ctx, getenv); err != nil {
		return nil, err
	}
	return c, nil
}

// equip finds the other programs that nvcc needs.
func (c *CUDA) equip(ctx context.Context, getenv func(string) string) error {
	for _, name := range append([]string{filepath.Join(c.Home, "bin", "cuobjdump")}, InPath(getenv, "cuobjdump")...) {
		if path, ok := program(name); ok {
			c.Cuobjdump = path
			break
		}
	}
	if err := c.findHostCompiler(ctx, getenv); err != nil {
		return err
	}
	if dir := showsTooMuch(getenv, c.folders()); dir != "" {
		return fmt.Errorf("%s with %s cannot be used: the compiler would be shown all of %s; install it to a separate folder", c.NVCC, c.HostCompiler, dir)
	}
	return nil
}

// showsTooMuch returns the first folder that a compiler must not see, because all users' files or
// the user's own are in it; "" if there is none.
func showsTooMuch(getenv func(string) string, dirs []string) string {
	home := getenv("HOME")
	for _, dir := range dirs {
		if dir == "/" || home != "" && sandbox.Within(filepath.Clean(home), dir) {
			return dir
		}
	}
	return ""
}

// folders returns what the compilers must see in addition to the system's folders.
func (c *CUDA) folders() []string {
	programs := []string{c.NVCC, c.HostCompiler}
	if real, err := filepath.EvalSymlinks(c.HostCompiler); err == nil {
		programs = append(programs, real)
	}
	var folders []string
	for _, program := range programs {
		if !slices.ContainsFunc(sandbox.SystemPaths(), func(dir string) bool { return sandbox.Within(program, dir) }) {
			folders = append(folders, prefix(program))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// prefix returns the folder that a program was installed to.
func prefix(program string) string { return filepath.Dir(filepath.Dir(program)) }

func findNVCC(ctx context.Context, getenv func(string) string, usual string) (*CUDA, error) {
	if home := getenv("CUDA_HOME"); home != "" {
		c, err := tryNVCC(ctx, filepath.Join(home, "bin", "nvcc"))
		if err != nil {
			return nil, fmt.Errorf("CUDA_HOME=%s holds no CUDA compiler (%w): set it to a CUDA toolkit, or unset it to have others looked for", home, err)
		}
		return c, nil
	}
	var broken error
	for _, path := range slices.Concat(InPath(getenv, "nvcc"), []string{filepath.Join(usual, "bin", "nvcc")}, fetched(getenv)) {
		c, err := tryNVCC(ctx, path)
		switch {
		case err == nil:
			return c, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("looking for a CUDA compiler: %w", context.Cause(ctx))
		case !errors.Is(err, os.ErrNotExist):
			broken = cmp.Or(broken, err)
		}
	}
	if broken != nil {
		return nil, fmt.Errorf("%w (one was there, but: %w)", ErrNoCUDA, broken)
	}
	return nil, ErrNoCUDA
}

var nvccRelease = regexp.MustCompile(`(?m)^Cuda compilation tools, release [\d.]+, V(\d+\.\d+\.\d+)`)

// tryNVCC asks the program for its version. Its folder is its real location: the sandbox shows that
// folder, and nvcc finds its parts next to itself.
func tryNVCC(ctx context.Context, path string) (*CUDA, error) {
	nvcc, ok := program(path)
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
	}
	out, err := exec.CommandContext(ctx, nvcc, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", nvcc, err)
	}
	m := nvccRelease.FindSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("%s --version names no CUDA release", nvcc)
	}
	return &CUDA{Home: prefix(nvcc), NVCC: nvcc, Version: string(m[1])}, nil
}

// program returns the file behind a path, if it can be run.
func program(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", false
	}
	info, err := os.Stat(real)
	return real, err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// InPath returns where a program may be by PATH.
func InPath(getenv func(string) string, name string) []string {
	var paths []string
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		// A relative folder would mean a different program in every checkout.
		if filepath.IsAbs(dir) {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// fetched returns where fetch-cuda.sh may have left compilers, the newest first.
func fetched(getenv func(string) string) []string {
	if home := getenv("KERNELGATE_CUDA_CACHE"); home != "" {
		return []string{filepath.Join(home, "bin", "nvcc")}
	}
	dir, err := cacheRoot(getenv)
	if err != nil {
		return nil
	}
	homes, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	version := func(home os.DirEntry) []int {
		text, ok := strings.CutPrefix(home.Name(), "cuda-")
		if !ok {
			return nil
		}
		return numbers(text)
	}
	homes = slices.DeleteFunc(homes, func(home os.DirEntry) bool { return version(home) == nil })
	slices.SortStableFunc(homes, func(a, b os.DirEntry) int { return slices.Compare(version(b), version(a)) })
	return mapped(homes, func(home os.DirEntry) string { return filepath.Join(dir, home.Name(), "bin", "nvcc") })
}

// numbers parses a version; nil if there is none, as for a folder that is still being filled.
func numbers(version string) []int {
	var list []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// cacheRoot is kernelgate's folder for what can be created again.
func cacheRoot(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "kernelgate"), nil
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".cache", "kernelgate"), nil
	}
	return "", errors.New("neither XDG_CACHE_HOME nor HOME is set: set one of them, so that there is a place for caches")
}

func (c *CUDA) findHostCompiler(ctx context.Context, getenv func(string) string) error {
	names := []string{"/usr/local/bin/gcc", "/usr/bin/gcc", "/bin/gcc"} // the order of compilerEnv
	if named := getenv("NVCC_CCBIN"); named != "" {
		names = []string{named, filepath.Join(named, "gcc")} // nvcc also takes a folder
	}
	for _, name := range names {
		// Not the target of the link: a compiler may depend on the name that it is called by.
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return fmt.Errorf("finding nvcc's host compiler %s: %w", name, err)
		}
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if err != nil {
			return fmt.Errorf("asking nvcc's host compiler %s for its version: %w (set NVCC_CCBIN to another)", path, err)
		}
		first, _, _ := strings.Cut(string(out), "\n")
		c.HostCompiler, c.HostVersion = path, strings.TrimSpace(first)
		return nil
	}
	return fmt.Errorf("%s needs a host compiler to preprocess with, and there is no %s: install gcc and g++ (Debian: apt-get install g++), or set NVCC_CCBIN to a compiler", c.NVCC, strings.Join(names, ", "))
}
