package toolchain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// packaged is a kernel in a package of a repository, with a helper that it imports by a relative name, one that it imports by its
// whole name, and one of a folder that the manifest includes.
func packaged(t *testing.T, files map[string]string) TritonBuild {
	t.Helper()
	all := map[string]string{
		".repository/src/kernelpkg/__init__.py":     "from .ops.scale import scale_kernel\n",
		".repository/src/kernelpkg/util.py":         "import triton\nimport triton.language as tl\n\n@triton.jit\ndef twice(v):\n    return v + v\n",
		".repository/src/kernelpkg/ops/__init__.py": "",
		".repository/src/kernelpkg/ops/scale.py": "import triton\nimport triton.language as tl\nfrom ..util import twice\nimport kernelpkg.util\nfrom shared_sizes import STEP\n\n" +
			"@triton.jit\ndef scale_kernel(x, y, n, BLOCK: tl.constexpr):\n    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(y + at, twice(tl.load(x + at, mask=at < n)) + " + "BLOCK // BLOCK" + ", mask=at < n)\n",
		".repository/common/shared_sizes.py": "STEP = 16\n",
	}
	for name, text := range files {
		all[name] = text
	}
	return TritonBuild{
		Dir: folder(t, all), Source: ".repository/src/kernelpkg/ops/scale.py", Root: "src", Include: []string{"common"}, Arch: "sm_90", Scratch: t.TempDir(),
		Tree:  runners.Tree{Folder: "kernels/scale", Shared: []string{"common", "src"}},
		Kinds: []manifest.Special{{Entry: "scale_kernel", Constants: map[string]float64{"BLOCK": 128}, Warps: 4, Stages: 3, CTAs: 1, Arguments: specialArguments("x:*fp32/16 y:*fp32/16 n:i32/16")}},
	}
}

// A source is a module of its package, wherever the package lies in the repository, and is built with what it imports.
func TestTritonPackage(t *testing.T) {
	c := cached(t, realTritons(t)[0])
	b := packaged(t, nil)
	was := mustBuildTriton(t, c, b)[0]
	if was.Kernels[0].Line != 7 {
		t.Errorf("the kernel begins at line %d", was.Kernels[0].Line)
	}
	t.Run("a helper is part of it", func(t *testing.T) {
		t.Parallel()
		b := packaged(t, map[string]string{".repository/src/kernelpkg/util.py": "import triton\nimport triton.language as tl\n\n@triton.jit\ndef twice(v):\n    return v * v\n"})
		if is := mustBuildTriton(t, c, b)[0]; is.Code == was.Code {
			t.Error("another helper has the same code")
		}
	})
	t.Run("the folder itself is the package", func(t *testing.T) {
		t.Parallel()
		b := packaged(t, nil)
		b.Root, b.Source, b.Tree.Shared = "src/kernelpkg", ".repository/src/kernelpkg/ops/scale.py", []string{"common", "src/kernelpkg"}
		if is := mustBuildTriton(t, c, b)[0]; is.Code != was.Code {
			t.Error("the same package has other code")
		}
	})
	t.Run("the whole repository", func(t *testing.T) {
		t.Parallel()
		b := packaged(t, map[string]string{".repository/kernels/scale/kernel.yaml": "name: scale\n"})
		b.Root, b.Tree.Shared = ".", []string{"common", "."}
		if is := mustBuildTriton(t, c, b)[0]; is.Code != was.Code {
			t.Error("the same package has other code")
		}
	})
	// The package asks for a GPU at its import, and the file next to the manifest imports the kernel past that.
	t.Run("an entry file", func(t *testing.T) {
		t.Parallel()
		b := packaged(t, map[string]string{
			".repository/src/kernelpkg/__init__.py": "import triton\nSMS = triton.runtime.driver.active.utils.get_device_properties(0)\n",
			".repository/kernels/scale/entry.py":    "import sys, types, os\nhere = os.path.join(os.path.dirname(__file__), \"../../src/kernelpkg\")\npkg = sys.modules[\"kernelpkg\"] = types.ModuleType(\"kernelpkg\")\npkg.__path__ = [os.path.normpath(here)]\nfrom kernelpkg.ops.scale import scale_kernel\n",
		})
		b.Root, b.Source, b.Tree.Shared = ".", ".repository/kernels/scale/entry.py", []string{"common", "."}
		if is := mustBuildTriton(t, c, b)[0]; is.Code != was.Code {
			t.Error("the same kernel has other code")
		}
	})
}

