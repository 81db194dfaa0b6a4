package toolchain

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// poison writes a compiled module that Python runs in place of a source, whatever the source says.
const poison = `
import importlib._bootstrap_external as external, importlib.util, os, sys
path = sys.argv[1]
cached = importlib.util.cache_from_source(path)
os.makedirs(os.path.dirname(cached), exist_ok=True)
code = compile("raise RuntimeError('the poisoned module runs')", path, "exec")
with open(cached, "wb") as f:
    f.write(external._code_to_hash_pyc(code, importlib.util.source_hash(b""), False))
`

// A pin's digest has no __pycache__, so a build runs none of it: a Triton whose compiled modules somebody has replaced compiles
// as its sources say.
func TestPoisonedPycache(t *testing.T) {
	p, err := findPython(t.Context(), os.Getenv)
	if err != nil {
		t.Skip(err)
	}
	c, err := p.with(filepath.Join(folder(t, map[string]string{
		"triton/__init__.py":     "__version__ = '3.0.0'\nimport triton.sub\n",
		"triton/sub/__init__.py": "raise RuntimeError('the pinned source runs')\n",
	}), "triton"))
	if err != nil {
		t.Fatal(err)
	}
	c.path = []string{filepath.Dir(c.Folder)}
	before, err := digestOf(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"__init__.py", "sub/__init__.py"} {
		if out, err := exec.Command(p.Executable, "-I", "-c", poison, filepath.Join(c.Folder, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if after, err := digestOf(c, nil); err != nil || after != before {
		t.Fatalf("the digest is %s, and was %s (%v)", after, before, err)
	}
	b := TritonBuild{Dir: folder(t, map[string]string{"k.py": ""}), Source: "k.py", Entry: "k", Arch: "sm_90"}
	for name, in := range map[string]Surroundings{"here": Here, "there": Elsewhere(1)} {
		_, log, err := c.script(t.Context(), b, t.TempDir(), in)
		if err != nil || !strings.Contains(log, "the pinned source runs") || strings.Contains(log, "poisoned") {
			t.Errorf("%s: %v\n%s", name, err, log)
		}
	}
}

// A file next to the package can name further backends, which no digest has. The build that is measured takes none of them; the
// other one does, so that a backend which changes anything has the build refused.
func TestBackendsNextToTriton(t *testing.T) {
	c := *realTritons(t)[0]
	dir := folder(t, map[string]string{
		"evil/__init__.py": "", "evil/compiler.py": "raise RuntimeError('another backend runs')\n",
		"evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n", "evil-1.0.dist-info/entry_points.txt": "[triton.backends]\nevil = evil\n",
	})
	c.path, c.read = append([]string{dir}, c.path...), append(slices.Clone(c.read), dir)
	b := softmax(t, "")
	for name, in := range map[string]Surroundings{"here": Here, "there": Elsewhere(1)} {
		r, log, err := c.script(t.Context(), b, t.TempDir(), in)
		if err != nil || r.OK() != (name == "here") || strings.Contains(log, "another backend runs") != (name == "there") {
			t.Errorf("%s: %v %+v\n%s", name, err, r, log)
		}
	}
}
