package toolchain

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
)

// A package's __init__.py that imports what a build lacks is skipped, wherever the package lies in root, and a module that the
// kernel does not use is a stand-in.
func TestTritonStandIns(t *testing.T) {
	c := cached(t, realTritons(t)[0])
	was := mustBuildTriton(t, c, packaged(t, nil))[0]
	const (
		start  = ".repository/src/kernelpkg/__init__.py"
		scale  = ".repository/src/kernelpkg/ops/scale.py"
		broken = "import module_of_nobody\nfrom .ops.scale import scale_kernel\n"
		uses   = "import module_of_nobody.deep as deep\nfrom module_of_nobody import Base, register, Optional\n\n" +
			"class Layer(Base):\n    pass\n\n@register('scale')\ndef call(x: Optional[deep.Tensor] | None) -> deep.Tensor:\n    return deep.empty(x) + 1\n\n"
	)
	text := read(t, packaged(t, nil).Dir+"/"+scale)
	moved := func(b *TritonBuild) { // directly below the repository
		b.Root, b.Source, b.Tree.Shared = ".", ".repository/kernelpkg/ops/scale.py", []string{"common", "."}
	}
	top := map[string]string{".repository/kernels/scale/kernel.yaml": "name: scale\n"}
	for name, file := range map[string]string{start: broken, ".repository/src/kernelpkg/util.py": read(t, packaged(t, nil).Dir+"/.repository/src/kernelpkg/util.py"), ".repository/src/kernelpkg/ops/__init__.py": "", scale: text} {
		top[strings.Replace(name, "src/", "", 1)] = file
	}
	for name, test := range map[string]struct {
		files map[string]string
		edit  func(*TritonBuild)
		want  string // of the refusal; "" if it builds
	}{
		"skipped":                   {map[string]string{start: broken}, func(b *TritonBuild) { b.SkipInit = []string{"kernelpkg"} }, ""},
		"skipped deeper":            {map[string]string{start: "", ".repository/src/kernelpkg/ops/__init__.py": broken}, func(b *TritonBuild) { b.SkipInit = []string{"kernelpkg.ops"} }, ""},
		"skipped below the root":    {top, func(b *TritonBuild) { moved(b); b.SkipInit = []string{"kernelpkg"} }, ""},
		"not there":                 {nil, func(b *TritonBuild) { b.SkipInit = []string{"kernelpkg.other"} }, "skip_init names kernelpkg.other, and no package of this name was imported from the repository"},
		"stubbed":                   {map[string]string{scale: uses + text}, func(b *TritonBuild) { b.Stubs = []string{"module_of_nobody"} }, ""},
		"stubbed in the repository": {map[string]string{scale: strings.Replace(text, "import kernelpkg.util", "from kernelpkg.other import thing", 1), ".repository/src/kernelpkg/other.py": broken}, func(b *TritonBuild) { b.Stubs = []string{"kernelpkg.other"} }, ""},
		"a stub has no value":       {map[string]string{scale: uses + "if deep.available():\n    pass\n" + text}, func(b *TritonBuild) { b.Stubs = []string{"module_of_nobody"} }, "module_of_nobody.deep.available() is a stub of the manifest and has no value, which a condition asks for"},
		"a stub computes nothing":   {map[string]string{scale: strings.Replace(uses+text, "BLOCK // BLOCK", "deep.SIZE", 1)}, func(b *TritonBuild) { b.Stubs = []string{"module_of_nobody"} }, "deep"},
		"neither":                   {map[string]string{scale: "import module_of_nobody\n" + text}, func(*TritonBuild) {}, "write stubs: with the modules that the kernel does not use, or skip_init:"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "skipped deeper" || name == "neither" || name == "stubbed in the repository" {
				long.Test(t)
			}
			b := packaged(t, test.files)
			b.Once = true
			t.Parallel()
			test.edit(&b)
			if test.want != "" {
				mustRefuseTriton(t, c, b, test.want)
				return
			}
			if is := mustBuildTriton(t, c, b)[0]; !strings.Contains(test.files[scale], "deep") && is.Code != was.Code {
				t.Error("the same kernel has other code")
			}
		})
	}
}

// The entry file of the documents makes a package itself, also one directly below the repository.
func TestTritonEntryFileBelowRoot(t *testing.T) {
	b := packaged(t, map[string]string{
		".repository/kernelpkg/__init__.py":     "import module_of_nobody\n",
		".repository/kernelpkg/scale.py":        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef scale_kernel(x, y, n, BLOCK: tl.constexpr):\n    tl.store(y, tl.load(x) + n)\n",
		".repository/kernels/scale/entry.py":    "import os, sys, types\n\npackage = sys.modules[\"kernelpkg\"] = types.ModuleType(\"kernelpkg\")\npackage.__path__ = [os.path.join(os.path.dirname(__file__), \"../../kernelpkg\")]\nfrom kernelpkg.scale import scale_kernel\n",
		".repository/kernels/scale/kernel.yaml": "name: scale\n",
	})
	b.Once, b.Root, b.Source, b.Tree.Shared = true, ".", ".repository/kernels/scale/entry.py", []string{"common", "."}
	mustBuildTriton(t, cached(t, realTritons(t)[0]), b)
}