// A reference in Python lies next to the manifest, and the sources elsewhere mention its name. The packages that resolve the working
// directory do not look for modules there; a source that does is refused.
func TestTritonReferenceBesideManifest(t *testing.T) {
	c := realTritons(t)[0]
	const looks = "import os\nos.path.realpath(os.getcwd())\n# the reference is in float64\n"
	for name, test := range map[string]struct{ helper, want string }{
		"looks at the folder": {looks, ""},
		"imports from it":     {looks + "import sys\nsys.path.append(os.getcwd())\ntry:\n    import reference\nexcept ImportError:\n    pass\n", "it looks for modules in kernels/scale, where kernels/scale/reference.py is another: no build is given it"},
		"lists it by a link":  {looks + "try:\n    os.symlink(os.getcwd(), '/tmp/here')\n    os.listdir('/tmp/here')\nexcept OSError:\n    pass\n", "it looks for modules in kernels/scale"},
		"lists it by /proc":   {looks + "try:\n    os.listdir('/proc/self/cwd')\nexcept OSError:\n    pass\n", "it looks for modules in kernels/scale"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "lists it by a link" {
				long.Test(t)
			}
			t.Parallel()
			b := packaged(t, map[string]string{".repository/common/shared_sizes.py": "STEP = 16\n" + test.helper})
			b.Tree.Differs = []runners.Difference{{Path: "kernels/scale/reference.py", Why: "no build is given it"}}
			if test.want == "" {
				mustBuildTriton(t, c, b)
				return
			}
			mustRefuseTriton(t, c, b, test.want)
		})
	}
}

// What cannot be imported is told with its line and what to do, and a package that is missing today may be there tomorrow.
func TestTritonPackageMistakes(t *testing.T) {
	long.Test(t)
	c := realTritons(t)[0]
	c.Cache = &Cache{Dir: t.TempDir()}
	const scale = ".repository/src/kernelpkg/ops/scale.py"
	text := read(t, filepath.Join(packaged(t, nil).Dir, scale))
	for name, test := range map[string]struct {
		files map[string]string
		edit  func(*TritonBuild)
		want  []string
	}{
		"no such module": {map[string]string{scale: "import torch_of_nobody\n" + text}, nil, []string{"scale.py:1: ModuleNotFoundError: No module named 'torch_of_nobody' (a build sees the packages of the runner's Python", "write root:"}},
		"beyond the package": {nil, func(b *TritonBuild) {
			b.Root, b.Tree.Shared = "src/kernelpkg/ops", []string{"common", "src/kernelpkg/ops"}
		},
			[]string{"scale.py:3: ImportError: attempted relative import beyond top-level package (the package is larger than what the build sees: write root:"}},
		"a GPU at the import": {map[string]string{scale: text + "\nSMS = triton.runtime.driver.active.utils.get_device_properties(0)\n"}, nil, []string{"scale.py:12: RuntimeError: 0 active drivers ([]). There should only be one. (a build has no GPU: name as the source an entry file that imports the kernel past this)"}},
		"in a helper":         {map[string]string{".repository/src/kernelpkg/util.py": "import triton\n\ndef twice(v)\n"}, nil, []string{"src/kernelpkg/util.py:3: SyntaxError: expected ':'"}},
		"no such entry":       {nil, func(b *TritonBuild) { b.Kinds[0].Entry = "scale" }, []string{"has no kernel scale: write the entry as one of these, or define it: scale_kernel"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := packaged(t, test.files)
			if test.edit != nil {
				test.edit(&b)
			}
			mustRefuseTriton(t, c, b, test.want...)
		})
	}
	t.Cleanup(func() {
		kept, err := os.ReadDir(c.Cache.Dir)
		if err != nil || len(kept) != 4 {
			t.Errorf("%d refusals are kept, want those four that no package on the runner could change (%v)", len(kept), err)
		}
	})
}

