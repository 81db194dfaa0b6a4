package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// layTriton lays out what is looked at of a Triton.
func layTriton(t *testing.T, version string) string {
	t.Helper()
	return folder(t, map[string]string{
		"triton/__init__.py": "__version__ = '" + version + "'\n", "triton/_C/libtriton.so": "code of " + version, "triton/compiler/compiler.py": "pass\n",
		"triton/backends/nvidia/bin/ptxas": "ptxas", "triton/__pycache__/x.pyc": "1", "triton/profiler/p.py": "2",
	})
}

// nowhere is an environment in which nothing is installed but Python, by its own place: what leads to it may take long.
func nowhere(t *testing.T) func(string) string {
	t.Helper()
	dir, program := t.TempDir(), os.Getenv("KERNELGATE_PYTHON")
	if p, err := foundPython(); err == nil {
		program = p.Executable
	}
	return func(name string) string {
		return map[string]string{"HOME": dir, "PATH": os.Getenv("PATH"), "KERNELGATE_PYTHON": program}[name]
	}
}

// A pin takes what is installed, by version and digest, and nothing else.
func TestPinnedTriton(t *testing.T) {
	getenv := nowhere(t)
	if _, err := findPython(t.Context(), getenv); err != nil {
		t.Skip(err)
	}
	first, second := layTriton(t, "3.6.0"), layTriton(t, "3.9.0")
	cache := &Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	host := Installed{Paths: []string{first, second}, Getenv: getenv, Cache: cache}
	pinned := func(version, digest string) (*Triton, error) {
		return host.Triton(t.Context(), &policy.Toolchain{Version: version, Digest: digest})
	}
	got, err := pinned("3.6.0", "")
	if err != nil || got.Folder != filepath.Join(first, "triton") || got.Digest != "" || got.Cache != cache {
		t.Fatalf("%+v, %v", got, err)
	}
	digest, err := digestOf(got, nil)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := digestOf(got, cache); err != nil || kept != digest {
		t.Errorf("%s is kept as %s (%v)", digest, kept, err)
	}
	if got, err = pinned("3.6.0", digest); err != nil || got.Digest != digest {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []struct{ version, digest, want string }{
		{"3.7.0", "", "the policy pins triton 3.7.0, which this host does not have (it has "},
		{"3.7.0", "", "3.6.0 in " + filepath.Join(first, "triton")},
		{"3.9.0", digest, "the policy pins triton 3.9.0 with the digest " + digest + ", and no installed one has it: that in " + filepath.Join(second, "triton") + " has sha256:"},
	} {
		if _, err := pinned(c.version, c.digest); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v\nwant …%s…", c.version, c.digest, err, c.want)
		}
	}
	// What Python and the system write there is no other compiler; anything else is.
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(first, "triton", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("__pycache__/x.pyc", "other")
	if _, err := pinned("3.6.0", digest); err != nil {
		t.Errorf("after Python has run: %v", err)
	}
	for _, file := range []string{"_C/libtriton.so", "compiler/compiler.py", "backends/nvidia/bin/ptxas", "profiler/p.py"} {
		was, err := os.ReadFile(filepath.Join(first, "triton", file))
		if err != nil {
			t.Fatal(err)
		}
		write(file, strings.Repeat("x", len(was))) // of the same size
		if _, err := pinned("3.6.0", digest); err == nil {
			t.Errorf("another %s passes for the pinned Triton", file)
		}
		write(file, string(was))
		if _, err := pinned("3.6.0", digest); err != nil {
			t.Errorf("%s as it was: %v", file, err)
		}
	}
	write("compiler/more.py", "x")
	if _, err := pinned("3.6.0", digest); err == nil {
		t.Error("a file more passes for the pinned Triton")
	}
}

// The digest of a toolkit has everything that a build of device code can read, also through links, and nothing that differs with
// what else is installed.
func TestDigestOfCUDA(t *testing.T) {
	files := map[string]string{
		"bin/nvcc": "1", "bin/nvcc.profile": "1", "bin/ptxas": "1", "bin/nvlink": "1", "bin/crt/link.stub": "1", "nvvm/bin/cicc": "1", "nvvm/libdevice/libdevice.10.bc": "1", "nvvm/lib64/libnvvm.so": "1",
		"include/crt/host_defines.h": "1", "include/cuda_fp16.hpp": "1", "include/cccl/cub/cub.cuh": "1", "targets/x86_64-linux/include/cuda_fp8.h": "1", "lib/libnvvm.so.4": "1", "lib/libm.so.6": "1",
	}
	other := []string{"bin/nsys", "lib64/libcublas.so.13", "lib/cmake/x.cmake", "doc/readme"}
	for _, name := range other {
		files[name] = "1"
	}
	home := folder(t, files)
	linked := folder(t, map[string]string{"cooperative_groups.h": "1", "sub/more.h": "1"})
	for link, target := range map[string]string{"include/linked": linked, "include/loop": "."} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() string {
		t.Helper()
		d, err := digestOf(&CUDA{Home: home}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := digest()
	files["include/linked/sub/more.h"] = "1"
	for name := range files {
		if err := os.WriteFile(filepath.Join(home, name), []byte("2"), 0o644); err != nil {
			t.Fatal(err)
		}
		if same := digest() == first; same != slices.Contains(other, name) {
			t.Errorf("%s: the digest is the same: %v", name, same)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte("1"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if digest() != first {
		t.Error("the toolkit as it was has another digest")
	}
}

func TestPinnedCUDA(t *testing.T) {
	if _, err := os.Stat("/usr/bin/gcc"); err != nil {
		t.Skip(err)
	}
	getenv := nowhere(t)
	toolkit := func(version string) string {
		dir := folder(t, map[string]string{"bin/nvcc": "#!/bin/sh\necho 'Cuda compilation tools, release 12.9, V" + version + "'\n", "bin/ptxas": "ptxas " + version, "nvvm/bin/cicc": "cicc"})
		if err := os.Chmod(filepath.Join(dir, "bin", "nvcc"), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	old, next := toolkit("12.9.86"), toolkit("13.0.88")
	host := Installed{Paths: []string{old, next, filepath.Join(next, "nvvm")}, Getenv: getenv}
	for version, home := range map[string]string{"12.9.86": old, "13.0.88": next} {
		c, err := host.CUDA(t.Context(), &policy.Toolchain{Version: version})
		if err != nil || c.Version != version || c.Home != home {
			t.Errorf("%s: %+v, %v", version, c, err)
		}
	}
	if _, err := host.CUDA(t.Context(), &policy.Toolchain{Version: "11.8.89"}); err == nil || !strings.Contains(err.Error(), "the policy pins nvcc 11.8.89, which this host does not have (it has 12.9.86 in "+old) {
		t.Error(err)
	}
	list, err := host.List(t.Context())
	if err == nil || !strings.Contains(err.Error(), "nvvm: it holds neither bin/nvcc nor the package triton") && !strings.Contains(err.Error(), "no Triton was found") {
		t.Errorf("a folder of nothing: %v", err)
	}
	found := map[string]string{}
	for _, c := range list {
		found[c.Version] = c.Digest
	}
	if !strings.HasPrefix(found["12.9.86"], "sha256:") || found["12.9.86"] == found["13.0.88"] {
		t.Errorf("%+v", list)
	}
	for text, want := range map[string]string{"nvcc@13.0.88": "nvcc 13.0.88", "triton@3.9.0": "triton 3.9.0", old: "nvcc 12.9.86", filepath.Join(next, "bin", "nvcc"): "nvcc 13.0.88"} {
		if kind, pin, err := host.Named(t.Context(), text); err != nil || kind+" "+pin.Version != want {
			t.Errorf("%s is %s %s (%v), want %s", text, kind, pin.Version, err, want)
		}
	}
	for _, text := range []string{"", "gcc@12", "nvcc", "nvcc@latest", "../cuda", filepath.Join(old, "nvvm")} {
		if kind, pin, err := host.Named(t.Context(), text); err == nil {
			t.Errorf("%q is %s %s", text, kind, pin.Version)
		}
	}
}
