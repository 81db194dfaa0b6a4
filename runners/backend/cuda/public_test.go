package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
)

// public is the manifests of kernels that have the parameters, templates and launches of well-known public ones. They stand in
// testdata/public as in a repository that was not made for this program.
func public(t *testing.T) map[string]*manifest.Manifest {
	t.Helper()
	files, err := filepath.Glob("testdata/public/gate/*.kernel.yaml")
	if err != nil || len(files) != 12 {
		t.Fatalf("%d manifests (%v)", len(files), err)
	}
	all := map[string]*manifest.Manifest{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(filepath.Base(file), text)
		if err != nil {
			t.Fatal(err)
		}
		all[m.Name] = m
	}
	return all
}

// Twelve kernels as public repositories have them are described by their manifests: each is found by its name in the source,
// made where nothing makes it, and takes what the manifest passes, by number and size. One compilation has all of them.
func TestPublicKernels(t *testing.T) {
	needsCompiler(t)
	all := public(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/public")); err != nil {
		t.Fatal(err)
	}
	var sources, entries []string
	for _, m := range all {
		sources = append(sources, fmt.Sprintf("#include \"csrc/%s\"\n", m.Variants[0].Source), fmt.Sprintf("#include \"gate/%s\"\n", m.Reference.Source))
		entries = append(append(entries, m.Entries(m.DefaultVariant)...), m.Reference.Entry)
	}
	slices.Sort(sources)
	slices.Sort(entries)
	sources, entries = slices.Compact(sources), slices.Compact(entries)
	if err := os.WriteFile(filepath.Join(dir, "all.cu"), []byte(strings.Join(sources, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	cuda, err := toolchain.FindCUDA(t.Context(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	cuda.Cache = &toolchain.Cache{Dir: toolchaintest.Builds(t)}
	cubin, err := cuda.Build(t.Context(), toolchain.NVCCBuild{Dir: dir, Scratch: t.TempDir(), Source: "all.cu", Entries: entries, Arch: "sm_89", Flags: []string{"-std=c++17", "-DUSE_BF16"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range all {
		if wrong := compareParameters(cubin.Kernels[slices.Index(entries, m.Reference.Entry)], m.ReferenceParameters()); wrong != nil {
			t.Errorf("the reference of %s: %s\n%s", name, wrong.summary, wrong.table())
		}
		for _, k := range m.Kernels(m.DefaultVariant) {
			code := cubin.Kernels[slices.Index(entries, k.Entry)]
			if wrong := compareParameters(code, m.Parameters(k.Args)); wrong != nil {
				t.Errorf("%s: %s\n%s", name, wrong.summary, wrong.table())
			}
			if code.CodeSize == 0 {
				t.Errorf("%s: %s has no code", name, k.Entry)
			}
		}
	}
	// Of a struct the size alone is in the code. The source says where some of its members are.
	source, err := os.ReadFile("testdata/public/csrc/flash.cu")
	if err != nil {
		t.Fatal(err)
	}
	params := all["flash"].Arguments[slices.IndexFunc(all["flash"].Arguments, func(a manifest.Argument) bool { return a.Name == "params" })]
	layout, _ := params.Composite(all["flash"])
	asserted := 0
	for _, p := range layout.Parts {
		name := strings.TrimPrefix(p.Name, "params.")
		if at := fmt.Sprintf("offsetof(forward_params, %s) == ", name); strings.Contains(string(source), at) {
			if asserted++; !strings.Contains(string(source), fmt.Sprintf("%s%d,", at, p.Offset)) {
				t.Errorf("%s is at %d by the manifest", name, p.Offset)
			}
		}
	}
	if asserted != 4 {
		t.Errorf("the source tells of %d members", asserted)
	}
}