// A repository cannot take the place of a module that Triton or Python imports, however it tries.
func TestTritonShadows(t *testing.T) {
	c := cached(t, realTritons(t)[0])
	was := mustBuildTriton(t, c, packaged(t, nil))[0]
	const evil = "raise SystemExit('imported in place of the real one')\n"
	for name, test := range map[string]struct {
		file string
		want string // a refusal; "" has the same code
	}{
		"triton in the package's folder": {".repository/src/triton/__init__.py", "has the name of a module that Python or a package of the runner imports"},
		"a module of Python":             {".repository/src/json.py", "has the name of a module that Python or a package of the runner imports"},
		"an included module":             {".repository/common/subprocess.py", "has the name of a module that Python or a package of the runner imports"},
		"sitecustomize":                  {".repository/src/sitecustomize.py", ""},
		"usercustomize":                  {"usercustomize.py", ""},
		"a path file":                    {".repository/src/evil.pth", ""},
		"within the package":             {".repository/src/kernelpkg/numpy.py", ""},
		"the kernel's folder":            {"triton/__init__.py", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := evil
			if strings.HasSuffix(test.file, ".pth") {
				text = "import sys; sys.exit('run')\n"
			}
			b := packaged(t, map[string]string{test.file: text})
			if test.want != "" {
				mustRefuseTriton(t, c, b, test.want)
				return
			}
			if is := mustBuildTriton(t, c, b)[0]; is.Code != was.Code {
				t.Error("the code is another")
			}
		})
	}
	t.Run("a package by the name of triton", func(t *testing.T) {
		t.Parallel()
		b := packaged(t, map[string]string{".repository/lib/triton/__init__.py": "", ".repository/lib/triton/scale.py": read(t, filepath.Join(packaged(t, nil).Dir, ".repository/src/kernelpkg/util.py"))})
		b.Root, b.Source, b.Tree.Shared, b.Kinds[0].Entry = "lib", ".repository/lib/triton/scale.py", []string{"common", "lib"}, "twice"
		mustRefuseTriton(t, c, b, "the package triton has the name of one that Python or Triton imports (rename the folder)")
	})
}

// What a package's own modules may do at their import is what a kernel's source could do before: they see the folders that they are
// given and the runner's Python, and nothing that they patch is believed.
func TestTritonPackageAttacks(t *testing.T) {
	c := cached(t, realTritons(t)[0])
	was := mustBuildTriton(t, c, packaged(t, nil))[0]
	t.Setenv("SECRET_TOKEN", "of the runner")
	const util = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef twice(v):\n    return v + v\n"
	hidden := t.TempDir()
	for name, test := range map[string]struct {
		helper string
		want   string // a refusal; "" has the same code
	}{
		"it looks around":          {util + "\nimport os\nfor path in [" + quoted(c.Cache.Dir, hidden, os.Getenv("HOME")+"/.ssh", "/etc/shadow") + "]:\n    if os.path.exists(path) and os.access(path, os.R_OK):\n        raise RuntimeError(path)\nif 'SECRET_TOKEN' in os.environ:\n    raise RuntimeError('environment')\n", ""},
		"it writes to the package": {util + "\nimport os\ntry:\n    open(os.path.join(os.path.dirname(__file__), 'left.py'), 'w')\nexcept OSError:\n    pass\nelse:\n    raise RuntimeError('written')\n", ""},
		"a hook for imports":       {util + "\nimport sys\n\nclass Finder:\n    def find_spec(self, name, path=None, target=None):\n        if name == 'shared_sizes':\n            raise ImportError('hooked')\nsys.meta_path.insert(0, Finder())\n", "hooked"},
		"a patch by the folder":    {util + "\nimport os, triton.compiler\nif os.getcwd().startswith('/repository'):\n    real = triton.compile\n    def compile(src, target, options):\n        return real(src, target=target, options={**options, 'num_warps': 8})\n    triton.compile = triton.compiler.compile = compile\n", "the machine code depends on where it is compiled"},
		"a patch of what is told":  {util + "\nimport json\nreal = json.dumps\njson.dumps = lambda v, *a, **k: real({**v, 'warps': 1} if isinstance(v, dict) and 'warps' in v else v, *a, **k)\n", "would be launched as its machine code does not allow"},
		"an exit":                  {util + "\nimport os\nos._exit(0)\n", "the compiler made no 0.cubin of it"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "it looks around" && name != "a patch by the folder" {
				long.Test(t)
			}
			b := packaged(t, map[string]string{".repository/src/kernelpkg/util.py": test.helper})
			if test.want != "" {
				mustRefuseTriton(t, c, b, test.want)
				return
			}
			if is := mustBuildTriton(t, c, b)[0]; is.Code != was.Code {
				t.Error("the code is another")
			}
		})
	}
}

func quoted(words ...string) string { return `"` + strings.Join(words, `", "`) + `"` }
