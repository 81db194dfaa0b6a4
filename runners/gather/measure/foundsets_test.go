package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// A manifest names PyTorch's headers, and the host finds them in its Python: no configuration is needed. A configured folder
// comes first.
func TestFoundSets(t *testing.T) {
	site := write(t, t.TempDir(), map[string]string{
		"torch/include/c10/util/Half.h": "// half\n", "torch/include/torch/csrc/api/include/torch/extension.h": "// extension\n", "torch/version.py": "__all__ = []\n__version__ = '2.9.0+cpu'\n",
		"own/a.h": "// own\n", "headers/Python.h": "// Python\n",
	})
	python := filepath.Join(site, "python3")
	says := func(torch string) {
		answer := `{"executable": "` + python + `", "version": "3.12.1", "torch_include": "` + torch + `", "include": "` + filepath.Join(site, "headers") + `"}`
		if err := runnable.Write(python, []byte("#!/bin/sh\necho '"+answer+"'\n")); err != nil {
			t.Fatal(err)
		}
	}
	says(filepath.Join(site, "torch/include"))
	c := Config{Name: "gpu1", Getenv: func(name string) string { return map[string]string{"KERNELGATE_PYTHON": python}[name] }}
	m, err := manifest.Parse("k/kernel.yaml", []byte(strings.Replace(including, "<lib>", "<torch>, <python>", 1)))
	if err != nil {
		t.Fatal(err)
	}
	j := runners.Job{Key: "k", Manifest: m, Candidate: runners.Side{Dir: t.TempDir(), Variant: "default"}}
	sets, err := c.layIn(t.Context(), j)
	if err != nil || !strings.HasPrefix(sets["<torch>"], "2.9.0+cpu, sha256 ") || !strings.HasPrefix(sets["<python>"], "sha256 ") {
		t.Fatalf("%v (%v)", sets, err)
	}
	flags := strings.Join(m.IncludeFlags(), " ")
	if flags != "-idirafter.sets/torch -idirafter.sets/torch/torch/csrc/api/include -idirafter.sets/python" {
		t.Errorf("the compiler gets %s", flags)
	}
	for _, file := range []string{"torch/c10/util/Half.h", "torch/torch/csrc/api/include/torch/extension.h", "python/Python.h"} {
		if _, err := os.Stat(filepath.Join(j.Candidate.Dir, ".sets", file)); err != nil {
			t.Error(err)
		}
	}
	c.Includes = IncludeSets{"torch": filepath.Join(site, "own")}
	if own, err := c.layIn(t.Context(), j); err != nil || own["<torch>"] == sets["<torch>"] {
		t.Errorf("the configured folder is not read: %v (%v)", own, err)
	}
	c.Includes = nil
	says("")
	_, err = c.layIn(t.Context(), j)
	if want := "k/kernel.yaml includes the set <torch>, which the runner gpu1 does not have: install PyTorch (pip install torch)"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
