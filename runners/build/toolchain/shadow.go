package toolchain

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Folders of include_first may replace headers of the system and the toolkit. That is their purpose, but a reader of the
// evidence must see which ones.

const (
	maxShadowed = 64
	maxHeaders  = 50_000 // files of the folders that are looked at
)

// Shadowed lists the headers of the system and the toolkit that the folders of include_first replace, sorted, in the folder
// of a side. At most 64 are named; the last entry then says that there are more.
func (c *CUDA) Shadowed(ctx context.Context, dir string, m *manifest.Manifest) ([]string, error) {
	return shadowed(dir, m, func() ([]string, error) { return c.headers(ctx) })
}

// Shadowed does the same as [CUDA.Shadowed] for a C compiler.
func (c *CC) Shadowed(ctx context.Context, dir string, m *manifest.Manifest) ([]string, error) {
	return shadowed(dir, m, func() ([]string, error) { return systemIncludes(ctx, c.Path, nil) })
}

// headers returns the folders in which nvcc finds headers that no manifest names.
func (c *CUDA) headers(ctx context.Context) ([]string, error) {
	dirs, err := systemIncludes(ctx, c.HostCompiler, []string{"-x", "c++"})
	if err != nil {
		return nil, err
	}
	var own []string
	for _, folder := range []string{"include", "targets/x86_64-linux/include"} {
		own = append(own, filepath.Join(c.Home, folder), filepath.Join(c.Home, folder, "cccl"))
	}
	return append(own, dirs...), nil
}

func shadowed(dir string, m *manifest.Manifest, headers func() ([]string, error)) ([]string, error) {
	if len(m.IncludeFirst) == 0 {
		return nil, nil
	}
	system, err := headers()
	if err != nil {
		return nil, err
	}
	var names []string
	left := maxHeaders
	for _, place := range m.FirstPlaces() {
		root := filepath.Join(dir, filepath.FromSlash(place))
		err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if left--; left < 0 {
				return fs.SkipAll
			}
			name, err := filepath.Rel(root, file)
			if err != nil || d.IsDir() {
				return err
			}
			if slices.ContainsFunc(system, func(folder string) bool { return isFile(filepath.Join(folder, name)) }) {
				names = append(names, filepath.ToSlash(name))
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxShadowed || left < 0 {
		names = append(names[:min(len(names), maxShadowed-1)], "… and more")
	}
	return names, nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}
