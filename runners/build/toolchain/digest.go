package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kernelgate/kernelgate/runners/host/folderhash"
)

// digestOf returns the digest of the files that decide the compiler's output, by name and content.
// It is computed once, until one of them changes.
func digestOf[C pinnable](c C, cache *Cache) (string, error) {
	names, err := c.files()
	if err != nil {
		return "", fmt.Errorf("reading the compiler in %s: %w", c.place(), err)
	}
	slices.Sort(names)
	key, err := touched(c.place(), names)
	if err != nil {
		cache = nil
	}
	return cache.text(key, "a compiler's digest", func() (string, error) {
		h := sha256.New()
		for _, name := range names {
			sum, err := folderhash.File(filepath.Join(c.place(), name))
			if err != nil {
				return "", fmt.Errorf("reading the compiler: %w", err)
			}
			fmt.Fprintf(h, "%q %x\n", name, sum)
		}
		return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
	})
}

// cudaParts are the parts of a toolkit that a build of device code can read, if they exist: the
// programs that nvcc calls, the device libraries, and all headers. A toolkit has much more, such as
// profilers and host libraries.
var cudaParts = []string{
	"bin/nvcc", "bin/nvcc.profile", "bin/cudafe++", "bin/ptxas", "bin/fatbinary", "bin/nvlink", "bin/bin2c", "bin/__nvcc_device_query", "bin/crt", "nvvm", "include",
	"lib/nvidia-cuda-toolkit", // where Debian keeps the programs behind those in /usr/bin
}

// files returns the files of these parts, and the libraries that nvcc.profile makes the programs
// load before the system's.
func (c *CUDA) files() ([]string, error) {
	parts := slices.Clone(cudaParts)
	for _, pattern := range []string{"targets/*/include", "lib/*.so*"} {
		found, err := filepath.Glob(filepath.Join(c.Home, pattern))
		if err != nil || c.Home == "/usr" { // where libraries are the system's
			continue
		}
		for _, name := range found {
			rel, err := filepath.Rel(c.Home, name)
			if err != nil {
				return nil, err
			}
			parts = append(parts, rel)
		}
	}
	return below(c.Home, parts)
}

// files returns all files of the package except compiled modules, which no build sees (see
// withoutPycache). Files for other vendors' GPUs count, too, because Python runs them when the
// package is imported.
func (t *Triton) files() ([]string, error) {
	names, err := below(t.Folder, []string{"."})
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(strings.Split(path.Dir(name), "/"), pycache) }), err
}

// below lists the files of some parts of a folder, following links as a program does.
func below(root string, parts []string) ([]string, error) {
	var names []string
	for _, part := range parts {
		err := walk(root, part, nil, func(name, _ string, isFolder bool) {
			if !isFolder {
				names = append(names, name)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s is empty", root)
	}
	return names, nil
}

// walk visits a part of a folder and everything below it, under the names that a program uses. It
// follows links, except those that lead to a folder above or nowhere.
func walk(root, name string, above []string, visit func(name, real string, isFolder bool)) error {
	at := filepath.Join(root, name)
	info, err := os.Stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		visit(name, at, false)
		return nil
	}
	real, err := filepath.EvalSymlinks(at)
	if err != nil || slices.Contains(above, real) {
		return err
	}
	visit(name, real, true)
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := walk(root, path.Join(name, e.Name()), append(slices.Clip(above), real), visit); err != nil {
			return err
		}
	}
	return nil
}

// touched identifies a state of files: every write changes its times, and no program can set the
// second of them.
func touched(root string, names []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "digest %d %q\n", cacheVersion, root)
	for _, name := range names {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return "", errors.New("this system does not tell when a file was changed")
		}
		fmt.Fprintf(h, "%q %d %d %d %v\n", name, info.Size(), info.ModTime().UnixNano(), stat.Ino, stat.Ctim)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
