package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// cudaParts are the programs and headers of a toolkit that decide what machine code a source becomes, where they are there. A
// toolkit has much else, which differs with how it was installed.
var cudaParts = []string{"bin/nvcc", "bin/nvcc.profile", "bin/cudafe++", "bin/ptxas", "bin/fatbinary", "nvvm/bin/cicc", "nvvm/libdevice", "include/crt"}

func (c *CUDA) files() ([]string, error) {
	return below(c.Home, cudaParts, func(string) bool { return true })
}

// files is all of the package but what Python writes there by itself, and what compiles nothing for NVIDIA's GPUs: profilers,
// disassemblers, headers of the driver and what is for the GPUs of others.
func (t *Triton) files() ([]string, error) {
	aside := []string{"profiler/", "backends/amd/", "backends/nvidia/lib/cupti", "backends/nvidia/include/", "include/", "_C/libproton.so", "FileCheck", "backends/nvidia/bin/nvdisasm", "backends/nvidia/bin/cuobjdump"}
	return below(t.Folder, []string{"."}, func(name string) bool {
		return !strings.Contains(name, "__pycache__/") && !slices.ContainsFunc(aside, func(part string) bool { return strings.HasPrefix(name, part) })
	})
}

// below lists the files of some parts of a folder.
func below(root string, parts []string, wanted func(string) bool) ([]string, error) {
	var names []string
	for _, part := range parts {
		err := filepath.WalkDir(filepath.Join(root, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err == nil && wanted(name) {
				names = append(names, name)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s is empty", root)
	}
	return names, nil
}

// touched names a state of files: whatever is written changes its times, the second of which nobody can set.
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
