package manifest

import (
	"slices"
	"strings"
	"testing"
)

// A manifest and its key stand for each other, whatever folders are called, so that no
// kernel can be taken for another.
func TestKeys(t *testing.T) {
	for file, want := range map[string]string{
		"k/kernel.yaml":               "k",
		"a/b/kernel.yaml":             "a/b",
		"k/rms.kernel.yaml":           "k/rms.kernel.yaml",
		"k/rms/kernel.yaml":           "k/rms",
		"rms.kernel.yaml/kernel.yaml": "rms.kernel.yaml/kernel.yaml",
		"k/kernel.yaml/kernel.yaml":   "k/kernel.yaml/kernel.yaml",
		"k/kernel.yaml/a.kernel.yaml": "k/kernel.yaml/a.kernel.yaml",
		"k/kernel.kernel.yaml":        "k/kernel.kernel.yaml",
	} {
		if got := KeyOf(file); got != want || FileOf(got) != file || FolderOf(got) != file[:strings.LastIndex(file, "/")] {
			t.Errorf("%s is known by %s, which stands for %s in %s", file, got, FileOf(got), FolderOf(got))
		}
	}
	for name, want := range map[string]bool{"kernel.yaml": true, "a.kernel.yaml": true, "k/a.b.kernel.yaml": true, ".kernel.yaml": false, "akernel.yaml": false, "kernel.yml": false, "kernel.yaml.bak": false} {
		if IsManifest(name) != want {
			t.Errorf("%s is a manifest: %v", name, !want)
		}
	}
}

func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"k/kernel.yaml", "k/rms.kernel.yaml", "a.kernel.yaml/kernel.yaml", "kernel.yaml/kernel.yaml"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if !IsManifest(file) || !filePath.MatchString(file) || !strings.Contains(file, "/") {
			t.Skip()
		}
		if back := FileOf(KeyOf(file)); back != file {
			t.Errorf("%s comes back as %s", file, back)
		}
	})
}

// Folders of include_first are searched before the system's, and belong to the way the kernel is built.
func TestIncludeFirst(t *testing.T) {
	parse := func(fields string) *Manifest {
		m, err := Parse("kernel.yaml", []byte(edited(t, minimalCPU, "source: scale.c\n", "source: scale.c\n"+fields)))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := parse("include: [common]\ninclude_first: [third/cccl, <cutlass>]\n")
	same(t, "flags", m.IncludeFlags(), []string{"-I.repository/third/cccl", "-I.sets/cutlass", "-idirafter.repository/common"})
	same(t, "folders", m.Elsewhere(), []string{"third/cccl", "common"})
	same(t, "first", m.FirstFolders(), []string{"third/cccl"})
	same(t, "sets", m.IncludeSets(), []string{"cutlass"})
	if other := parse("include: [third/cccl, <cutlass>, common]\n"); m.Recipe("default") == other.Recipe("default") {
		t.Error("a folder that is searched first is built the same way as one that is searched last")
	}
}

// Sources and headers of other folders lie to each other as in the repository; what a
// runner has of its own lies apart from them.
func TestElsewhere(t *testing.T) {
	m, err := Parse("k/rms.kernel.yaml", []byte(edited(t, minimalCPU, "source: scale.c\n", "root: csrc/norm\nsource: sub/rms.c\ninclude: [common, <cutlass>, csrc/norm]\n")))
	if err != nil {
		t.Fatal(err)
	}
	v, err := m.Variant(m.DefaultVariant)
	if got := m.SourceFile(v); err != nil || got != ".repository/csrc/norm/sub/rms.c" {
		t.Errorf("the source is %s (%v)", got, err)
	}
	same(t, "flags", m.IncludeFlags(), []string{"-idirafter.repository/common", "-idirafter.sets/cutlass", "-idirafter.repository/csrc/norm"})
	same(t, "folders", m.Elsewhere(), []string{"common", "csrc/norm"})
	same(t, "sets", m.IncludeSets(), []string{"cutlass"})
	if m.IsSource("sub/rms.c") || m.IsSource("rms.c") || len(m.Sources) > 0 {
		t.Error("a file beside the manifest is a source although those are elsewhere")
	}
	if other, err := Parse("k/kernel.yaml", []byte(edited(t, minimalCPU, "source: scale.c\n", "root: other\nsource: sub/rms.c\n"))); err != nil || m.Recipe("default") == other.Recipe("default") {
		t.Errorf("a source of another folder is built the same way (%v)", err)
	}
}

func TestElsewhereMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"root: ../other\nsource: a.c\n":                                      `root: "../other" is not a folder of the repository`,
		"root: csrc/../../x\nsource: a.c\n":                                  `root: "csrc/../../x" is not a folder of the repository`,
		"root: /etc\nsource: a.c\n":                                          `root: "/etc" is not a folder of the repository`,
		"root: .git\nsource: a.c\n":                                          `root: ".git" is not a folder of the repository`,
		"root: ./csrc\nsource: a.c\n":                                        `root: "./csrc" is not a folder of the repository`,
		"root: csrc/\nsource: a.c\n":                                         `root: "csrc/" is not a folder of the repository`,
		"root: csrc\nsources: ['*.c']\nsource: a.c\n":                        "sources: is not read with root",
		"root: csrc\nsource: ../a.c\n":                                       `source: "../a.c" is not a file within the kernel's folder`,
		"source: scale.c\ninclude: ['<../x>']\n":                             `include[0]: "<../x>" is not a folder of the repository`,
		"source: scale.c\ninclude: ['<a/b>']\n":                              `include[0]: "<a/b>" is not a folder of the repository`,
		"source: scale.c\ninclude: [<>]\n":                                   `include[0]: "<>" is not a folder of the repository`,
		"source: scale.c\ninclude: [<x>, common, <x>]\n":                     `include[2]: "<x>" is named twice`,
		"source: scale.c\ninclude_first: [../x]\n":                           `include_first[0]: "../x" is not a folder of the repository`,
		"source: scale.c\ninclude_first: [common]\ninclude: [<x>, common]\n": `include[1]: "common" is named twice`,
	} {
		_, err := Parse("kernel.yaml", []byte(edited(t, minimalCPU, "source: scale.c\n", text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Parse("kernel.yaml", []byte(edited(t, minimalCPU, "source: scale.c\n", "root: .\nsource: a.c\n"))); err != nil {
		t.Errorf("the whole repository: %v", err)
	}
	for _, name := range []string{"cutlass", "cutlass-4.2", "c++"} {
		if !IsIncludeSet(name) {
			t.Errorf("%s is no name of a set", name)
		}
	}
	if slices.ContainsFunc([]string{"", "a/b", "..", "<a>", "a b", "-x"}, IsIncludeSet) {
		t.Error("a name that leads elsewhere is one of a set")
	}
}

const minimalCPU = `version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.1}
shapes: {one: {N: 10}}
`
