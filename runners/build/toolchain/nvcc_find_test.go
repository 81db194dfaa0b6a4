package toolchain

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
)

// fakeTool writes a program that prints a text. The tests here must not run beside others: a file that a forked
// child still holds open for writing cannot be run.
func fakeTool(t *testing.T, path, prints string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runnable.Write(path, []byte("#!/bin/sh\ncat <<'END'\n"+prints+"\nEND\n")); err != nil {
		t.Fatal(err)
	}
}

func fakeNVCC(t *testing.T, home, version string) {
	t.Helper()
	release := version[:strings.LastIndexByte(version, '.')]
	fakeTool(t, filepath.Join(home, "bin", "nvcc"),
		"nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release "+release+", V"+version+"\nBuild cuda")
}

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestFindCUDA(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	fakeNVCC(t, at("named"), "12.4.131")
	fakeNVCC(t, at("in path"), "12.6.20")
	fakeNVCC(t, at("cuda-13.1"), "13.1.5")
	fakeNVCC(t, at("xdg", "kernelgate", "cuda-13.0.88"), "13.0.88")
	fakeNVCC(t, at("xdg", "kernelgate", "cuda-9.2.1"), "9.2.1")
	fakeNVCC(t, at("xdg", "kernelgate", "cuda-14.0.1.partial.x"), "14.0.1")
	fakeNVCC(t, at("home", ".cache", "kernelgate", "cuda-13.2.7"), "13.2.7")
	fakeNVCC(t, at("fetched"), "13.3.3")
	fakeTool(t, at("ccache", "bin", "nvcc"), "ccache version 4.8")
	for link, target := range map[string]string{"cuda": "cuda-13.1", "links/nvcc": "../in path/bin/nvcc"} {
		if err := os.MkdirAll(filepath.Dir(at(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name          string
		env           map[string]string
		usual         string // in place of /usr/local/cuda
		home, version string
		wantErr       string
	}{
		{name: "CUDA_HOME before PATH", env: map[string]string{"CUDA_HOME": at("named"), "PATH": at("in path", "bin")}, home: "named", version: "12.4.131"},
		{name: "PATH, by a link", env: map[string]string{"PATH": "relative:/nowhere:" + at("links")}, usual: "cuda", home: "in path", version: "12.6.20"},
		{name: "the usual place, by a link", usual: "cuda", home: "cuda-13.1", version: "13.1.5"},
		{name: "the newest that was fetched", env: map[string]string{"XDG_CACHE_HOME": at("xdg"), "HOME": at("home")}, home: "xdg/kernelgate/cuda-13.0.88", version: "13.0.88"},
		{name: "in the home's cache", env: map[string]string{"HOME": at("home")}, home: "home/.cache/kernelgate/cuda-13.2.7", version: "13.2.7"},
		{name: "where the fetching was told to put it", env: map[string]string{"KERNELGATE_CUDA_CACHE": at("fetched"), "HOME": at("home")}, home: "fetched", version: "13.3.3"},
		{name: "not another program of that name", env: map[string]string{"PATH": at("ccache", "bin")}, usual: "cuda", home: "cuda-13.1", version: "13.1.5"},
		{name: "none", env: map[string]string{"PATH": at("links", "none"), "HOME": at("links")}, wantErr: "run `make setup`, which fetches it from PyPI"},
		{name: "nothing but another program", env: map[string]string{"PATH": at("ccache", "bin")}, wantErr: "names no CUDA release"},
		{name: "CUDA_HOME is wrong", env: map[string]string{"CUDA_HOME": at("links"), "PATH": at("in path", "bin")}, wantErr: "holds no CUDA compiler"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := findNVCC(t.Context(), environment(test.env), at(cmp.Or(test.usual, "nowhere")))
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want one that says %q", err, test.wantErr)
				}
				if test.env["CUDA_HOME"] == "" && !errors.Is(err, ErrNoCUDA) {
					t.Errorf("error %v is not ErrNoCUDA", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			home := at(filepath.FromSlash(test.home))
			if c.Home != home || c.NVCC != filepath.Join(home, "bin", "nvcc") || c.Version != test.version {
				t.Errorf("found %+v, want %s in %s", c, test.version, home)
			}
		})
	}
}

func TestFindCUDAsCompanions(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cuda, host := filepath.Join(root, "cuda"), filepath.Join(root, "gcc", "bin", "gcc")
	fakeNVCC(t, cuda, "13.0.88")
	fakeTool(t, host, "gcc 13.2\nmore")
	env := map[string]string{"CUDA_HOME": cuda, "NVCC_CCBIN": host, "PATH": filepath.Join(root, "tools", "bin"), "HOME": filepath.Join(root, "user")}
	find := func() *CUDA {
		t.Helper()
		c, err := FindCUDA(t.Context(), environment(env))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	refused := func(want string) {
		t.Helper()
		if _, err := FindCUDA(t.Context(), environment(env)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	if c := find(); c.Cuobjdump != "" || c.HostCompiler != host || c.HostVersion != "gcc 13.2" {
		t.Errorf("found %+v", c)
	}
	elsewhere, beside := filepath.Join(root, "tools", "bin", "cuobjdump"), filepath.Join(cuda, "bin", "cuobjdump")
	fakeTool(t, elsewhere, "")
	if c := find(); c.Cuobjdump != elsewhere {
		t.Errorf("cuobjdump is %s, want the one in PATH", c.Cuobjdump)
	}
	fakeTool(t, beside, "")
	if c := find(); c.Cuobjdump != beside {
		t.Errorf("cuobjdump is %s, want the one beside nvcc", c.Cuobjdump)
	}
	env["NVCC_CCBIN"] = filepath.Dir(host)
	if c := find(); c.HostCompiler != host {
		t.Errorf("host compiler %s, want the gcc in the folder that NVCC_CCBIN names", c.HostCompiler)
	}
	env["NVCC_CCBIN"] = filepath.Join(root, "none")
	refused("needs a host compiler")
	env["NVCC_CCBIN"], env["HOME"] = host, filepath.Join(cuda, "user")
	refused("would be shown all of " + cuda)
}
